// ui/widgets: spots, panes, and the small things to click; the table is in table.cpp. See widgets.hpp.
#include "viewer/ui/widgets.hpp"

#include <imgui_internal.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "viewer/ui/fonts.hpp"
#include "viewer/ui/imgui_version.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/widgets_state.hpp"

namespace shardbook::ui {

using page::FontKind;

// --- What is on the screen ------------------------------------------------------------------------
ScreenState& screen_state() {
  static ScreenState one;
  return one;
}

namespace {

std::string pane_now() { return screen_state().stack.empty() ? std::string() : screen_state().stack.back(); }

ImU32 with_alpha(ImU32 colour, float alpha) {
  const auto a = static_cast<ImU32>(alpha * static_cast<float>(colour >> IM_COL32_A_SHIFT));
  return (colour & ~IM_COL32_A_MASK) | (a << IM_COL32_A_SHIFT);
}

}  // namespace

void begin_frame_spots() {
  ScreenState& state = screen_state();
  state.spots.clear();
  state.words.clear();
  state.panes.clear();
  state.stack.clear();
  state.same_label.clear();
  state.with_rows.swap(state.rows_now);
  state.rows_now.clear();
  ImGui::GetIO().ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
}

const std::vector<Spot>& spots() { return screen_state().spots; }

void note_spot(const std::string& label, ImVec2 from, ImVec2 to) {
  // Clipped to what can be seen, so that a click by words never hits what lies over it.
  const ImRect clip = ImGui::GetCurrentWindowRead()->ClipRect;
  const ImVec2 low(std::max(from.x, clip.Min.x), std::max(from.y, clip.Min.y));
  const ImVec2 high(std::min(to.x, clip.Max.x), std::min(to.y, clip.Max.y));
  const bool visible = low.x < high.x && low.y < high.y;
  screen_state().spots.push_back({pane_now(), label, visible ? low : from, visible ? high : from});
}

void note_words(const std::string& words) { screen_state().words.push_back(words); }
const std::vector<std::string>& words() { return screen_state().words; }

// --- Panes ----------------------------------------------------------------------------------------
const std::vector<std::string>& panes() { return screen_state().panes; }
const std::string& focused_pane() { return screen_state().focused; }
void focus_pane(const std::string& name) { screen_state().wants_focus = name; }

bool has_keys() {
  const ScreenState& state = screen_state();
  return state.stack.empty() ? ImGui::IsWindowFocused() : state.stack.back() == state.focused;
}

bool begin_pane(const char* name, ImVec2 size, bool title, const std::string& other_words, bool scrollbar) {
  ScreenState& state = screen_state();
  state.stack.emplace_back(name);
  state.panes.emplace_back(name);
  const Theme& colours = theme();
  ImGuiWindowFlags flags = ImGuiWindowFlags_None;
  if (!state.with_rows.contains(name)) flags |= ImGuiWindowFlags_NoNavInputs;
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours.panel);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
  const bool open = ImGui::BeginChild(name, size, true, flags | ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  ImGui::PopStyleVar();
  const ImVec2 at = ImGui::GetWindowPos(), whole = ImGui::GetWindowSize();
  note_spot(name, at, {at.x + whole.x, at.y + whole.y});

  // The head: its name, and a bar of the accent's colour where the keys go.
  const bool focused = state.focused == name;
  float head = 0;
  if (title) {
    head = std::round(px(28));
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->AddRectFilled(at, {at.x + whole.x, at.y + head}, colours.raised, px(4), ImDrawFlags_RoundCornersTop);
    list->AddLine({at.x, at.y + head}, {at.x + whole.x, at.y + head}, colours.faint);
    std::string words = other_words.empty() ? name : other_words;
    if (!words.empty()) words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
    if (focused) list->AddRectFilled({at.x + px(10), at.y + head - px(2)}, {at.x + px(10) + measure().width(words, FontKind::bold), at.y + head}, colours.accent);
    const float height = font(FontKind::bold) != nullptr ? font(FontKind::bold)->FontSize : ImGui::GetFontSize();
    draw_text(list, FontKind::bold, {at.x + px(10), at.y + (head - height) / 2}, focused ? colours.text : colours.dim, words);
    note_words(words);
  }

  // The body scrolls under the head.
  ImGui::SetCursorPos({0, head + (title ? 1 : 0)});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, IM_COL32_BLACK_TRANS);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(title ? 8 : 6)));
  if (state.wants_focus == name) {
    ImGui::SetNextWindowFocus();
    state.wants_focus.clear();
  }
  if (!scrollbar) flags |= ImGuiWindowFlags_NoScrollbar;
  ImGui::BeginChild("body", ImVec2(0, 0), false, flags | ImGuiWindowFlags_AlwaysUseWindowPadding);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor(2);
  if (ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows)) state.focused_now = name;
  return open;
}

