#include <algorithm>
#include <cmath>
#include <map>

#include "viewer/lanes/parts.hpp"
#include "viewer/lanes/sight.hpp"
#include "viewer/scene/navigate.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::lanes {

using scene::SpanRef;
using ui::px;
using ui::theme;

namespace {

// Where in the row that shows this track, or else its rank: 0 is its top, 1 its bottom; none if no row shows either.
std::optional<float> row_height(const scene::Scene& scene, const PlotState& state, const std::vector<Placed>& placed, const Frame& body, std::uint32_t track,
                                float share = 0.5f) {
  const base::Rank rank = scene.timeline().tracks[track].rank;
  std::optional<float> of_rank;
  for (std::size_t i = 0; i < state.rows.size(); ++i) {
    const float y = body.from.y + placed[i].top - state.scroll + placed[i].height * share;
    if (state.rows[i].track == static_cast<std::int32_t>(track)) return y;
    if (state.rows[i].kind == scene::RowKind::rank && state.rows[i].rank == rank && !state.rows[i].is_open) of_rank = y;
  }
  return of_rank;
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

// Of several edges between the selection and one row, the one that decided: the cause that ended last, the effect that
// began first. The other ranks of a collective stay all.
std::vector<scene::Arrow> deciding(const scene::Scene& scene, const std::vector<scene::Arrow>& arrows, bool in) {
  std::vector<scene::Arrow> kept;
  const auto time = [&](const scene::Arrow& arrow) { return in ? scene.timeline().end(arrow.from) : -scene.timeline().start(arrow.to); };
  for (const scene::Arrow& arrow : arrows) {
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const scene::Arrow& other) {
      return (in ? other.from.track == arrow.from.track : other.to.track == arrow.to.track) && other.kind != timeline::EdgeKind::collective &&
             arrow.kind != timeline::EdgeKind::collective;
    });
    if (same == kept.end()) kept.push_back(arrow);
    else if (time(arrow) > time(*same)) *same = arrow;
  }
  return kept;
}

}  // namespace

void draw_arrows(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const std::vector<Placed>& placed, const Frame& body) {
  if (!state.selected.valid()) return;
  const scene::Arrows arrows = scene::arrows_of(scene, state.selected);
  list->PushClipRect(body.from, body.to, true);
  // All that lead to the selection end at one point, which has one head.
  std::optional<ImVec2> head;
  ImU32 head_colour = 0;
  const auto draw = [&](const scene::Arrow& arrow, bool in) {
    const std::optional<float> y0 = row_height(scene, state, placed, body, arrow.from.track), y1 = row_height(scene, state, placed, body, arrow.to.track);
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
    // Too close for a curve that can be seen: straight down or up, and nothing within one row.
    if (std::abs(x1 - x0) < px(14)) {
      if (std::abs(*y1 - *y0) < px(8)) return;
      list->AddLine({x0, *y0}, {x1, *y1}, colour, px(1.5f));
      list->AddCircleFilled(in ? ImVec2{x0, *y0} : ImVec2{x1, *y1}, px(2.5f), colour);
      return;
    }
    const float bend = std::max(px(18), std::min(std::abs(x1 - x0) / 2, px(80)));
    list->AddBezierCubic({x0, *y0}, {x0 + bend, *y0}, {x1 - bend, *y1}, {x1 - px(4), *y1}, colour, px(1.5f));
    list->AddCircleFilled({x0, *y0}, px(3), colour);
    if (!in) return draw_head(list, {x1, *y1}, colour);
    head = ImVec2{x1, *y1};
    head_colour = colour;
  };
  for (const scene::Arrow& arrow : deciding(scene, arrows.in, true)) draw(arrow, true);
  for (const scene::Arrow& arrow : deciding(scene, arrows.out, false)) draw(arrow, false);
  if (head) draw_head(list, *head, head_colour);
  list->PopClipRect();
}

void draw_critical_path(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const std::vector<Placed>& placed, const Frame& body) {
  // One line along the upper edges of the rows, so that words stay readable; a pixel belongs to the first piece on it.
  // Of pieces that no row shows, too, not all of a pixel are looked at.
  constexpr float drawn = 1, not_drawn = 0.125f;
  const std::vector<metrics::PathPiece>& pieces = scene.path().pieces;
  std::map<std::uint32_t, std::optional<float>> heights;
  std::vector<ImVec2> points;
  std::vector<std::pair<ImVec2, ImVec2>> crossings;     // where it goes over to another rank
  std::vector<base::Rank> crossed_to;
  std::optional<base::Rank> on;
  const auto add = [&](const metrics::PathPiece& piece, float x0, float x1) {
    if (piece.kind != metrics::PathKind::span || !piece.span.valid()) return not_drawn;
    auto found = heights.find(piece.span.track);
    if (found == heights.end()) found = heights.emplace(piece.span.track, row_height(scene, state, placed, body, piece.span.track, 0.1f)).first;
    if (!found->second) return not_drawn;
    const ImVec2 from{body.from.x + x0, *found->second};
    if (on && *on != piece.rank && !points.empty()) {
      crossings.push_back({points.back(), from});
      crossed_to.push_back(piece.rank);
    }
    on = piece.rank;
    points.push_back(from);
    points.push_back({body.from.x + x1, from.y});
    return drawn;
  };
  each_in_sight(pieces.begin(), pieces.end(), state.view, [](const metrics::PathPiece& piece) { return piece.time; }, add);
  list->PushClipRect(body.from, body.to, true);
  const ImU32 colour = theme().paint[static_cast<std::size_t>(scene::Paint::critical)];
  if (points.size() > 1) {
    list->AddPolyline(points.data(), static_cast<int>(points.size()), (theme().ground & ~IM_COL32_A_MASK) | IM_COL32(0, 0, 0, 160), 0, px(4));
    list->AddPolyline(points.data(), static_cast<int>(points.size()), colour, 0, px(2));
  }
  // A point at both ends of each crossing, and whose turn it is where the next crossing is far enough.
  float words_to = body.from.x;
  ImFont* font = ui::font(page::FontKind::small);
  for (std::size_t i = 0; i < crossings.size(); ++i) {
    const auto& [from, to] = crossings[i];
    list->AddCircleFilled(from, px(3), colour);
    list->AddCircleFilled(to, px(4), colour);
    const std::string words = "rank " + std::to_string(crossed_to[i]);
    const float width = ui::measure().width(words, page::FontKind::small), x = to.x + px(6);
    if (x < words_to || x + width > body.to.x || to.x < body.from.x) continue;
    list->AddRectFilled({x - px(2), to.y - font->FontSize / 2}, {x + width + px(2), to.y + font->FontSize / 2}, theme().panel, px(2));
    list->AddText(font, font->FontSize, {std::floor(x), std::floor(to.y - font->FontSize / 2)}, theme().text, words.c_str());
    ui::note_words("the path goes over to " + words);
    words_to = x + width + px(8);
  }
  list->PopClipRect();
}

}  // namespace shardbook::lanes
