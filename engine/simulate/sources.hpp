// simulate/sources: of which rank are the durations that a rank is resolved with? Its own, or those of the one in the middle.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/simulate/replay.hpp"

namespace shardbook::simulate {

// By which the rank in the middle is found: what a rank's device does in a step beside collectives, and its host.
base::Nanoseconds device_ns(const RankSteps& rank);
base::Nanoseconds host_ns(const RankSteps& rank);

// Whose durations a rank has, and whose calls: places among the ranks.
struct Source {
  std::size_t device = 0, host = 0;
};

// With `alike`, of the ranks with an equal program: the one in the middle, by what its device took and by what its host did. Whole
// ranks: the middle of each op by itself would be the luckier of two every time, and so a faster rank than any. Of a rank that is to
// be usual, likewise. Else its own.
std::vector<Source> sources_of(const std::vector<RankSteps>& ranks, const Change& change);
// The ranks with what these sources give them.
std::vector<RankSteps> taken_from(const std::vector<RankSteps>& ranks, const std::vector<Source>& sources);

}  // namespace shardbook::simulate
