// scene/row_busy: which coverage a row is made of; see row_busy.hpp.
#include "viewer/scene/row_busy.hpp"

#include <algorithm>

namespace shardbook::scene {

void BusyColumns::put(const Coverage& coverage, std::size_t place, std::span<const Nanoseconds> edges) {
  if (coverage.empty()) return;
  of_[place].resize(edges.size() - 1);
  coverage.columns(edges, of_[place]);
}

void BusyColumns::fill(const Scene& scene, const Row& row, int depth, std::span<const Nanoseconds> edges) {
  for (auto& column : of_) column.clear();
  if (row.track >= 0) {
    const TrackIndex& index = scene.index(static_cast<std::size_t>(row.track));
    if (!index.depths.empty()) {
      const auto level = static_cast<std::size_t>(depth);
      if (level < index.depths.size()) put(index.depths[level], lane_classes - 1, edges);
    } else if (depth == 0) {
      for (std::size_t c = 0; c < lane_classes; ++c) put(index.classes[c], c, edges);
    }
    return;
  }
  const RankScene* rank = scene.rank(row.rank);
  if (rank == nullptr || depth != 0) return;
  if (row.kind == RowKind::exposed) put(rank->exposed, 1, edges);
  if (row.kind == RowKind::critical) put(rank->critical, 3, edges);
  if (row.kind != RowKind::rank && row.kind != RowKind::idle) return;
  put(rank->compute, 0, edges);
  put(rank->exposed, 1, edges);
  put(rank->exposed_memory, 2, edges);
  if (row.kind == RowKind::rank) return;

  // Idle is what is left of the run's whole.
  const Window whole = scene.whole();
  of_[3].assign(edges.size() - 1, 0);
  for (std::size_t i = 0; i < of_[3].size(); ++i) {
    const Nanoseconds inside = std::min(edges[i + 1], whole.end) - std::max(edges[i], whole.start);
    const Busy busy = at(i);
    of_[3][i] = std::max<Nanoseconds>(inside, 0) - busy[0] - busy[1] - busy[2];
  }
  for (std::size_t c = 0; c < 3; ++c) of_[c].clear();
}

std::array<Nanoseconds, 4> Scene::busy(const Row& row, Window window) const {
  if (window.end <= window.start) return {};
  const std::array<Nanoseconds, 2> edges{window.start, window.end};
  BusyColumns columns;
  columns.fill(*this, row, 0, edges);
  return columns.at(0);
}

}  // namespace shardbook::scene
