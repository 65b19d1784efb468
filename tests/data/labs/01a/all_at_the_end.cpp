// fails with: the all-reduce (line 9) after backward's end, where nothing hides communication: 2.47 ms exposed
#include "labs/01_data_parallel/lab.hpp"

namespace shardbook::lab01 {

void part_is_written(Replica&, std::size_t) {}

void backward_is_over(Replica& r) {
  r.group.all_reduce(r.compute, r.gradients, r.gradients);
}

}  // namespace shardbook::lab01
