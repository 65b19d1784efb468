#include "viewer/lanes/plot.hpp"

#include <algorithm>
#include <cmath>

#include "viewer/lanes/parts.hpp"
#include "viewer/scene/navigate.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::lanes {

using scene::Row;
using scene::SpanRef;
using ui::px;
using ui::theme;

namespace {

constexpr int most_items = 5000;
constexpr float minimap_units = 26, ruler_units = 38, scrollbar_units = 8;

float names_width(float whole) { return std::clamp(whole * 0.2f, px(184), px(250)); }

// The row under this height of the body, or -1.
int row_at(const std::vector<Placed>& placed, float y) {
  for (std::size_t i = 0; i < placed.size(); ++i) {
    if (y >= placed[i].top && y < placed[i].top + placed[i].height) return static_cast<int>(i);
  }
  return -1;
}

float whole_height(const std::vector<Placed>& placed) { return placed.empty() ? 0 : placed.back().top + placed.back().height; }

SpanRef span_under(const scene::Scene& scene, const PlotState& state, const Row& row, const Placed& placed, float y, base::Nanoseconds time) {
  if (row.kind == scene::RowKind::memory || row.kind == scene::RowKind::idle) return {};
  const float each = placed.height / static_cast<float>(std::clamp(row.depth, 1, 6));
  const int depth = std::clamp(static_cast<int>((y - placed.top) / each), 0, 5);
  return scene::span_at(scene, row, time, depth, static_cast<base::Nanoseconds>(3 * state.view.per_pixel()));
}

void scroll_into_sight(PlotState& state, const std::vector<Placed>& placed, float height) {
  if (!state.reveal) return;
  state.reveal = false;
  // A pinned row stands twice; the lower one is the one in its place.
  for (std::size_t i = state.rows.size(); i-- > 0;) {
    if (state.rows[i].name != state.focus_row) continue;
    if (placed[i].top < state.scroll) state.scroll = std::max(0.0f, placed[i].top - px(30));
    if (placed[i].top + placed[i].height > state.scroll + height) state.scroll = placed[i].top + placed[i].height - height + px(10);
    return;
  }
}

void draw_area(ImDrawList* list, const PlotState& state, const std::vector<Placed>& placed, const Frame& body) {
  if (!state.area) return;
  float top = body.to.y, bottom = body.from.y;
  for (std::size_t i = 0; i < state.rows.size(); ++i) {
    const bool ends = state.rows[i].name == state.area->first_row || state.rows[i].name == state.area->last_row;
    if (!ends && !state.area->first_row.empty()) continue;
    top = std::min(top, body.from.y + placed[i].top - state.scroll);
    bottom = std::max(bottom, body.from.y + placed[i].top + placed[i].height - state.scroll);
  }
  if (bottom <= top) return;
  const float x0 = body.from.x + state.view.x_of(state.area->window.start), x1 = body.from.x + state.view.x_of(state.area->window.end);
  if (x1 < body.from.x || x0 > body.to.x) return;
  list->PushClipRect(body.from, body.to, true);
  list->AddRectFilled({x0, top}, {x1, bottom}, (theme().accent & ~IM_COL32_A_MASK) | IM_COL32(0, 0, 0, 40));
  list->AddRect({x0, top}, {x1, bottom}, theme().accent, 0, 0, px(1.5f));
  const std::string words = metrics::duration_text(state.area->window.length());
  ImFont* font = ui::font(page::FontKind::small);
  const float width = font->CalcTextSizeA(font->FontSize, 1e9f, 0, words.c_str()).x;
  const ImVec2 at{std::clamp((x0 + x1 - width) / 2, body.from.x + px(4), body.to.x - width - px(4)), std::max(top, body.from.y) + px(2)};
  list->AddRectFilled({at.x - px(4), at.y}, {at.x + width + px(4), at.y + font->FontSize + px(2)}, theme().accent, px(3));
  list->AddText(font, font->FontSize, {std::floor(at.x), std::floor(at.y + px(1))}, theme().accent_text, words.c_str());
  list->PopClipRect();
}

// Wheel and buttons over the rows.
ui::Intents handle_mouse(const scene::Scene& scene, PlotState& state, const std::vector<Placed>& placed, const Frame& body) {
  ui::Intents intents;
  ImGuiIO& io = ImGui::GetIO();
  ImGui::SetCursorScreenPos(body.from);
  ImGui::InvisibleButton("timeline", {body.width(), body.height()},
                         ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight | ImGuiButtonFlags_MouseButtonMiddle);
  ui::note_spot("timeline", body.from, body.to);
  const bool hovered = ImGui::IsItemHovered(), active = ImGui::IsItemActive();
  const float x = io.MousePos.x - body.from.x, y = io.MousePos.y - body.from.y + state.scroll;
  const base::Nanoseconds time = state.view.time_at(x);
  const int row = row_at(placed, y);
  state.hovered = {};
  state.pointer_x = hovered ? x : -1;
  if (hovered && row >= 0 && !state.drag.active) {
    state.hovered = span_under(scene, state, state.rows[static_cast<std::size_t>(row)], placed[static_cast<std::size_t>(row)], y, time);
    if (!active) draw_tooltip(scene, state, state.rows[static_cast<std::size_t>(row)], time);
  }
  // A quarter a notch; finer with Ctrl, coarser with Shift.
  if (hovered && io.MouseWheel != 0) {
    const double step = io.KeyCtrl ? 1.05 : io.KeyShift ? 1.5 : 1.25;
    zoom(state.view, std::pow(step, -io.MouseWheel), x, scene.whole());
  }
  const bool panning = ImGui::IsMouseDragging(ImGuiMouseButton_Right, 2) || (io.KeyShift && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 2));
  if (active && panning && !state.drag.active) {
    pan_pixels(state.view, -io.MouseDelta.x, scene.whole());
    state.scroll -= io.MouseDelta.y;
    return intents;
  }
  for (const ImGuiMouseButton button : {ImGuiMouseButton_Left, ImGuiMouseButton_Middle}) {
    if (active && !state.drag.active && !io.KeyShift && ImGui::IsMouseDragging(button, px(4))) {
      const ImVec2 pressed = io.MouseClickedPos[button];
      state.drag = {true, state.view.start + (pressed.x - body.from.x) * state.view.per_pixel(), row_at(placed, pressed.y - body.from.y + state.scroll)};
    }
    if (state.drag.active && (ImGui::IsMouseDown(button) || ImGui::IsMouseReleased(button))) {
      const double to = state.view.start + std::clamp(x, 0.0f, body.width()) * state.view.per_pixel();
      const int last = std::clamp(row < 0 ? (y < 0 ? 0 : static_cast<int>(placed.size()) - 1) : row, 0, static_cast<int>(placed.size()) - 1);
      const int first = std::clamp(state.drag.from_row < 0 ? 0 : state.drag.from_row, 0, static_cast<int>(placed.size()) - 1);
      Area area;
      area.window = {static_cast<base::Nanoseconds>(std::min(state.drag.from_time, to)), static_cast<base::Nanoseconds>(std::max(state.drag.from_time, to))};
      area.first_row = state.rows[static_cast<std::size_t>(std::min(first, last))].name;
      area.last_row = state.rows[static_cast<std::size_t>(std::max(first, last))].name;
      if (area.window.length() > 0) state.area = area;
      if (ImGui::IsMouseReleased(button)) {
        state.drag = {};
        intents.push_back(button == ImGuiMouseButton_Middle ? ui::Intent{"view.zoom_area", ""} : ui::Intent{"area.done", ""});
        return intents;
      }
    }
  }
  if (!ImGui::IsAnyMouseDown()) state.drag = {};
  if (hovered && ImGui::IsMouseReleased(ImGuiMouseButton_Left) && !io.KeyShift) {
    intents.push_back({"select", state.hovered.valid() ? scene::span_name(scene, state.hovered) : ""});
    if (row >= 0) intents.push_back({"row.focus", state.rows[static_cast<std::size_t>(row)].name});
  }
  if (hovered && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) && state.hovered.valid()) intents.push_back({"view.zoom_selected", ""});
  return intents;
}

