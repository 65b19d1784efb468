#include "viewer/lanes/plot.hpp"

#include <algorithm>
#include <cmath>

#include "viewer/lanes/parts.hpp"
#include "viewer/lanes/sight.hpp"
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
constexpr float minimap_units = 16, ruler_units = 34, scrollbar_units = 8, least_handle_units = 20;
constexpr float least_body_units = 24;      // a row

float names_width(float whole) { return std::clamp(whole * 0.2f, px(184), px(250)); }

void scroll_into_sight(PlotState& state, const std::vector<Placed>& placed, float height) {
  if (!state.reveal) return;
  state.reveal = false;
  // A pinned row stands twice; the lower one is the one in its place.
  for (std::size_t i = state.rows.size(); i-- > 0;) {
    if (state.rows[i].name != state.focus_row) continue;
    state.scroll = scroll_to(placed[i], state.scroll, height, px(20));
    state.scroll_rest = 0;
    // A row at the upper edge that is cut goes: what is in sight begins with a whole one.
    state.scroll = from_a_whole_row(placed, placed[i], state.scroll);
    return;
  }
}

// The first row in sight is whole. What a drag or a wheel has moved beyond it is kept for the next frame.
void settle_scroll(PlotState& state, const std::vector<Placed>& placed, float height) {
  const float wanted = std::clamp(state.scroll + state.scroll_rest, 0.0f, std::max(0.0f, whole_height(placed) - height));
  state.scroll = whole_rows_from(placed, wanted, height);
  state.scroll_rest = wanted - state.scroll;
}

void draw_area(ImDrawList* list, const PlotState& state, const std::vector<Placed>& placed, const Frame& body) {
  if (!state.area) return;
  const auto places = places_of_area(state.rows, *state.area);
  if (!places) return;
  const float top = body.from.y + placed[places->first].top - state.scroll, bottom = body.from.y + placed[places->second].bottom() - state.scroll;
  const float x0 = body.from.x + near_x(state.view, state.area->window.start), x1 = body.from.x + near_x(state.view, state.area->window.end);
  if (x1 < body.from.x || x0 > body.to.x || bottom < body.from.y || top > body.to.y) return;
  list->PushClipRect(body.from, body.to, true);
  list->AddRectFilled({x0, top}, {x1, bottom}, (theme().accent & ~IM_COL32_A_MASK) | IM_COL32(0, 0, 0, 40));
  list->AddRect({x0, top}, {x1, bottom}, theme().accent, 0, 0, px(1.5f));
  const std::string words = metrics::duration_text(state.area->window.length());
  ImFont* font = ui::font(page::FontKind::small);
  const float width = font->CalcTextSizeA(font->FontSize, 1e9f, 0, words.c_str()).x;
  const float x = std::max(std::min((x0 + x1 - width) / 2, body.to.x - width - px(4)), body.from.x + px(4));
  const ImVec2 at{x, std::max(top, body.from.y) + px(2)};
  list->AddRectFilled({at.x - px(4), at.y}, {at.x + width + px(4), at.y + font->FontSize + px(2)}, theme().accent, px(3));
  list->AddText(font, font->FontSize, {std::floor(at.x), std::floor(at.y + px(1))}, theme().accent_text, words.c_str());
  list->PopClipRect();
}

// Where the mouse is over the rows.
struct Hand {
  float x = 0, y = 0;                  // from the view's start; from the first row's top
  int row = -1;                        // under it
  bool hovered = false, active = false;
};

Hand take_hand(PlotState& state, const std::vector<Placed>& placed, const Frame& body) {
  ImGui::SetCursorScreenPos(body.from);
  ImGui::InvisibleButton("timeline", {body.width(), body.height()},
                         ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight | ImGuiButtonFlags_MouseButtonMiddle);
  ui::note_spot("timeline", body.from, body.to);
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  Hand hand{mouse.x - body.from.x, mouse.y - body.from.y + state.scroll, -1, ImGui::IsItemHovered(), ImGui::IsItemActive()};
  // Far outside of the window there is no time.
  if (!ImGui::IsMousePosValid()) hand.x = hand.y = 0;
  hand.row = row_at(placed, hand.y);
  // A row that the lower edge would cut is not drawn.
  if (hand.row >= 0) {
    const Placed& row = placed[static_cast<std::size_t>(hand.row)];
    if (row.bottom() - state.scroll > body.height() + 1 && row.height < body.height() / 2) hand.row = -1;
  }
  state.pointer_x = hand.hovered ? hand.x : -1;
  return hand;
}