void end_pane() {
  ScreenState& state = screen_state();
  ImGui::EndChild();
  ImGui::EndChild();
  state.stack.pop_back();
  if (state.stack.empty()) state.focused = state.focused_now;
}

bool splitter(const char* name, bool vertical, float* first_px, float least_first, float least_second, float whole) {
  // Laid over the gap between the two panes; the whole gap can be taken hold of.
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const float thick = std::round(px(7));
  const ImVec2 size = vertical ? ImVec2(thick, std::max(room.y, 1.0F)) : ImVec2(std::max(room.x, 1.0F), thick);
  ImGui::InvisibleButton(name, size);
  const bool hovered = ImGui::IsItemHovered(), dragged = ImGui::IsItemActive();
  note_spot(name, at, {at.x + size.x, at.y + size.y});
  if (hovered || dragged) {
    ImGui::SetMouseCursor(vertical ? ImGuiMouseCursor_ResizeEW : ImGuiMouseCursor_ResizeNS);
    const ImVec2 middle(at.x + size.x / 2, at.y + size.y / 2);
    const ImVec2 low = vertical ? ImVec2(middle.x - px(1), at.y) : ImVec2(at.x, middle.y - px(1));
    const ImVec2 high = vertical ? ImVec2(middle.x + px(1), at.y + size.y) : ImVec2(at.x + size.x, middle.y + px(1));
    ImGui::GetWindowDrawList()->AddRectFilled(low, high, theme().accent);
  }
  if (dragged) *first_px += vertical ? ImGui::GetIO().MouseDelta.x : ImGui::GetIO().MouseDelta.y;
  const float most = std::max(least_first, whole - least_second - thick);
  *first_px = std::clamp(*first_px, least_first, most);
  return dragged;
}

// --- Things to click ------------------------------------------------------------------------------
namespace {

// What every one of them does: takes room, notes its words, answers to mouse and keys.
struct Press {
  ImVec2 from, to;
  bool pressed = false, hovered = false, held = false;
};

Press press(const std::string& label, ImVec2 size, bool enabled = true) {
  // Two of the same words in one pane are told apart by their order.
  ScreenState& state = screen_state();
  const int nth = state.same_label[{pane_now(), label}]++;
  ImGui::PushID(label.c_str(), label.c_str() + label.size());
  ImGui::PushID(nth);
  // Beside something taller: in the middle of the line.
  const float line = ImGui::GetCurrentWindow()->DC.CurrLineSize.y;
  if (line > size.y) ImGui::SetCursorPosY(ImGui::GetCursorPosY() + std::floor((line - size.y) / 2));
  Press result;
  result.from = ImGui::GetCursorScreenPos();
  result.to = {result.from.x + size.x, result.from.y + size.y};
  if (!enabled) ImGui::BeginDisabled();
  result.pressed = ImGui::InvisibleButton("press", {std::max(size.x, 1.0F), std::max(size.y, 1.0F)});
  if (!enabled) ImGui::EndDisabled();
  result.hovered = ImGui::IsItemHovered();
  result.held = ImGui::IsItemActive();
  const ImGuiContext& context = *ImGui::GetCurrentContext();
  if (context.NavId == ImGui::GetItemID() && !context.NavDisableHighlight) {
    ImGui::GetWindowDrawList()->AddRect({result.from.x - 1, result.from.y - 1}, {result.to.x + 1, result.to.y + 1},
                                        theme().accent, px(4), 0, px(2));
  }
  ImGui::PopID();
  ImGui::PopID();
  note_spot(label, result.from, result.to);
  return result;
}

float text_height(FontKind kind) { return font(kind) != nullptr ? font(kind)->FontSize : ImGui::GetFontSize(); }

// The text, or as much of it as fits with "…" behind it.
std::string cut(const std::string& text, float width, FontKind kind, bool* was_cut = nullptr) {
  if (was_cut != nullptr) *was_cut = false;
  if (measure().width(text, kind) <= width) return text;
  if (was_cut != nullptr) *was_cut = true;
  const float dots = measure().width("…", kind);
  float sum = 0;
  std::size_t end = 0;
  while (end < text.size()) {
    std::size_t next = end + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
    sum += measure().width(std::string_view(text).substr(end, next - end), kind);
    if (sum + dots > width) break;
    end = next;
  }
  return text.substr(0, end) + "…";
}

// Words in a frame: a button. `filled`: with the accent.
bool boxed(const std::string& label, const std::string& hint, bool enabled, bool filled, bool small) {
  const Theme& colours = theme();
  const FontKind kind = small ? FontKind::small : FontKind::body;
  const ImVec2 padding = small ? ImVec2(px(7), px(3)) : ImVec2(px(12), px(5));
  const float width = measure().width(label, kind) + 2 * padding.x, height = text_height(kind) + 2 * padding.y;
  const Press now = press(label, {std::ceil(width), std::ceil(height)}, enabled);
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImU32 ground = filled && enabled ? colours.accent : colours.raised;
  if (enabled && !filled && now.hovered) ground = now.held ? colours.selection : colours.hover;
  list->AddRectFilled(now.from, now.to, ground, px(4));
  if (enabled && filled && now.hovered) list->AddRectFilled(now.from, now.to, with_alpha(colours.accent_text, now.held ? 0.22F : 0.12F), px(4));
  if (!filled || !enabled) list->AddRect(now.from, now.to, colours.border, px(4));
  const ImU32 ink = !enabled ? colours.dim : filled ? colours.accent_text : colours.text;
  draw_text(list, kind, {now.from.x + padding.x, now.from.y + padding.y}, ink, label);
  if (!hint.empty()) hint_on_hover(hint);
  return now.pressed;
}

}  // namespace

