#include <algorithm>
#include <cmath>
#include <map>

#include "viewer/lanes/parts.hpp"
#include "viewer/lanes/sight.hpp"
#include "viewer/scene/navigate.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::lanes {

using scene::SpanRef;
using ui::px;
using ui::theme;

namespace {

// Where in the row that shows this track: 0 is its top, 1 its bottom; none if no row shows it.
std::optional<float> row_height(const PlotState& state, const std::vector<Placed>& placed, const Frame& body, std::uint32_t track, float share = 0.5f) {
  for (std::size_t i = 0; i < state.rows.size(); ++i) {
    if (state.rows[i].track == static_cast<std::int32_t>(track)) return body.from.y + placed[i].top - state.scroll + placed[i].height * share;
  }
  return std::nullopt;
}

void draw_head(ImDrawList* list, ImVec2 tip, ImU32 colour) {
  const float r = px(5);
  list->AddTriangleFilled(tip, {tip.x - r, tip.y - r * 0.6f}, {tip.x - r, tip.y + r * 0.6f}, colour);
}

ImU32 colour_of(timeline::EdgeKind kind) {
  switch (kind) {
    case timeline::EdgeKind::host: return theme().dim;
    case timeline::EdgeKind::collective: return theme().accent;
    case timeline::EdgeKind::event: return theme().warning;
    default: return theme().text;
  }
}

}  // namespace

void draw_arrows(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const std::vector<Placed>& placed, const Frame& body) {
  if (!state.selected.valid()) return;
  const scene::Arrows arrows = scene::arrows_of(scene, state.selected);
  list->PushClipRect(body.from, body.to, true);
  const auto draw = [&](const scene::Arrow& arrow) {
    const std::optional<float> y0 = row_height(state, placed, body, arrow.from.track), y1 = row_height(state, placed, body, arrow.to.track);
    if (!y0 || !y1) return;
    const bool of_ranks = arrow.kind == timeline::EdgeKind::collective;
    // A wait ends where its cause ended; ranks of one collective are joined where they start.
    const base::Nanoseconds from = of_ranks || arrow.kind == timeline::EdgeKind::host ? scene.timeline().start(arrow.from) : scene.timeline().end(arrow.from);
    const float x0 = body.from.x + near_x(state.view, from), x1 = body.from.x + near_x(state.view, scene.timeline().start(arrow.to));
    const ImU32 colour = colour_of(arrow.kind);
    if (of_ranks) {
      list->AddLine({x0, *y0}, {x1, *y1}, colour, px(1.5f));
      return;
    }
    const float bend = std::max(px(18), std::min(std::abs(x1 - x0) / 2, px(80)));
    list->AddBezierCubic({x0, *y0}, {x0 + bend, *y0}, {x1 - bend, *y1}, {x1 - px(4), *y1}, colour, px(1.5f));
    list->AddCircleFilled({x0, *y0}, px(3), colour);
    draw_head(list, {x1, *y1}, colour);
  };
  for (const scene::Arrow& arrow : arrows.in) draw(arrow);
  for (const scene::Arrow& arrow : arrows.out) draw(arrow);
  list->PopClipRect();
}

void draw_critical_path(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const std::vector<Placed>& placed, const Frame& body) {
  // One line along the upper edges of the rows, so that words stay readable; a pixel belongs to the first piece on it.
  // Of pieces that no row shows, too, not all of a pixel are looked at.
  constexpr float drawn = 1, not_drawn = 0.125f;
  const std::vector<metrics::PathPiece>& pieces = scene.path().pieces;
  std::map<std::uint32_t, std::optional<float>> heights;
  std::vector<ImVec2> points;
  const auto add = [&](const metrics::PathPiece& piece, float x0, float x1) {
    if (piece.kind != metrics::PathKind::span || !piece.span.valid()) return not_drawn;
    auto found = heights.find(piece.span.track);
    if (found == heights.end()) found = heights.emplace(piece.span.track, row_height(state, placed, body, piece.span.track, 0.1f)).first;
    if (!found->second) return not_drawn;
    points.push_back({body.from.x + x0, *found->second});
    points.push_back({body.from.x + x1, *found->second});
    return drawn;
  };
  each_in_sight(pieces.begin(), pieces.end(), state.view, [](const metrics::PathPiece& piece) { return piece.time; }, add);
  list->PushClipRect(body.from, body.to, true);
  const ImU32 colour = theme().paint[static_cast<std::size_t>(scene::Paint::critical)];
  if (points.size() > 1) {
    list->AddPolyline(points.data(), static_cast<int>(points.size()), (theme().ground & ~IM_COL32_A_MASK) | IM_COL32(0, 0, 0, 160), 0, px(4));
    list->AddPolyline(points.data(), static_cast<int>(points.size()), colour, 0, px(2));
  }
  list->PopClipRect();
}

}  // namespace shardbook::lanes
