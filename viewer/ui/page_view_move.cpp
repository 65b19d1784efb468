// ui/page_view_move: moving through a page, selecting and copying its text, following its links.
//
// By mouse and by keys alike: Tab goes from link to link, Enter follows; a drag selects, two presses take a word.
// A press that does not move follows the link below it when it is let go.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

#include "viewer/ui/fonts.hpp"
#include "viewer/ui/imgui_version.hpp"
#include "viewer/ui/keys.hpp"
#include "viewer/ui/page_view_state.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/widgets.hpp"

namespace shardbook::ui {

using page::TextBox;

// A point of the screen in the page's own measure, and the region that it is in, or -1.
ImVec2 PageView::Impl::on_page(ImVec2 screen, int* region) const {
  ImVec2 at(screen.x - origin.x, screen.y - origin.y);
  *region = -1;
  for (std::size_t i = 0; i < layout.regions.size(); ++i) {
    const page::Region& one = layout.regions[i];
    if (at.x < one.x || at.x >= one.x + one.w || at.y < one.y || at.y >= one.y + one.h) continue;
    *region = static_cast<int>(i);
    at.x += sideways[i];
  }
  return at;
}

void PageView::Impl::next_link(int direction) {
  // Boxes with a link, in reading order; a link in several pieces counts once.
  std::vector<int> starts;
  int before = -1;
  for (std::uint32_t index : layout.by_offset) {
    const int link = layout.boxes[index].link;
    if (link >= 0 && link != before) starts.push_back(static_cast<int>(index));
    before = link;
  }
  if (starts.empty()) return;
  const auto now = std::find(starts.begin(), starts.end(), tabbed);
  if (now == starts.end()) {
    // The first one in sight, else the first of all.
    const auto seen = std::find_if(starts.begin(), starts.end(), [&](int i) { return layout.boxes[i].y >= view_top; });
    tabbed = seen != starts.end() ? *seen : starts.front();
  } else {
    const auto count = static_cast<int>(starts.size());
    tabbed = starts[(static_cast<int>(now - starts.begin()) + direction + count) % count];
  }
  const TextBox& box = layout.boxes[tabbed];
  if (box.y < view_top || box.y + box.h > view_top + view_height) wanted_y = box.y - view_height / 3;
}

// The first hit from what is in sight on, or the last one before it; then one after the other, around.
void PageView::Impl::next_hit(int direction) {
  const int count = static_cast<int>(hits.size());
  if (count == 0) return;
  if (hit < 0) {
    const auto next = std::partition_point(hits.begin(), hits.end(), [&](const Range& one) { return one.first < seen.first; });
    const int after = static_cast<int>(next - hits.begin());
    hit = (direction > 0 ? after : after - 1 + count) % count;
  } else {
    hit = (hit + direction + count) % count;
  }
  const auto boxes = layout.boxes_of(hits[hit].first, hits[hit].second, measure());
  if (boxes.empty()) return;
  const float y = boxes.front().y;
  if (y < view_top || y > view_top + 0.9F * view_height) wanted_y = std::max(0.0F, y - view_height / 3);
}

std::string PageView::Impl::keys() {
  if (!has_keys()) return "";
  for (const Pressed& pressed : pressed_commands()) {
    const std::string_view id = pressed.command->id;
    if (id == "text.select_all") mark = 0, cursor = static_cast<std::uint32_t>(layout.text.size());
    if (id == "text.copy" && mark != cursor) ImGui::SetClipboardText(layout.text_between(mark, cursor).c_str());
    if (id == "scroll.up") ImGui::SetScrollY(view_top - laid_line);
    if (id == "scroll.down") ImGui::SetScrollY(view_top + laid_line);
    if (id == "scroll.page_up") ImGui::SetScrollY(view_top - 0.9F * view_height);
    if (id == "scroll.page_down") ImGui::SetScrollY(view_top + 0.9F * view_height);
  }
  if (ImGui::GetIO().WantTextInput) return "";
  if (is_key_pressed(key_code("Tab")) && !ImGui::GetIO().KeyCtrl) next_link(ImGui::GetIO().KeyShift ? -1 : 1);
  const bool follows = tabbed >= 0 && tabbed < static_cast<int>(layout.boxes.size()) && is_key_pressed(key_code("Enter"), false);
  return follows ? layout.links[layout.boxes[tabbed].link] : "";
}

std::string PageView::Impl::mouse() {
  const ImGuiIO& io = ImGui::GetIO();
  const bool hovered = ImGui::IsWindowHovered();
  int region = -1;
  const ImVec2 at = on_page(io.MousePos, &region);
  if (!hovered && !dragging) return "";
  const int box = layout.box_at(at.x, at.y);
  const int link = box >= 0 ? layout.boxes[box].link : -1;
  if (hovered && box >= 0) ImGui::SetMouseCursor(link >= 0 ? ImGuiMouseCursor_Hand : ImGuiMouseCursor_TextInput);

  // A region that is wider than the page scrolls by Shift and the wheel, or by a sideways wheel.
  if (hovered && region >= 0) {
    const page::Region& wide = layout.regions[static_cast<std::size_t>(region)];
    const float wheel = io.MouseWheelH != 0 ? io.MouseWheelH : io.KeyShift ? io.MouseWheel : 0;
    float& shift = sideways[static_cast<std::size_t>(region)];
    shift = std::clamp(shift - wheel * px(60), 0.0F, std::max(0.0F, wide.content_width - wide.w));
  }

  // Press, drag, release. Two presses take a word.
  const std::uint32_t here = layout.offset_at(at.x, at.y, measure());
  if (hovered && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    dragging = true;
    pressed_at = io.MousePos;
    tabbed = -1;
    cursor = here;
    if (!io.KeyShift) mark = here;
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) && box >= 0) {
      const auto is_letter = [&](std::uint32_t i) { return (static_cast<unsigned char>(layout.text[i]) & 0x80) != 0 || std::isalnum(static_cast<unsigned char>(layout.text[i])) != 0 || layout.text[i] == '_'; };
      mark = cursor = std::min<std::uint32_t>(here, static_cast<std::uint32_t>(layout.text.size()));
      while (mark > 0 && is_letter(mark - 1)) --mark;
      while (cursor < layout.text.size() && is_letter(cursor)) ++cursor;
      dragging = false;
    }
  }
  const bool moved = std::hypot(io.MousePos.x - pressed_at.x, io.MousePos.y - pressed_at.y) > px(4);
  if (dragging && ImGui::IsMouseDown(ImGuiMouseButton_Left) && moved) {
    cursor = here;
    // Beyond the edge, the page comes along.
    const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight();
    if (io.MousePos.y < top) ImGui::SetScrollY(view_top - laid_line);
    if (io.MousePos.y > bottom) ImGui::SetScrollY(view_top + laid_line);
  }
  if (dragging && ImGui::IsMouseReleased(ImGuiMouseButton_Left)) {
    dragging = false;
    if (!moved && link >= 0) return layout.links[link];
  }
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) dragging = false;
  return "";
}

}  // namespace shardbook::ui
