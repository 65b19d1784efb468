// metrics/dependencies: candidates and the latest of them; see dependencies.hpp.
#include "engine/metrics/dependencies.hpp"

#include <algorithm>

namespace shardbook::metrics {

using timeline::Class;
using timeline::Edge;
using timeline::EdgeKind;
using timeline::Track;
using timeline::TrackKind;

Dependencies::Dependencies(const Timeline& timeline, Window window) : timeline_(timeline), known_(window) {
  for (const timeline::Provenance& provenance : timeline.ranks) {
    ranks_.emplace(provenance.rank, OfRank(timeline::Links(timeline, provenance.rank)));
  }
  const auto inside = [&](const Track& track, std::uint32_t i) {
    return track.end[i] >= window.start && track.start[i] <= window.end;
  };
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const Track& track = timeline.tracks[t];
    const auto rank = ranks_.find(track.rank);
    if (rank == ranks_.end()) continue;
    for (std::uint32_t i = 0; i < track.size(); ++i) {
      if (!inside(track, i)) continue;
      // The CPU's work in a stream decides starts as a kernel does
      if (track.kind == TrackKind::stream && is_op_of_stream(track.cls[i])) {
        rank->second.streams[track.id].push_back({t, i});
        rank->second.by_end.push_back({t, i});
      } else if (track.kind == TrackKind::host && track.cls[i] == Class::sync) {
        host_waits_[track.rank].push_back({t, i});
      }
    }
  }

  const auto starts_first = [&](SpanRef a, SpanRef b) {
    return timeline.start(a) != timeline.start(b) ? timeline.start(a) < timeline.start(b) : a < b;
  };
  const auto ends_first = [&](SpanRef a, SpanRef b) {
    return timeline.end(a) != timeline.end(b) ? timeline.end(a) < timeline.end(b) : a < b;
  };
  for (auto& [number, rank] : ranks_) {
    for (auto& [stream, spans] : rank.streams) std::sort(spans.begin(), spans.end(), starts_first);
    std::sort(rank.by_end.begin(), rank.by_end.end(), ends_first);
  }
  for (auto& [number, waits] : host_waits_) std::sort(waits.begin(), waits.end(), ends_first);
  for (const Edge& edge : timeline.edges) {
    if (edge.kind != EdgeKind::event) continue;
    if (const auto rank = ranks_.find(timeline.rank(edge.to)); rank != ranks_.end()) rank->second.has_edges = true;
  }
}

SpanRef Dependencies::before_on_stream(const OfRank& rank, SpanRef span) const {
  const auto stream = rank.streams.find(timeline_.tracks[span.track].id);
  if (stream == rank.streams.end()) return {};
  const auto& spans = stream->second;
  const auto at = std::lower_bound(spans.begin(), spans.end(), span, [&](SpanRef a, SpanRef b) {
    return timeline_.start(a) != timeline_.start(b) ? timeline_.start(a) < timeline_.start(b) : a < b;
  });
  return at == spans.begin() || !touches(*std::prev(at)) ? SpanRef{} : *std::prev(at);
}

SpanRef Dependencies::last_ended_of(const OfRank& rank, Nanoseconds time) const {
  const auto after = std::upper_bound(rank.by_end.begin(), rank.by_end.end(), time,
                                      [&](Nanoseconds wanted, SpanRef span) { return wanted < timeline_.end(span); });
  return after == rank.by_end.begin() || !touches(*std::prev(after)) ? SpanRef{} : *std::prev(after);
}

std::size_t Dependencies::device_spans() const {
  std::size_t sum = 0;
  for (const auto& [number, rank] : ranks_) {
    const auto first = std::partition_point(rank.by_end.begin(), rank.by_end.end(), [&](SpanRef span) { return timeline_.end(span) < known_.start; });
    const auto last = std::partition_point(first, rank.by_end.end(), [&](SpanRef span) { return timeline_.end(span) <= known_.end; });
    sum += static_cast<std::size_t>(last - first);
  }
  return sum;
}

SpanRef Dependencies::last_ended(Nanoseconds time) const {
  SpanRef latest;
  for (const auto& [number, rank] : ranks_) {
    const SpanRef span = last_ended_of(rank, time);
    if (span.valid() && (!latest.valid() || timeline_.end(span) > timeline_.end(latest))) latest = span;
  }
  return latest;
}

Decision Dependencies::decide(SpanRef span) const {
  const OfRank& rank = ranks_.at(timeline_.rank(span));
  const Nanoseconds start = timeline_.start(span);
  Decision best;
  const auto consider = [&](SpanRef from, EdgeKind kind, bool inferred) {
    if (!from.valid() || timeline_.end(from) > start) return;
    if (best.from.valid() && timeline_.end(from) <= timeline_.end(best.from)) return;
    best = {Decision::Kind::device, from, kind, inferred};
  };

  // What its edges name first, so that of two that ended together the stated reason wins.
  const auto first = std::lower_bound(timeline_.edges.begin(), timeline_.edges.end(), span,
                                      [](const Edge& edge, SpanRef wanted) { return edge.to < wanted; });
  for (auto edge = first; edge != timeline_.edges.end() && edge->to == span; ++edge) {
    const bool from_device = timeline_.tracks[edge->from.track].kind == TrackKind::stream;
    if (from_device && edge->kind != EdgeKind::collective) consider(edge->from, edge->kind, false);
  }
  consider(before_on_stream(rank, span), EdgeKind::stream, false);

  // A trace without event edges: what ended last before it, if it was launched before that.
  const SpanRef call = rank.links.launch_of(span);
  if (!rank.has_edges) {
    const SpanRef last = last_ended_of(rank, start);
    const bool earlier = last.valid() && timeline_.start(last) < start;
    if (earlier && call.valid() && timeline_.start(call) <= timeline_.end(last)) consider(last, EdgeKind::event, true);
  }

  // The host, if it came later than all of these.
  if (call.valid() && timeline_.start(call) <= start &&
      (!best.from.valid() || timeline_.start(call) > timeline_.end(best.from))) {
    return {Decision::Kind::host, call};
  }
  return best;
}

SpanRef Dependencies::host_wait_before(Rank rank, Nanoseconds time) const {
  const auto found = host_waits_.find(rank);
  if (found == host_waits_.end()) return {};
  const auto after = std::upper_bound(found->second.begin(), found->second.end(), time,
                                      [&](Nanoseconds wanted, SpanRef wait) { return wanted < timeline_.end(wait); });
  return after == found->second.begin() || !touches(*std::prev(after)) ? SpanRef{} : *std::prev(after);
}

SpanRef Dependencies::released_by(SpanRef wait) const {
  const Nanoseconds start = timeline_.start(wait), end = timeline_.end(wait);
  SpanRef latest;
  const auto consider = [&](SpanRef from) {
    const Nanoseconds ended = timeline_.end(from);
    if (ended <= start || ended > end) return;
    if (!latest.valid() || ended > timeline_.end(latest)) latest = from;
  };
  const auto first = std::lower_bound(timeline_.edges.begin(), timeline_.edges.end(), wait,
                                      [](const Edge& edge, SpanRef wanted) { return edge.to < wanted; });
  bool stated = false;
  for (auto edge = first; edge != timeline_.edges.end() && edge->to == wait; ++edge) {
    if (timeline_.tracks[edge->from.track].kind != TrackKind::stream) continue;
    stated = true;
    consider(edge->from);
  }
  if (!stated) {
    const SpanRef last = last_ended_of(ranks_.at(timeline_.rank(wait)), end);
    if (last.valid()) consider(last);
  }
  return latest;
}

}  // namespace shardbook::metrics
