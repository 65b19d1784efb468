// launch/speed: how fast was it, by the clock of the run?
#pragma once

#include <string_view>

#include "engine/launch/rank.hpp"

namespace shardbook::launch {

// From rank 0's step ends and what its traced steps took (measured) or the resolved steps (modelled, wall; `traced_step_ns` is 0 where none is known).
// The first two measured steps, in which kernels and plans are made, do not count.
Speed speed_of(const config::RunConfig& config, const RankOutcome& rank, double resolved_step_ns, double traced_step_ns);


// Of a traced step: from its first call to the end of its last op. What the host does then, reading marks and writing them
// down, is no part of it.
base::Nanoseconds took_alone(const program::StepTimes& times);

// Dense bf16 flops a second that the data sheet gives a GPU of this name ("NVIDIA H200"); 0: not known here.
double peak_flops(std::string_view device);

}  // namespace shardbook::launch
