// scene/navigate: neighbours, edges, the span under a point; see navigate.hpp.
#include "viewer/scene/navigate.hpp"

#include <algorithm>

#include "engine/base/check.hpp"

namespace shardbook::scene {

using timeline::Class;
using timeline::EdgeKind;
using timeline::Track;
using timeline::TrackKind;

namespace {

// The best of what was offered: covers the time, deepest; else the nearest.
class Nearest {
 public:
  Nearest(const Timeline& timeline, Nanoseconds time) : timeline_(timeline), time_(time) {}
  void offer(SpanRef span, int depth) {
    const Nanoseconds start = timeline_.start(span), end = timeline_.end(span);
    const Nanoseconds distance = time_ < start ? start - time_ : time_ >= end ? time_ - end + 1 : 0;
    if (best_.valid() && (distance > distance_ || (distance == distance_ && depth <= depth_))) return;
    best_ = span;
    distance_ = distance;
    depth_ = depth;
  }
  SpanRef within(Nanoseconds tolerance) const { return best_.valid() && distance_ <= tolerance ? best_ : SpanRef{}; }

 private:
  const Timeline& timeline_;
  Nanoseconds time_, distance_ = 0;
  int depth_ = 0;
  SpanRef best_;
};

constexpr Nanoseconds any_distance = Nanoseconds{1} << 62;

// The spans of a track around a time: those that cover it, and a few on both sides.
void offer_track(const Scene& scene, std::uint32_t t, Nanoseconds time, int depth, bool only_communication, Nearest& nearest) {
  const Track& track = scene.timeline().tracks[t];
  const TrackIndex& index = scene.index(t);
  const auto fits = [&](std::uint32_t i) {
    return (depth < 0 || index.depth(i) == depth) && (!only_communication || track.cls[i] == Class::communication);
  };
  const TrackIndex::Found found = index.find(track, {time, time + 1});
  for (std::uint32_t i : found.outer) {
    if (fits(i)) nearest.offer({t, i}, index.depth(i));
  }
  constexpr std::uint32_t around = 64;
  const auto size = static_cast<std::uint32_t>(track.size());
  for (std::uint32_t i = found.first > around ? found.first - around : 0; i < std::min(found.first + around, size); ++i) {
    if (fits(i)) nearest.offer({t, i}, index.depth(i));
  }
}

void offer_row(const Scene& scene, const Row& row, Nanoseconds time, int depth, Nearest& nearest) {
  const Timeline& timeline = scene.timeline();
  if (row.track >= 0) {
    offer_track(scene, static_cast<std::uint32_t>(row.track), time, depth, false, nearest);
    return;
  }
  const RankScene* rank = scene.rank(row.rank);
  if (rank == nullptr) return;
  if (row.kind == RowKind::critical) {
    const auto& pieces = scene.path().pieces;
    const auto at = std::upper_bound(rank->pieces.begin(), rank->pieces.end(), time,
                                     [&](Nanoseconds wanted, std::uint32_t place) { return wanted < pieces[place].time.end; });
    for (auto piece = at == rank->pieces.begin() ? at : std::prev(at); piece != rank->pieces.end() && piece <= at; ++piece) {
      nearest.offer(pieces[*piece].span, 0);
    }
    return;
  }
  if (row.kind != RowKind::rank && row.kind != RowKind::exposed) return;
  // Of a rank's streams, compute is drawn before what it covers.
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    if (timeline.tracks[t].rank != row.rank || timeline.tracks[t].kind != TrackKind::stream) continue;
    offer_track(scene, t, time, -1, row.kind == RowKind::exposed, nearest);
  }
}

}  // namespace

SpanRef span_at(const Scene& scene, const Row& row, Nanoseconds time, int depth, Nanoseconds tolerance) {
  Nearest nearest(scene.timeline(), time);
  offer_row(scene, row, time, depth, nearest);
  return nearest.within(std::max<Nanoseconds>(tolerance, 0));
}

SpanRef nearest_on(const Scene& scene, const Row& row, Nanoseconds time) {
  Nearest nearest(scene.timeline(), time);
  offer_row(scene, row, time, -1, nearest);
  return nearest.within(any_distance);
}

SpanRef next_on_track(const Scene& scene, SpanRef span) {
  if (!span.valid() || span.index + 1 >= scene.timeline().tracks[span.track].size()) return {};
  return {span.track, span.index + 1};
}

SpanRef previous_on_track(const Scene&, SpanRef span) {
  if (!span.valid() || span.index == 0) return {};
  return {span.track, span.index - 1};
}

Scene::StepWindow step_at(const Scene& scene, double time) {
  for (const Scene::StepWindow& step : scene.steps()) {
    if (time >= static_cast<double>(step.window.start) && time < static_cast<double>(step.window.end)) return step;
  }
  return {-1, scene.whole()};
}