void hover(const scene::Scene& scene, PlotState& state, const std::vector<Placed>& placed, const Hand& hand) {
  state.hovered = {};
  if (!hand.hovered || hand.row < 0 || state.drag.active) return;
  const auto place = static_cast<std::size_t>(hand.row);
  const Row& row = state.rows[place];
  const base::Nanoseconds time = state.view.time_at(hand.x), near = static_cast<base::Nanoseconds>(3 * state.view.per_pixel());
  if (row.kind != scene::RowKind::memory && row.kind != scene::RowKind::idle) {
    state.hovered = scene::span_at(scene, row, time, level_at(row, rect_of(placed[place], 0, 0), hand.y), near);
  }
  if (!hand.active) draw_tooltip(scene, state, row, time);
}

// Wheel, right-drag and Shift-drag. True: the mouse is taken.
bool move_view(const scene::Scene& scene, PlotState& state, const Hand& hand) {
  const ImGuiIO& io = ImGui::GetIO();
  // A quarter a notch; finer with Ctrl, coarser with Shift.
  if (hand.hovered && io.MouseWheel != 0) {
    const double step = io.KeyCtrl ? 1.05 : io.KeyShift ? 1.5 : 1.25;
    zoom(state.view, std::pow(step, -io.MouseWheel), hand.x, scene.whole());
  }
  const bool panning = ImGui::IsMouseDragging(ImGuiMouseButton_Right, 2) || (io.KeyShift && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 2));
  if (!hand.active || !panning || state.drag.active) return false;
  pan_pixels(state.view, -io.MouseDelta.x, scene.whole());
  state.scroll -= io.MouseDelta.y;
  return true;
}

// The rectangle between where the drag began and the hand.
void stretch_area(PlotState& state, const std::vector<Placed>& placed, const Hand& hand) {
  const std::size_t from = std::min(state.drag.from_row, placed.size() - 1), to = nearest_row(placed, hand.y);
  const double time = state.view.start + std::clamp(hand.x, 0.0f, state.view.width) * state.view.per_pixel();
  Area area;
  area.window = {static_cast<base::Nanoseconds>(std::min(state.drag.from_time, time)), static_cast<base::Nanoseconds>(std::max(state.drag.from_time, time))};
  area.first_row = state.rows[std::min(from, to)].name;
  area.last_row = state.rows[std::max(from, to)].name;
  if (area.window.length() > 0) state.area = area;
}

// A drag of the left button selects an area, one of the middle button zooms to it. True: the mouse is taken.
bool drag_area(PlotState& state, const std::vector<Placed>& placed, const Frame& body, const Hand& hand, ui::Intents& intents) {
  const ImGuiIO& io = ImGui::GetIO();
  for (const ImGuiMouseButton button : {ImGuiMouseButton_Left, ImGuiMouseButton_Middle}) {
    if (hand.active && !state.drag.active && !io.KeyShift && ImGui::IsMouseDragging(button, px(4))) {
      const ImVec2 pressed = io.MouseClickedPos[button];
      state.drag = {true, state.view.start + (pressed.x - body.from.x) * state.view.per_pixel(), nearest_row(placed, pressed.y - body.from.y + state.scroll)};
    }
    if (!state.drag.active || (!ImGui::IsMouseDown(button) && !ImGui::IsMouseReleased(button))) continue;
    stretch_area(state, placed, hand);
    if (!ImGui::IsMouseReleased(button)) continue;
    state.drag = {};
    intents.push_back({button == ImGuiMouseButton_Middle ? "view.zoom_area" : "area.done", ""});
    return true;
  }
  if (!ImGui::IsAnyMouseDown()) state.drag = {};
  return false;
}

