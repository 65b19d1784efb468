// cli/calibrate_windows: how long do all-gathers take that copy engines do?
#pragma once

#include <map>

#include "engine/comm/comm.hpp"
#include "engine/simulate/calibrate.hpp"
#include "engine/world/world.hpp"

namespace shardbook::cli {

// Periods of all-gathers by number of ranks and bytes, the slowest rank's, for each that `plan` has for NCCL's kernels. Every rank calls it
// alike. `hold_up`: bytes of what holds the stream up (Stopwatch). REQUIRES: the backend's memory is windows (comm::Buffers); `device` is
// not sealed.
std::map<int, simulate::Curve> gathers_of_windows(world::World& world, device::Device& device, comm::Backend& backend, const simulate::Benchmarks& plan,
                                                  base::Bytes hold_up);

}  // namespace shardbook::cli
