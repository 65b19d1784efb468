#include "engine/launch/clocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace shardbook::launch {

ClockLine::ClockLine(const world::ClockOffset& first, const world::ClockOffset& last)
    : first_(first), last_(last), twice_(first.at != 0 && last.at > first.at) {}

base::Nanoseconds ClockLine::at(base::Nanoseconds own) const {
  if (!twice_) return own + first_.offset;
  const long double part = static_cast<long double>(own - first_.at) / static_cast<long double>(last_.at - first_.at);
  return own + first_.offset + std::llround(part * static_cast<long double>(drift()));
}

base::Nanoseconds ClockLine::error(base::Nanoseconds until) const {
  if (first_.at == 0) return first_.error;
  if (twice_) return std::max(first_.error, last_.error) + (std::abs(drift()) + 1) / 2;
  return first_.error + static_cast<base::Nanoseconds>(most_drift * static_cast<double>(std::max<base::Nanoseconds>(0, until - first_.at)));
}

ClockLine clock_line_of(const RankOutcome& rank) { return {rank.clock, rank.clock_at_end}; }

base::Nanoseconds clock_error_of(const RankOutcome& rank) {
  const base::Nanoseconds until = rank.step_done.empty() ? rank.clock.at : rank.step_done.back();
  return clock_line_of(rank).error(until) + rank.device_clock_error;
}

}  // namespace shardbook::launch
