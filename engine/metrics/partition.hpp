// metrics/partition: where did the time of a rank go?
//
// K is the union of its compute spans, C of its communication, M of its copies, clipped to a
// window W. Every nanosecond of W has one owner, in this order:
//   |W| = |K| + |C \ K| + |M \ (K u C)| + |W \ (K u C u M)|
//         compute  exposed      exposed        idle
//                  communication memory
// Overlap is |C n K| / |C|, Holistic Trace Analysis' definition (communication_analysis.py of
// facebookresearch/HolisticTraceAnalysis at f4d0062); attainable is |C n K| / min(|C|, |K|).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/intervals.hpp"
#include "engine/timeline/timeline.hpp"

namespace shardbook::metrics {

using base::Interval;
using base::Intervals;
using base::Nanoseconds;
using base::Rank;
using timeline::SpanRef;
using timeline::Timeline;
using Window = Interval;

// The three unions of a rank's device work, over the whole timeline or clipped to a window.
struct DeviceSets {
  Intervals compute, communication, memory;
};
DeviceSets device_sets(const Timeline& timeline, Rank rank);
DeviceSets clip(const DeviceSets& sets, Window window);

struct Partition {
  Window window;
  Nanoseconds compute_ns = 0;
  Nanoseconds exposed_communication_ns = 0;
  Nanoseconds exposed_memory_ns = 0;
  Nanoseconds idle_ns = 0;
  // Not parts of the sum:
  Nanoseconds communication_ns = 0;      // |C|
  Nanoseconds overlapped_ns = 0;         // |C n K|

  // |C n K| / |C|, and |C n K| / min(|C|, |K|); none if the denominator is 0.
  std::optional<double> overlap() const;
  std::optional<double> attainable() const;
};

// Exact: the four parts sum to the window. The sets need not be clipped.
Partition partition(const DeviceSets& sets, Window window);
Partition partition(const Timeline& timeline, Rank rank, Window window);

// The rows that are drawn like streams: when communication is exposed, and when nothing runs.
Intervals exposed_communication(const DeviceSets& sets);
Intervals idle(const DeviceSets& sets, Window window);

// From the start of the first op of the rank's streams to the end of the last, the CPU's own work among them included;
// [0, 0) if the rank has none.
Window device_window(const Timeline& timeline, Rank rank);
// From the start of the first step to the end of the last; device_window() if there are no steps.
Window steps_window(const Timeline& timeline, Rank rank);
// The device window of one step; none if the rank has no such step.
std::optional<Window> step_window(const Timeline& timeline, Rank rank, int step);

// Busy time of each stream of the rank (union over its lanes) within the window.
struct StreamBusy {
  std::int64_t stream = 0;
  std::string name;
  Nanoseconds busy_ns = 0;
};
std::vector<StreamBusy> stream_busy(const Timeline& timeline, Rank rank, Window window);

// How much of a span is exposed: its time that no compute of its rank covers.
Nanoseconds exposed_ns(const Timeline& timeline, const DeviceSets& sets, SpanRef span);

}  // namespace shardbook::metrics
