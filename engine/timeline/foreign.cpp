// timeline/foreign: steps and event edges of PyTorch's traces; see foreign.hpp.
#include "engine/timeline/foreign.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/timeline/builder.hpp"
#include "engine/timeline/links.hpp"

namespace shardbook::timeline {
namespace {

struct Launched {
  Nanoseconds at;       // when the call was made
  SpanRef span;
  friend bool operator<(const Launched& a, const Launched& b) { return a.at < b.at; }
};

// The device work of each stream of a rank, in the order of its launches.
std::map<std::int64_t, std::vector<Launched>> by_launch(const Timeline& timeline, Rank rank, const Links& links) {
  std::map<std::int64_t, std::vector<Launched>> streams;
  for_each_device_span(timeline, rank, [&](SpanRef span) {
    const SpanRef call = links.launch_of(span);
    if (call.valid()) streams[timeline.tracks[span.track].id].push_back({timeline.start(call), span});
  });
  for (auto& [id, launches] : streams) std::stable_sort(launches.begin(), launches.end());
  return streams;
}

}  // namespace

void infer_steps(Timeline& timeline, Rank rank) {
  std::vector<Step*> steps;
  for (Step& step : timeline.steps) {
    if (step.rank == rank) steps.push_back(&step);
  }
  if (steps.empty()) return;
  std::sort(steps.begin(), steps.end(), [](const Step* a, const Step* b) { return a->host_start < b->host_start; });

  // Each device span to the step in which its call was made.
  const Links links(timeline, rank);
  std::vector<Nanoseconds> first(steps.size(), -1), last(steps.size(), -1);
  for_each_device_span(timeline, rank, [&](SpanRef span) {
    const SpanRef call = links.launch_of(span);
    if (!call.valid()) return;
    const Nanoseconds at = timeline.start(call);
    const auto after = std::upper_bound(steps.begin(), steps.end(), at,
                                        [](Nanoseconds time, const Step* step) { return time < step->host_start; });
    if (after == steps.begin()) return;
    const auto i = static_cast<std::size_t>(after - steps.begin() - 1);
    if (at >= steps[i]->host_end) return;
    timeline.tracks[span.track].step[span.index] = steps[i]->number;
    const Nanoseconds start = timeline.start(span), end = timeline.end(span);
    first[i] = last[i] == -1 ? start : std::min(first[i], start);
    last[i] = std::max(last[i], end);
  });

  // A step's window on the device: from its first span to the first of the next step, so that the
  // windows of all steps leave no gap.
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (last[i] == -1) continue;
    steps[i]->start = first[i];
    steps[i]->end = last[i];
    if (i + 1 < steps.size() && last[i + 1] != -1) steps[i]->end = first[i + 1];
  }
}

void infer_event_edges(Timeline& timeline, const std::vector<ForeignWait>& waits, const std::vector<SpanRef>& where) {
  std::vector<Edge> found;
  for (const Provenance& provenance : std::vector<Provenance>(timeline.ranks)) {
    const Links links(timeline, provenance.rank);
    std::map<std::int64_t, std::vector<Launched>> streams;
    for (const ForeignWait& wait : waits) {
      const SpanRef mark = where[wait.mark_number];
      if (timeline.rank(mark) != provenance.rank) continue;
      if (streams.empty()) streams = by_launch(timeline, provenance.rank, links);
      const SpanRef record = links.call(wait.record);
      const SpanRef call = links.launch_of(mark);
      if (!record.valid() || !call.valid()) continue;
      found.push_back({record, mark, EdgeKind::event});

      // The last span launched on the awaited stream before the record, and the first one launched on
      // the waiting stream after the wait.
      const std::vector<Launched>& awaited = streams[wait.stream];
      const std::vector<Launched>& waiting = streams[timeline.tracks[mark.track].id];
      const auto before = std::lower_bound(awaited.begin(), awaited.end(), Launched{timeline.start(record), {}});
      const auto after = std::lower_bound(waiting.begin(), waiting.end(), Launched{timeline.start(call), {}});
      if (before == awaited.begin()) continue;
      const SpanRef from = std::prev(before)->span;
      found.push_back({from, mark, EdgeKind::event});
      if (after != waiting.end()) found.push_back({from, after->span, EdgeKind::event});
    }
  }
  found.insert(found.end(), timeline.edges.begin(), timeline.edges.end());
  timeline.edges = in_order(std::move(found));
}

}  // namespace shardbook::timeline
