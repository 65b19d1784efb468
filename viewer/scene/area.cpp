// scene/area: figures of a rectangle; see area.hpp.
#include "viewer/scene/area.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace shardbook::scene {

using timeline::Class;
using timeline::Track;
using timeline::TrackKind;

namespace {

// Lengths of one label's spans.
struct Gathered {
  std::vector<Nanoseconds> lengths;
  Nanoseconds inside = 0;
};

// The value below which a share of the (partly sorted) lengths lies; of an even number the lower middle.
Nanoseconds quantile(std::vector<Nanoseconds>& lengths, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(lengths.size() - 1));
  std::nth_element(lengths.begin(), lengths.begin() + at, lengths.end());
  return lengths[static_cast<std::size_t>(at)];
}

// The tracks that a row stands for, and which of their spans.
struct Source {
  std::uint32_t track;
  bool only_communication;
  friend auto operator<=>(const Source&, const Source&) = default;
};

void add_sources(const Scene& scene, const Row& row, std::set<Source>& sources) {
  if (row.track >= 0) {
    sources.insert({static_cast<std::uint32_t>(row.track), false});
    return;
  }
  if (row.kind != RowKind::rank && row.kind != RowKind::exposed) return;
  for (std::uint32_t t = 0; t < scene.timeline().tracks.size(); ++t) {
    const Track& track = scene.timeline().tracks[t];
    if (track.rank == row.rank && track.kind == TrackKind::stream) sources.insert({t, row.kind == RowKind::exposed});
  }
}

}  // namespace

AreaFigures area_figures(const Scene& scene, const std::vector<Row>& rows, Window window) {
  AreaFigures out;
  out.window = window;
  std::set<Rank> ranks;
  std::set<Source> sources;
  for (const Row& row : rows) {
    ranks.insert(row.rank);
    add_sources(scene, row, sources);
  }
  for (Rank rank : ranks) {
    if (const RankScene* of = scene.rank(rank)) out.ranks.push_back({rank, of->partition(window)});
  }
  if (rows.size() == 1) {
    for (Nanoseconds busy : scene.busy(rows.front(), window)) out.row_busy += busy;
  }
  if (window.end <= window.start) return out;

  // A track that a row shows whole is not counted again for its exposed part.
  std::map<std::pair<std::uint32_t, Class>, Gathered> by_label;
  for (const auto& [t, only_communication] : sources) {
    if (only_communication && sources.contains({t, false})) continue;
    const Track& track = scene.timeline().tracks[t];
    const auto count = [&](std::uint32_t i) {
      if (track.end[i] <= window.start && track.start[i] < window.start) return;
      if (only_communication && track.cls[i] != Class::communication) return;
      Gathered& label = by_label[{track.label[i], track.cls[i]}];
      label.lengths.push_back(track.end[i] - track.start[i]);
      label.inside += std::min(track.end[i], window.end) - std::max(track.start[i], window.start);
    };
    const TrackIndex::Found found = scene.index(t).find(track, window);
    for (std::uint32_t i : found.outer) count(i);
    for (std::uint32_t i = found.first; i < found.last; ++i) count(i);
  }
  for (auto& [key, label] : by_label) {
    LabelRow row;
    row.label = std::string(scene.timeline().strings[key.first]);
    row.cls = key.second;
    row.count = static_cast<std::int64_t>(label.lengths.size());
    for (Nanoseconds length : label.lengths) row.sum += length;
    row.median = quantile(label.lengths, 0.5);
    row.p95 = quantile(label.lengths, 0.95);
    const auto [least, most] = std::minmax_element(label.lengths.begin(), label.lengths.end());
    row.least = *least;
    row.most = *most;
    row.inside = label.inside;
    out.labels.push_back(std::move(row));
  }
  std::stable_sort(out.labels.begin(), out.labels.end(), [](const LabelRow& a, const LabelRow& b) { return a.inside > b.inside; });
  return out;
}

}  // namespace shardbook::scene
