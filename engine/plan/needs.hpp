// plan/needs: how much memory does an order need?
//
// Counted from the list alone, before anything is allocated: what fsdp/ and model/ then set aside.
#pragma once

#include "engine/plan/passes.hpp"

namespace shardbook::plan {

// The most at one time.
struct Needs {
  int gathered = 0;          // units whole at once, of those that share buffers
  int gradient = 0;          // gradients whole at once, likewise
  int shards = 0;            // that have come from host memory and are not gathered yet
  int gradient_shards = 0;   // summed, and not in host memory yet
  int in_flight = 0;         // micro-batches between their first forward and their last backward
  base::Bytes gathered_bytes = 0, gradient_bytes = 0;  // whole parameters, whole gradients; each at its fullest
  base::Bytes kept_bytes = 0;                          // parts of units, from their first keep to the end of the step
};
Needs needs_of(const Plan& plan, const Network& network);

// Which of `in_flight` places keeps a micro-batch's activations, by micro-batch: the lowest that is free when its forward
// begins, until its last backward.
std::vector<int> places_of(const Plan& plan, const Network& network);

// The shared buffers that carry a plan out: as many as it needs, and one gradient more, so that one can be made while
// another is being reduced; likewise one more place for shards each way, so that one comes or goes while another is used.
Slots slots_for(const Plan& plan, const Network& network);

}  // namespace shardbook::plan
