// metrics/idle: why did a stream stand still?
//
// For the gap between two spans of a stream, in this order:
//   host    the call that launched the next span began after the one before had ended, and after all
//           that the next span awaited
//   wait    the next span awaited something that ended after the one before (an event, a buffer, a limiter)
//   cpu     that something is the CPU's own work in its place among a stream's ops, as an update in host memory
//   launch  neither, and the gap is shorter than 30 us: what a launch costs
//   other   the rest
// host, launch and other are HTA's causes (breakdown_analysis.py at f4d0062, which calls launch
// "kernel wait"); wait and cpu are ours.
#pragma once

#include <vector>

#include "engine/metrics/partition.hpp"
#include "engine/timeline/links.hpp"

namespace shardbook::metrics {

enum class IdleCause : std::uint8_t { host, wait, cpu, launch, other };
const char* name_of(IdleCause cause);

// What held a span back after its device, or its stream, had nothing more to do.
struct GapReason {
  IdleCause cause = IdleCause::other;
  SpanRef awaited;           // for wait and cpu: what it waited for
  SpanRef call;              // that launched it; invalid if the timeline has no such call
};
// `next` starts after `busy_until`, since when nothing ran where it runs.
GapReason reason_of_gap(const Timeline& timeline, const timeline::Links& links, SpanRef next, Nanoseconds busy_until);

struct IdleGap {
  std::int64_t stream = 0;
  Interval gap;
  IdleCause cause = IdleCause::other;
  SpanRef next;              // the span after the gap
  SpanRef awaited;           // for wait and cpu: what it waited for
};

constexpr Nanoseconds longest_launch_gap_ns = 30'000;

// Gaps between spans of each stream of a rank, within the window, by stream and time.
std::vector<IdleGap> idle_gaps(const Timeline& timeline, Rank rank, Window window);

}  // namespace shardbook::metrics