std::vector<SpanRef> exposed_in(const Scene& scene, const Scene::StepWindow& step) {
  const Timeline& timeline = scene.timeline();
  std::vector<SpanRef> spans;
  for (const metrics::Exposure& exposure : scene.exposures()) {
    const double middle = (static_cast<double>(timeline.start(exposure.span)) + static_cast<double>(timeline.end(exposure.span))) / 2;
    // Steps of different ranks may overlap; each span is of one of them.
    if (step.number < 0 || step_at(scene, middle).number == step.number) spans.push_back(exposure.span);
  }
  return spans;
}

int place_in(const std::vector<SpanRef>& exposed, SpanRef span) {
  const auto found = std::find(exposed.begin(), exposed.end(), span);
  return found == exposed.end() ? -1 : static_cast<int>(found - exposed.begin());
}

int exposed_after(const std::vector<SpanRef>& exposed, int from, int by) {
  const auto count = static_cast<int>(exposed.size());
  if (count == 0) return -1;
  if (from < 0 && by < 0) return count - 1;
  return ((from + by) % count + count) % count;
}

// --- Arrows -------------------------------------------------------------------------------------------

namespace {

std::string who(const Scene& scene, SpanRef span) {
  const Timeline& timeline = scene.timeline();
  const timeline::Detail& detail = timeline.detail(span);
  std::string out(timeline.label(span));
  if (detail.layer >= 0) out += base::text(" of layer ", detail.layer);
  return out;
}

std::string words_of(const Scene& scene, const timeline::Edge& edge) {
  const Timeline& timeline = scene.timeline();
  const std::string awaits = line_text(timeline, timeline.detail(edge.to).awaits);
  switch (edge.kind) {
    case EdgeKind::stream: return "runs after it on its stream";
    case EdgeKind::event: return awaits.empty() ? "awaits an event recorded after it" : "awaits the event recorded at " + awaits;
    case EdgeKind::host:
      return timeline.tracks[edge.from.track].kind == TrackKind::host ? "is launched by this call" : "the host waits for it";
    case EdgeKind::collective: return base::text("is the same collective as on rank ", timeline.rank(edge.from));
    case EdgeKind::communicator: return "is issued after it on the same communicator";
    case EdgeKind::limiter: return "is held back by the limiter until it has ended" + (awaits.empty() ? "" : " (event at " + awaits + ")");
    case EdgeKind::buffer: return "writes memory that it still used" + (awaits.empty() ? "" : " (event at " + awaits + ")");
  }
  return "";
}

}  // namespace

Arrows arrows_of(const Scene& scene, SpanRef span) {
  Arrows out;
  if (!span.valid()) return out;
  const Timeline& timeline = scene.timeline();
  const auto add = [&](std::vector<Arrow>& list, const timeline::Edge& edge) {
    const bool there = std::any_of(list.begin(), list.end(), [&](const Arrow& arrow) { return arrow.from == edge.from && arrow.to == edge.to; });
    if (!there) list.push_back({edge.from, edge.to, edge.kind, words_of(scene, edge)});
  };

  // Recorded edges. They ascend by where they lead to.
  auto at = std::lower_bound(timeline.edges.begin(), timeline.edges.end(), span,
                             [](const timeline::Edge& edge, SpanRef wanted) { return edge.to < wanted; });
  for (; at != timeline.edges.end() && at->to == span; ++at) add(out.in, *at);
  for (std::uint32_t edge : scene.edges_from(span)) add(out.out, timeline.edges[edge]);

  // The launch, which is found by correlation.
  if (timeline.correlation(span) != 0 && scene.rank(timeline.rank(span)) != nullptr) {
    const timeline::Links& links = scene.links(timeline.rank(span));
    if (timeline.tracks[span.track].kind == TrackKind::host) {
      if (const SpanRef launched = links.launched_by(span); launched.valid()) add(out.out, {span, launched, EdgeKind::host});
    } else if (const SpanRef call = links.launch_of(span); call.valid()) {
      add(out.in, {call, span, EdgeKind::host});
    }
  }

  // The other ranks of its collective: from the one that came last, to the others.
  if (const metrics::MatchedCollective* collective = scene.collective_of(span)) {
    for (SpanRef other : collective->spans) {
      if (other == span) continue;
      const bool came_last = timeline.rank(other) == collective->last_rank && collective->skew_is_significant();
      std::string words = base::text("the same ", who(scene, other), " on rank ", timeline.rank(other));
      if (came_last) words += base::text(", which came last, ", metrics::duration_text(timeline.start(other) - timeline.start(span)), " later");
      const bool there = std::any_of(out.in.begin(), out.in.end(), [&](const Arrow& arrow) { return arrow.from == other; }) ||
                         std::any_of(out.out.begin(), out.out.end(), [&](const Arrow& arrow) { return arrow.to == other; });
      if (there) continue;
      if (came_last) out.in.push_back({other, span, EdgeKind::collective, words});
      else out.out.push_back({span, other, EdgeKind::collective, words});
    }
  }
  return out;
}

}  // namespace shardbook::scene
