// metrics/idle: gaps of each stream and their causes; see idle.hpp.
#include "engine/metrics/idle.hpp"

#include <algorithm>
#include <map>

namespace shardbook::metrics {

using timeline::Edge;
using timeline::EdgeKind;

const char* name_of(IdleCause cause) {
  switch (cause) {
    case IdleCause::host: return "host";
    case IdleCause::wait: return "wait";
    case IdleCause::cpu: return "CPU";
    case IdleCause::launch: return "launch";
    case IdleCause::other: return "other";
  }
  return "?";
}

namespace {

// The edge into `span` whose source ended last, if it ended after `time`. Edges are sorted by `to`.
SpanRef awaited_after(const Timeline& timeline, SpanRef span, Nanoseconds time) {
  SpanRef latest;
  const auto first = std::lower_bound(timeline.edges.begin(), timeline.edges.end(), span,
                                      [](const Edge& edge, SpanRef wanted) { return edge.to < wanted; });
  for (auto edge = first; edge != timeline.edges.end() && edge->to == span; ++edge) {
    if (edge->kind != EdgeKind::event && edge->kind != EdgeKind::buffer && edge->kind != EdgeKind::limiter &&
        edge->kind != EdgeKind::communicator) {
      continue;
    }
    const Nanoseconds end = timeline.end(edge->from);
    if (end > time && (!latest.valid() || end > timeline.end(latest))) latest = edge->from;
  }
  return latest;
}

}  // namespace

GapReason reason_of_gap(const Timeline& timeline, const timeline::Links& links, SpanRef next, Nanoseconds busy_until) {
  GapReason reason;
  reason.call = links.launch_of(next);
  const SpanRef awaited = awaited_after(timeline, next, busy_until);
  const bool host_is_late = reason.call.valid() && timeline.start(reason.call) > busy_until;
  if (host_is_late && (!awaited.valid() || timeline.start(reason.call) >= timeline.end(awaited))) {
    reason.cause = IdleCause::host;
  } else if (awaited.valid()) {
    reason.cause = timeline.cls(awaited) == timeline::Class::host ? IdleCause::cpu : IdleCause::wait;
    reason.awaited = awaited;
  } else {
    reason.cause = timeline.start(next) - busy_until < longest_launch_gap_ns ? IdleCause::launch : IdleCause::other;
  }
  return reason;
}

std::vector<IdleGap> idle_gaps(const Timeline& timeline, Rank rank, Window window) {
  // The work of each stream, over all its lanes, in order.
  std::map<std::int64_t, std::vector<SpanRef>> streams;
  timeline::for_each_device_span(timeline, rank, [&](SpanRef span) { streams[timeline.tracks[span.track].id].push_back(span); });

  const timeline::Links links(timeline, rank);
  std::vector<IdleGap> gaps;
  for (auto& [stream, spans] : streams) {
    std::sort(spans.begin(), spans.end(), [&](SpanRef a, SpanRef b) {
      return timeline.start(a) != timeline.start(b) ? timeline.start(a) < timeline.start(b) : a < b;
    });
    Nanoseconds busy_until = timeline.start(spans.front());
    for (SpanRef span : spans) {
      const Nanoseconds start = timeline.start(span);
      if (start > busy_until && busy_until < window.end && start > window.start) {
        IdleGap gap;
        gap.stream = stream;
        gap.gap = {std::max(busy_until, window.start), std::min(start, window.end)};
        gap.next = span;
        const GapReason reason = reason_of_gap(timeline, links, span, busy_until);
        gap.cause = reason.cause;
        gap.awaited = reason.awaited;
        gaps.push_back(gap);
      }
      busy_until = std::max(busy_until, timeline.end(span));
    }
  }
  return gaps;
}

}  // namespace shardbook::metrics