// Wheel and buttons over the rows.
ui::Intents handle_mouse(const scene::Scene& scene, PlotState& state, const std::vector<Placed>& placed, const Frame& body) {
  ui::Intents intents;
  const Hand hand = take_hand(state, placed, body);
  hover(scene, state, placed, hand);
  if (move_view(scene, state, hand) || drag_area(state, placed, body, hand, intents)) return intents;
  if (hand.hovered && ImGui::IsMouseReleased(ImGuiMouseButton_Left) && !ImGui::GetIO().KeyShift) {
    intents.push_back({"select", state.hovered.valid() ? scene::span_name(scene, state.hovered) : ""});
    if (hand.row >= 0) intents.push_back({"row.focus", state.rows[static_cast<std::size_t>(hand.row)].name});
  }
  if (hand.hovered && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) && state.hovered.valid()) intents.push_back({"view.zoom_selected", ""});
  return intents;
}

void draw_scrollbar(ImDrawList* list, PlotState& state, float whole, const Frame& body) {
  if (whole <= body.height()) return;
  const Handle handle = handle_of(state.scroll, whole, body.height(), px(least_handle_units));
  const float from = body.from.y + handle.from;
  list->AddRectFilled({body.to.x + px(1), from}, {body.to.x + px(scrollbar_units - 1), from + handle.length}, theme().border, px(3));
  ImGui::SetCursorScreenPos({body.to.x, body.from.y});
  ImGui::InvisibleButton("rows", {px(scrollbar_units), body.height()});
  if (!ImGui::IsItemActive()) return;
  state.scroll = scroll_of_handle(ImGui::GetIO().MousePos.y - body.from.y, whole, body.height(), px(least_handle_units));
  state.scroll_rest = 0;
}

}  // namespace

ui::Intents draw_plot(const scene::Scene& scene, PlotState& state, ImVec2 size) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float names = names_width(size.x), right = at.x + size.x - px(scrollbar_units);
  const Frame minimap{{at.x + names, at.y}, {right, at.y + px(minimap_units)}};
  const Frame ruler{{at.x + names, minimap.to.y}, {right, minimap.to.y + px(ruler_units)}};
  state.rows = scene.rows(state.choices);
  const Frame band{{at.x + names, ruler.to.y}, {right, ruler.to.y + band_height(scene, state)}};
  const Frame band_names{{at.x, band.from.y}, {band.from.x, band.to.y}};
  const Frame body{{at.x + names, band.to.y}, {right, at.y + size.y}};
  const Frame names_frame{{at.x, band.to.y}, {at.x + names, at.y + size.y}};
  state.view.width = std::max(1.0f, body.width());
  state.body_height = std::max(0.0f, body.height());
  if (state.rows.empty() || body.height() < px(least_body_units) || body.width() < px(least_body_units)) return {};
  keep_within(state.view, scene.whole());
  std::set<std::string> remarked;
  for (const scene::Annotation& remark : state.annotations) remarked.insert(remark.row);
  const std::vector<Placed> placed = place_rows(state.rows, remarked);
  scroll_into_sight(state, placed, body.height());

  // What the hand does comes first, so that the picture follows it in the same frame.
  ui::Intents intents = handle_mouse(scene, state, placed, body);
  if (ImGui::IsMouseHoveringRect(names_frame.from, names_frame.to) && ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows)) {
    state.scroll -= ImGui::GetIO().MouseWheel * px(48);
  }
  settle_scroll(state, placed, body.height());

  // However many rows are in sight, a frame draws at most so many rectangles.
  const auto in_sight = std::count_if(placed.begin(), placed.end(), [&](const Placed& row) {
    return row.bottom() > state.scroll && row.top < state.scroll + body.height();
  });
  state.view.most = most_items / std::max(1, static_cast<int>(in_sight));

  list->AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme().panel);
  ImFont* small = ui::font(page::FontKind::small);
  list->AddText(small, small->FontSize, {at.x + px(8), at.y + px(1)}, theme().dim, "exposed, whole run");
  draw_minimap(list, scene, state, minimap);
  draw_ruler(list, scene, state, ruler, body);
  draw_band(list, scene, state, band_names, band);
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