bool button(const std::string& label, const std::string& hint, bool enabled) { return boxed(label, hint, enabled, true, false); }
bool small_button(const std::string& label, const std::string& hint) { return boxed(label, hint, true, false, true); }

bool toggle(const std::string& label, bool* on, const std::string& hint) {
  // A box with or without a tick, then the words.
  const Theme& colours = theme();
  const float side = std::round(px(15)), height = std::ceil(text_height(FontKind::body) + px(6));
  const Press now = press(label, {side + px(8) + measure().width(label, FontKind::body), height});
  if (now.pressed) *on = !*on;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 low(now.from.x, std::floor(now.from.y + (height - side) / 2)), high(low.x + side, low.y + side);
  list->AddRectFilled(low, high, *on ? colours.accent : now.hovered ? colours.hover : colours.panel, px(3));
  list->AddRect(low, high, *on ? colours.accent : colours.dim, px(3));
  if (*on) {
    const ImVec2 tick[3] = {{low.x + side * 0.22F, low.y + side * 0.52F}, {low.x + side * 0.43F, low.y + side * 0.72F}, {low.x + side * 0.78F, low.y + side * 0.28F}};
    list->AddPolyline(tick, 3, colours.accent_text, 0, px(1.8F));
  }
  draw_text(list, FontKind::body, {high.x + px(8), now.from.y + px(3)}, colours.text, label);
  if (!hint.empty()) hint_on_hover(hint);
  return now.pressed;
}

bool link(const std::string& label, const std::string& hint) {
  const float width = measure().width(label, FontKind::body), height = text_height(FontKind::body);
  const Press now = press(label, {width, height + px(2)});
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text(list, FontKind::body, now.from, theme().link, label);
  if (now.hovered) {
    list->AddLine({now.from.x, now.to.y - 1}, {now.to.x, now.to.y - 1}, theme().link, px(1));
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  }
  if (!hint.empty()) hint_on_hover(hint);
  return now.pressed;
}

bool row(const std::string& label, bool selected, const std::string& right) {
  screen_state().rows_now.insert(pane_now());
  const Theme& colours = theme();
  const float height = std::ceil(text_height(FontKind::body) + px(9)), width = ImGui::GetContentRegionAvail().x;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 0));
  const Press now = press(label, {width, height});
  ImGui::PopStyleVar();
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (selected || now.hovered) list->AddRectFilled(now.from, now.to, selected ? colours.selection : colours.hover, px(4));
  if (selected) list->AddRectFilled({now.from.x, now.from.y + px(5)}, {now.from.x + px(3), now.to.y - px(5)}, colours.accent, px(1));
  const float right_width = right.empty() ? 0 : measure().width(right, FontKind::small) + px(12);
  bool was_cut = false;
  const std::string shown = cut(label, width - right_width - px(16), FontKind::body, &was_cut);
  draw_text(list, FontKind::body, {now.from.x + px(9), now.from.y + (height - text_height(FontKind::body)) / 2}, colours.text, shown);
  if (!right.empty()) {
    draw_text(list, FontKind::small, {now.to.x - right_width + px(4), now.from.y + (height - text_height(FontKind::small)) / 2},
              selected ? colours.text : colours.dim, right);
    note_words(right);
  }
  if (was_cut) hint_on_hover(label);
  return now.pressed;
}

