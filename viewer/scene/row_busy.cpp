// scene/row_busy: which coverage a row is made of; see row_busy.hpp.
#include "viewer/scene/row_busy.hpp"

#include <algorithm>

namespace shardbook::scene {
namespace {

// One coverage into one of the four places.
void put(const Coverage& coverage, std::size_t place, std::span<const Nanoseconds> edges, std::vector<Busy>& out) {
  if (coverage.empty()) return;
  thread_local std::vector<Nanoseconds> column;
  column.resize(out.size());
  coverage.columns(edges, column);
  for (std::size_t i = 0; i < out.size(); ++i) out[i][place] = column[i];
}

}  // namespace

void busy_columns(const Scene& scene, const Row& row, int depth, std::span<const Nanoseconds> edges, std::vector<Busy>& out) {
  out.assign(edges.size() - 1, Busy{});
  const RankScene* rank = scene.rank(row.rank);
  if (row.track >= 0) {
    const TrackIndex& index = scene.index(static_cast<std::size_t>(row.track));
    if (!index.depths.empty()) {
      const auto level = static_cast<std::size_t>(depth);
      if (level < index.depths.size()) put(index.depths[level], lane_classes - 1, edges, out);
    } else if (depth == 0) {
      for (std::size_t c = 0; c < lane_classes; ++c) put(index.classes[c], c, edges, out);
    }
    return;
  }
  if (rank == nullptr || depth != 0) return;
  switch (row.kind) {
    case RowKind::exposed: put(rank->exposed, 1, edges, out); return;
    case RowKind::critical: put(rank->critical, 3, edges, out); return;
    case RowKind::idle: {
      // What is left of the run's whole.
      put(rank->busy, 3, edges, out);
      const Window whole = scene.whole();
      for (std::size_t i = 0; i < out.size(); ++i) {
        const Nanoseconds inside = std::min(edges[i + 1], whole.end) - std::max(edges[i], whole.start);
        out[i][3] = std::max<Nanoseconds>(inside, 0) - out[i][3];
      }
      return;
    }
    case RowKind::rank:
      put(rank->compute, 0, edges, out);
      put(rank->exposed, 1, edges, out);
      put(rank->busy, 2, edges, out);
      for (Busy& busy : out) busy[2] -= busy[0] + busy[1];
      return;
    default: return;
  }
}

std::array<Nanoseconds, 4> Scene::busy(const Row& row, Window window) const {
  if (window.end <= window.start) return {};
  const std::array<Nanoseconds, 2> edges{window.start, window.end};
  std::vector<Busy> out;
  busy_columns(*this, row, 0, edges, out);
  return out.front();
}

}  // namespace shardbook::scene
