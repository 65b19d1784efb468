// scene/path_window: choosing a window and cutting it out; see path_window.hpp.
#include "viewer/scene/path_window.hpp"

#include <algorithm>

namespace shardbook::scene {

using timeline::Class;
using timeline::Track;
using timeline::TrackKind;

namespace {

// Device rows that start within the window: close to what touches it, in O(tracks log spans).
std::size_t device_spans(const Timeline& timeline, Window window) {
  std::size_t sum = 0;
  for (const Track& track : timeline.tracks) {
    if (track.kind != TrackKind::stream) continue;
    const auto first = std::lower_bound(track.start.begin(), track.start.end(), window.start);
    sum += static_cast<std::size_t>(std::lower_bound(first, track.start.end(), window.end) - first);
  }
  return sum;
}

template <class T>
std::vector<T> pick(const std::vector<T>& column, const std::vector<std::uint32_t>& kept) {
  std::vector<T> out;
  out.reserve(kept.size());
  for (std::uint32_t i : kept) out.push_back(column[i]);
  return out;
}

// Which spans of each track are kept, ascending.
using Kept = std::vector<std::vector<std::uint32_t>>;

void keep_device_spans(const Timeline& timeline, const std::vector<metrics::MatchedCollective>& matched, Window window, Kept& kept) {
  for (std::size_t t = 0; t < timeline.tracks.size(); ++t) {
    const Track& track = timeline.tracks[t];
    if (track.kind != TrackKind::stream) continue;
    const auto last = static_cast<std::size_t>(std::upper_bound(track.start.begin(), track.start.end(), window.end) - track.start.begin());
    for (std::uint32_t i = 0; i < last; ++i) {
      if (track.end[i] >= window.start) kept[t].push_back(i);
    }
  }
  // A collective is complete only with all its members.
  for (const metrics::MatchedCollective& collective : matched) {
    const bool touches = std::any_of(collective.spans.begin(), collective.spans.end(), [&](SpanRef span) {
      return timeline.start(span) <= window.end && timeline.end(span) >= window.start;
    });
    for (SpanRef span : collective.spans) {
      const bool inside = timeline.start(span) <= window.end && timeline.end(span) >= window.start;
      if (touches && !inside) kept[span.track].push_back(span.index);
    }
  }
}

void keep_host_spans(const Timeline& timeline, Window window, Kept& kept) {
  for (const timeline::Provenance& provenance : timeline.ranks) {
    std::vector<std::uint32_t> launched;
    for (std::size_t t = 0; t < timeline.tracks.size(); ++t) {
      if (timeline.tracks[t].rank != provenance.rank) continue;
      for (std::uint32_t i : kept[t]) {
        if (timeline.tracks[t].correlation[i] != 0) launched.push_back(timeline.tracks[t].correlation[i]);
      }
    }
    std::sort(launched.begin(), launched.end());
    const auto is_launch = [&](std::uint32_t correlation) {
      return correlation != 0 && !launched.empty() && correlation >= launched.front() && correlation <= launched.back() &&
             std::binary_search(launched.begin(), launched.end(), correlation);
    };
    for (std::size_t t = 0; t < timeline.tracks.size(); ++t) {
      const Track& track = timeline.tracks[t];
      if (track.rank != provenance.rank || track.kind != TrackKind::host) continue;
      for (std::uint32_t i = 0; i < track.size() && track.start[i] <= window.end; ++i) {
        const bool waits = track.cls[i] == Class::sync && track.end[i] >= window.start;
        if (waits || is_launch(track.correlation[i])) kept[t].push_back(i);
      }
    }
  }
}

}  // namespace

PathWindow choose_path_window(const Timeline& timeline, Window whole, const std::vector<Scene::StepWindow>& steps, std::size_t most) {
  const Window common = metrics::common_window(timeline);
  const Window all = common.length() > 0 ? common : whole;
  if (device_spans(timeline, all) <= most) return {all, false};
  // Whole steps from the first.
  Window window{all.start, all.start};
  for (const Scene::StepWindow& step : steps) {
    const Window longer{all.start, std::max(window.end, step.window.end)};
    if (device_spans(timeline, longer) > most) break;
    window = longer;
  }
  if (window.length() > 0) return {window, true};
  // No step is so short: the longest time that is, by bisection.
  Nanoseconds enough = all.start, too_much = all.end;
  while (too_much - enough > 1) {
    const Nanoseconds middle = enough + (too_much - enough) / 2;
    (device_spans(timeline, {all.start, middle}) <= most ? enough : too_much) = middle;
  }
  return {{all.start, enough}, true};
}

Part cut(const Timeline& timeline, const std::vector<metrics::MatchedCollective>& matched, Window window) {
  Part part;
  part.kept.resize(timeline.tracks.size());
  keep_device_spans(timeline, matched, window, part.kept);
  keep_host_spans(timeline, window, part.kept);

  // Columns; and where a span went.
  Timeline& out = part.timeline;
  for (std::size_t t = 0; t < timeline.tracks.size(); ++t) {
    std::vector<std::uint32_t>& kept = part.kept[t];
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    const Track& from = timeline.tracks[t];
    Track& track = out.tracks.emplace_back();
    track.rank = from.rank;
    track.kind = from.kind;
    track.id = from.id;
    track.lane = from.lane;
    track.name = from.name;
    track.start = pick(from.start, kept);
    track.end = pick(from.end, kept);
    track.label = pick(from.label, kept);
    track.correlation = pick(from.correlation, kept);
    track.detail = pick(from.detail, kept);
    track.collective = pick(from.collective, kept);
    track.step = pick(from.step, kept);
    track.cls = pick(from.cls, kept);
    track.flags = pick(from.flags, kept);
  }
  const auto place = [&](SpanRef span) {
    const std::vector<std::uint32_t>& kept = part.kept[span.track];
    const auto at = std::lower_bound(kept.begin(), kept.end(), span.index);
    if (at == kept.end() || *at != span.index) return SpanRef{};
    return SpanRef{span.track, static_cast<std::uint32_t>(at - kept.begin())};
  };

  // Only the collectives that are left; those that match by order get the number that they have in the whole.
  out.strings = timeline.strings;
  out.details = timeline.details;
  out.groups = timeline.groups;
  out.ranks = timeline.ranks;
  out.steps = timeline.steps;      // each has a path of its own
  out.base_ns = timeline.base_ns;
  for (Track& track : out.tracks) {
    for (std::uint32_t& collective : track.collective) {
      if (collective == 0) continue;
      out.collectives.push_back(timeline.collectives[collective]);
      collective = static_cast<std::uint32_t>(out.collectives.size() - 1);
    }
  }
  for (const metrics::MatchedCollective& collective : matched) {
    for (SpanRef span : collective.spans) {
      const SpanRef here = place(span);
      if (here.valid()) out.collectives[out.tracks[here.track].collective[here.index]].seq = collective.seq;
    }
  }
  std::vector<timeline::Edge> edges;
  for (const timeline::Edge& edge : timeline.edges) {
    const SpanRef from = place(edge.from), to = place(edge.to);
    if (from.valid() && to.valid()) edges.push_back({from, to, edge.kind});
  }
  out.edges = timeline::Edges(edges);
  return part;
}

}  // namespace shardbook::scene