bool text_field(const std::string& label, std::string* text, float width, bool take_focus) {
  if (take_focus) lead_keys_to_next_item();
  ImGui::SetNextItemWidth(width);
  ImGui::PushID(label.c_str());
  const bool entered = ImGui::InputTextWithHint("##field", label.c_str(), text, ImGuiInputTextFlags_EnterReturnsTrue);
  ImGui::PopID();
  note_spot(label, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  return entered;
}

bool tab(const std::string& label, bool selected) {
  const Theme& colours = theme();
  const FontKind kind = selected ? FontKind::bold : FontKind::body;
  // As wide as in bold and from the left, so that nothing moves when another one is chosen, and tabs below each other align.
  const float width = measure().width(label, FontKind::bold) + px(20), height = std::ceil(text_height(FontKind::body) + px(12));
  const Press now = press(label, {width, height});
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (now.hovered && !selected) list->AddRectFilled(now.from, now.to, colours.hover, px(4));
  if (selected) list->AddRectFilled({now.from.x + px(8), now.to.y - px(2)}, {now.to.x - px(8), now.to.y}, colours.accent, px(1));
  draw_text(list, kind, {now.from.x + px(10), now.from.y + px(6)}, selected ? colours.text : colours.dim, label);
  return now.pressed;
}

// --- Words ----------------------------------------------------------------------------------------
namespace {

// A line of one font that takes its room in ImGui's flow.
void line_of(const std::string& text, FontKind kind, ImU32 colour, float above = 0) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = text_height(kind);
  bool was_cut = false;
  const std::string shown = cut(text, width, kind, &was_cut);
  draw_text(ImGui::GetWindowDrawList(), kind, {at.x, at.y + above}, colour, shown);
  ImGui::Dummy({std::min(width, measure().width(shown, kind)), height + above});
  note_words(text);
  if (was_cut) hint_on_hover(text);
}

}  // namespace

void heading(const std::string& text) { line_of(text, FontKind::heading3, theme().text, px(4)); }
void words_line(const std::string& text) { line_of(text, FontKind::body, ImGui::GetColorU32(ImGuiCol_Text)); }
void dim_line(const std::string& text) { line_of(text, FontKind::small, theme().dim); }

void paragraph(const std::string& text, ImU32 colour) {
  // Words broken into lines by ImGui, set further apart than it would.
  ImFont* face = font(FontKind::body) != nullptr ? font(FontKind::body) : ImGui::GetFont();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = std::max(ImGui::GetContentRegionAvail().x, px(40)), step = std::round(face->FontSize * 1.32F);
  float y = 0, widest = 0;
  const char* end = text.data() + text.size();
  for (const char* from = text.data(); from < end;) {
    const char* line_end = std::find(from, end, '\n');
    const char* to = face->CalcWordWrapPositionA(1, from, line_end, width);
    if (to == from && from < line_end) to = from + 1;
    // ImGui also breaks behind a full stop; a path stays whole where it can begin the next line.
    if (to < line_end && *to != ' ') {
      const char* blank = to;
      while (blank > from && *blank != ' ') --blank;
      if (blank > from) to = blank;
    }
    const std::string_view line(from, static_cast<std::size_t>(to - from));
    widest = std::max(widest, draw_text(ImGui::GetWindowDrawList(), FontKind::body, {at.x, at.y + y + (step - face->FontSize) / 2},
                                        colour != 0 ? colour : theme().text, line));
    y += step;
    from = to;
    while (from < line_end && *from == ' ') ++from;
    if (from == line_end && from < end) ++from;
  }
  ImGui::Dummy({std::min(width, widest), std::max(y, step)});
  note_words(text);
}

void fact(const std::string& name, const std::string& value, float name_width) {
  const Theme& colours = theme();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = std::ceil(text_height(FontKind::body) + px(4));
  ImGui::PushID(name.c_str());
  const bool clicked = ImGui::InvisibleButton(value.c_str(), {std::max(width, 1.0F), height});
  ImGui::PopID();
  const bool hovered = ImGui::IsItemHovered();
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (hovered) list->AddRectFilled({at.x - px(4), at.y}, {at.x + width, at.y + height}, colours.hover, px(3));
  bool was_cut = false;
  draw_text(list, FontKind::body, {at.x, at.y + px(2)}, colours.dim, cut(name, name_width - px(6), FontKind::body));
  draw_text(list, FontKind::body, {at.x + name_width, at.y + px(2)}, colours.text, cut(value, width - name_width, FontKind::body, &was_cut));
  note_spot(name, at, {at.x + width, at.y + height});
  note_words(name);
  note_words(value);
  if (clicked) ImGui::SetClipboardText(value.c_str());
  hint_on_hover(was_cut ? value + "\n(a click copies it)" : "a click copies it");
}

void hint_on_hover(const std::string& text) {
  // After a moment at rest; a picture without display has no such moment unless a script hovers.
  if (!ImGui::IsItemHovered() || ImGui::GetCurrentContext()->HoveredIdTimer < 0.35F) return;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(9), px(6)));
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(px(420));
  ImGui::TextUnformatted(text.c_str(), text.c_str() + text.size());
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
  ImGui::PopStyleVar();
  note_words(text);
}

}  // namespace shardbook::ui
