// Lab 04b. Says that gathers hide as soon as forward is as long as one. Predict the number of tokens within 15 %: what else
// stands in the queue of the fsdp stream, and in which phase? Two or three lines.
#include "labs/04_fsdp/lab.hpp"

namespace shardbook::lab04 {

double tokens_to_hide(const Block& block) {
  return block.gather / block.forward_per_token;
}

}  // namespace shardbook::lab04

// Explain, in at most 60 words:
//
