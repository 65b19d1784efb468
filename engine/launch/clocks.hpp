// launch/clocks: what did rank 0's clock show, when a rank's own showed this?
//
// Hosts' clocks run at rates of their own: a few millionths apart, so that they part by a microsecond in less than a
// second. The offset is therefore measured before the first step and after the last one (world::World::measure_clock), and
// taken from the line between the two.
#pragma once

#include "engine/launch/rank.hpp"

namespace shardbook::launch {

class ClockLine {
 public:
  // `last` has no `at` where it was not measured: then the first offset holds throughout.
  ClockLine(const world::ClockOffset& first, const world::ClockOffset& last);

  // Rank 0's clock, when the own one shows `own`.
  base::Nanoseconds at(base::Nanoseconds own) const;
  // By how much that may be wrong up to `until`: the larger error of the two measurements, and what the rate may have done
  // in between. Of two measurements that is half of what the clocks parted by, as if all of it had come in one half of
  // the time; of one it is most_drift of the time since.
  base::Nanoseconds error(base::Nanoseconds until) const;
  // By how much the clocks parted between the measurements.
  base::Nanoseconds drift() const { return twice_ ? last_.offset - first_.offset : 0; }

  // Two crystals of 50 millionths each.
  static constexpr double most_drift = 100e-6;

 private:
  world::ClockOffset first_, last_;
  bool twice_;
};

ClockLine clock_line_of(const RankOutcome& rank);
// Of its host's clock and its device's, until its last step.
base::Nanoseconds clock_error_of(const RankOutcome& rank);

}  // namespace shardbook::launch
