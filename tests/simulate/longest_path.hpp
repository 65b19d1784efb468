// The same question answered another way: without contention, when does each op end? Every command's time is the
// maximum over what it follows, computed again and again in the order of issue until nothing changes.
#pragma once

#include <vector>

#include "engine/simulate/resolver.hpp"

namespace shardbook::simulate {

// [rank][step][op] start and end. Collectives keep the order of their communicator; where
// `launch_order` holds, also that of their device.
std::vector<std::vector<std::vector<program::TimeSpan>>> longest_paths(const std::vector<RankSteps>& ranks,
                                                                       const Machine& machine, bool drain_each_step);

}  // namespace shardbook::simulate
