// Lab 01b. Sums everything on every GPU, though the update of each reads an eighth of it; and tells nobody what came of it.
// Move no more bytes than are read, and let the next forward have all parameters. Two calls, and their waits.
#include "labs/01_data_parallel/lab.hpp"

namespace shardbook::lab01 {

void backward_is_over(Sharded& s) {
  s.group.all_reduce(s.compute, s.gradients, s.gradients);
}

void after_update(Sharded&) {}

}  // namespace shardbook::lab01

// Explain, in at most 60 words:
//