void draw_scrollbar(ImDrawList* list, PlotState& state, float whole, const Frame& body) {
  if (whole <= body.height()) return;
  const float from = body.from.y + state.scroll / whole * body.height();
  const float length = std::max(px(20), body.height() * body.height() / whole);
  list->AddRectFilled({body.to.x + px(1), from}, {body.to.x + px(scrollbar_units - 1), from + length}, theme().border, px(3));
  ImGui::SetCursorScreenPos({body.to.x, body.from.y});
  ImGui::InvisibleButton("rows", {px(scrollbar_units), body.height()});
  if (ImGui::IsItemActive()) state.scroll = (ImGui::GetIO().MousePos.y - body.from.y - length / 2) / body.height() * whole;
}

}  // namespace

std::vector<Row> rows_of_area(const std::vector<Row>& rows, const Area& area) {
  if (area.first_row.empty()) return rows;
  std::vector<Row> chosen;
  bool inside = false;
  for (const Row& row : rows) {
    const bool begins = row.name == area.first_row, ends = row.name == area.last_row;
    if (begins) inside = true;
    if (inside) chosen.push_back(row);
    if (ends && inside) break;
  }
  return chosen;
}

ui::Intents draw_plot(const scene::Scene& scene, PlotState& state, ImVec2 size) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float names = names_width(size.x), right = at.x + size.x - px(scrollbar_units);
  const Frame minimap{{at.x + names, at.y}, {right, at.y + px(minimap_units)}};
  const Frame ruler{{at.x + names, minimap.to.y}, {right, minimap.to.y + px(ruler_units)}};
  const Frame body{{at.x + names, ruler.to.y}, {right, at.y + size.y}};
  const Frame names_frame{{at.x, ruler.to.y}, {at.x + names, at.y + size.y}};
  state.view.width = std::max(1.0f, body.width());
  state.rows = scene.rows(state.choices);
  if (state.rows.empty() || body.height() < px(20)) return {};
  const std::vector<Placed> placed = place_rows(state.rows);
  scroll_into_sight(state, placed, body.height());
  state.scroll = std::clamp(state.scroll, 0.0f, std::max(0.0f, whole_height(placed) - body.height()));

  // However many rows are in sight, a frame draws at most so many rectangles.
  const auto in_sight = std::count_if(placed.begin(), placed.end(), [&](const Placed& row) {
    return row.top + row.height > state.scroll && row.top < state.scroll + body.height();
  });
  state.view.most = most_items / std::max(1, static_cast<int>(in_sight));

  // What the hand does comes first, so that the picture follows it in the same frame.
  ui::Intents intents = handle_mouse(scene, state, placed, body);
  if (ImGui::IsMouseHoveringRect(names_frame.from, names_frame.to) && ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows)) {
    state.scroll = std::clamp(state.scroll - ImGui::GetIO().MouseWheel * px(48), 0.0f, std::max(0.0f, whole_height(placed) - body.height()));
  }

  list->AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme().panel);
  ImFont* small = ui::font(page::FontKind::small);
  list->AddText(small, small->FontSize, {at.x + px(8), at.y + px(6)}, theme().dim, "exposed, whole run");
  draw_minimap(list, scene, state, minimap);
  draw_ruler(list, scene, state, ruler, body);
  for (ui::Intent& intent : draw_rows(list, scene, state, placed, names_frame, body)) intents.push_back(std::move(intent));
  if (state.show_critical) draw_critical_path(list, scene, state, placed, body);
  draw_arrows(list, scene, state, placed, body);
  draw_area(list, state, placed, body);
  draw_scrollbar(list, state, whole_height(placed), body);
  list->AddLine({body.from.x, at.y}, {body.from.x, at.y + size.y}, theme().border);
  list->AddLine({at.x, ruler.to.y}, {body.from.x, ruler.to.y}, theme().border);
  ImGui::SetCursorScreenPos({at.x, at.y + size.y});
  return intents;
}

}  // namespace shardbook::lanes
