// timeline/foreign: what a trace that is not ours leaves to be worked out.
//
// PyTorch states no step of a kernel and no edge between spans. Steps follow from the launch: a
// kernel belongs to the ProfilerStep during which its call was made. Edges follow from cuda_sync
// rows: "Stream Wait Event" names the stream and the cudaEventRecord call that it waited for, so the
// span awaited is the last one launched on that stream before that call, and the span that waited
// is the first one launched after the wait (HTA's rule, critical_path_analysis.py at f4d0062).
#pragma once

#include <vector>

#include "engine/timeline/timeline.hpp"

namespace shardbook::timeline {

// A "Stream Wait Event" row: on track `mark`'s stream, for an event recorded on another.
struct ForeignWait {
  std::uint32_t mark_number = 0;       // as TimelineBuilder::add named it
  std::int64_t stream = 0;             // that was awaited
  std::uint32_t record = 0;            // correlation of its cudaEventRecord
};

void infer_steps(Timeline& timeline, Rank rank);

// `where` maps builder numbers to places (TimelineBuilder::finish).
void infer_event_edges(Timeline& timeline, const std::vector<ForeignWait>& waits, const std::vector<SpanRef>& where);

}  // namespace shardbook::timeline
