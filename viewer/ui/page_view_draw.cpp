// ui/page_view_draw: what is in sight of a page, drawn.
//
// Only the boxes in sight cost anything. The order is that of the eye: grounds, bars and pictures, marks of hits and
// of the selection, words above all. What is wider than the page lies in a region of its own, which clips it.
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "viewer/ui/fonts.hpp"
#include "viewer/ui/page_view_state.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/widgets.hpp"

namespace shardbook::ui {

using page::Decoration;
using page::FontKind;
using page::Style;
using page::TextBox;

namespace {

ImU32 tint(ImU32 colour, float alpha) {
  return (colour & ~IM_COL32_A_MASK) | (static_cast<ImU32>(alpha * 255) << IM_COL32_A_SHIFT);
}

ImU32 colour_of_admonition(const std::string& name) {
  const Theme& colours = theme();
  if (name == "TIP") return colours.good;
  if (name == "WARNING") return colours.warning;
  if (name == "CAUTION") return colours.bad;
  if (name == "IMPORTANT") return colours.paint[static_cast<std::size_t>(scene::Paint::annotation)];
  return colours.link;
}

}  // namespace

// Which boxes are in sight?
void PageView::Impl::look() {
  std::tie(first_box, last_box) = layout.visible(view_top, view_top + view_height);
  seen = {static_cast<std::uint32_t>(layout.text.size()), 0};
  for (std::size_t i = first_box; i < last_box; ++i) {
    if (layout.boxes[i].y + layout.boxes[i].h < view_top) continue;
    seen = {std::min(seen.first, layout.boxes[i].begin), std::max(seen.second, layout.boxes[i].end)};
  }
}

void PageView::Impl::draw_image(const Decoration& one, ImVec2 low, ImVec2 high) {
  if (const std::optional<Image> image = image_of(one.name)) {
    ImGui::GetWindowDrawList()->AddImage(image->texture, low, high);
    ImGui::GetWindowDrawList()->AddRect(low, high, theme().border);
    return;
  }
  // What cannot be shown is named.
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(low, high, theme().raised, px(4));
  list->AddRect(low, high, theme().border, px(4));
  const std::string title = one.block != nullptr && !one.block->title.empty() ? one.block->title : "a picture";
  draw_text(list, FontKind::body, {low.x + px(14), low.y + px(20)}, theme().text, title);
  draw_text(list, FontKind::small, {low.x + px(14), low.y + px(46)}, theme().dim, one.name);
}

void PageView::Impl::draw_decoration(const Decoration& one, std::string& clicked) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Theme& colours = theme();
  const float x = origin.x + one.x - shift_of(one.region);
  const ImVec2 low(std::floor(x), std::floor(origin.y + one.y)), high(std::floor(x + one.w), std::floor(origin.y + one.y + one.h));
  switch (one.kind) {
    case Decoration::Kind::code_background:
      list->AddRectFilled(low, high, colours.code_ground, px(4));
      list->AddRect(low, high, colours.faint, px(4));
      break;
    case Decoration::Kind::quote_bar: list->AddRectFilled(low, {low.x + px(3), high.y}, colours.border, px(1)); break;
    case Decoration::Kind::admonition_background: list->AddRectFilled(low, high, tint(colour_of_admonition(one.name), 0.07F), px(4)); break;
    case Decoration::Kind::admonition_bar: list->AddRectFilled(low, {low.x + px(3), high.y}, colour_of_admonition(one.name), px(1)); break;
    case Decoration::Kind::table_header: list->AddRectFilled(low, high, colours.raised); break;
    case Decoration::Kind::table_line: list->AddLine({low.x, low.y}, {high.x, low.y}, colours.faint); break;
    case Decoration::Kind::rule: list->AddLine({low.x, low.y}, {high.x, low.y}, colours.border); break;
    case Decoration::Kind::image: draw_image(one, low, high); break;
    case Decoration::Kind::diagram: {
      const auto found = diagrams.find(one.block);
      if (found == diagrams.end()) break;
      const std::string target = draw_picture(found->second.picture, low, found->second.zoom);
      if (!target.empty()) clicked = target;
      break;
    }
    case Decoration::Kind::span_header:
      // Code follows at once: the two are one box.
      list->AddRectFilled(low, {high.x, high.y + px(6)}, colours.raised, px(4), ImDrawFlags_RoundCornersTop);
      list->AddRect(low, {high.x, high.y + px(6)}, colours.faint, px(4), ImDrawFlags_RoundCornersTop);
      list->AddRectFilled(low, {low.x + px(3), high.y}, colours.accent);
      break;
    case Decoration::Kind::task_open:
    case Decoration::Kind::task_done: {
      const bool done = one.kind == Decoration::Kind::task_done;
      const float side = high.x - low.x;
      list->AddRectFilled(low, high, done ? colours.accent : colours.panel, px(3));
      list->AddRect(low, high, done ? colours.accent : colours.dim, px(3));
      const ImVec2 tick[3] = {{low.x + side * 0.22F, low.y + side * 0.52F}, {low.x + side * 0.43F, low.y + side * 0.72F}, {low.x + side * 0.78F, low.y + side * 0.28F}};
      if (done) list->AddPolyline(tick, 3, colours.accent_text, 0, px(1.8F));
      break;
    }
  }
}

void PageView::Impl::draw_decorations(std::string& clicked) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto [first, last] = layout.visible_decorations(view_top, view_top + view_height);
  for (std::size_t i = first; i < last; ++i) {
    const Decoration& one = layout.decorations[i];
    if (one.y + one.h < view_top) continue;
    if (one.region >= 0) {
      const page::Region& region = layout.regions[static_cast<std::size_t>(one.region)];
      list->PushClipRect({origin.x + region.x, origin.y + region.y - 1}, {origin.x + region.x + region.w + 1, origin.y + region.y + region.h + 2}, true);
    }
    draw_decoration(one, clicked);
    if (one.region >= 0) list->PopClipRect();
  }
}

// Code within a sentence has a ground of its own, below all words.
void PageView::Impl::draw_code_grounds() {
  for (std::size_t i = first_box; i < last_box; ++i) {
    const TextBox& box = layout.boxes[i];
    if ((box.style & Style::code) == 0 || box.region >= 0) continue;
    const float x = origin.x + box.x, y = origin.y + box.y;
    ImGui::GetWindowDrawList()->AddRectFilled({x - px(2), y + px(1)}, {x + box.w + px(2), y + box.h - px(1)}, theme().hover, px(3));
  }
}

void PageView::Impl::draw_hits_and_selection() {
  const auto in_sight = std::partition_point(hits.begin(), hits.end(), [&](const Range& one) { return one.second <= seen.first; });
  for (auto i = static_cast<std::size_t>(in_sight - hits.begin()); i < hits.size() && hits[i].first < seen.second; ++i) {
    const bool current = static_cast<int>(i) == hit;
    draw_marks(hits[i], tint(theme().warning, current ? 0.34F : 0.20F), current);
  }
  draw_marks(selection(), theme().selection, false);
}

void PageView::Impl::draw_marks(Range range, ImU32 colour, bool outlined) {
  // Only what is in sight: a selection may be the whole page.
  const std::uint32_t from = std::max(range.first, seen.first), to = std::min(range.second, seen.second);
  if (from >= to) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (const TextBox& piece : layout.boxes_of(from, to, measure())) {
    float x0 = origin.x + piece.x - shift_of(piece.region), x1 = x0 + piece.w;
    if (piece.region >= 0) {
      const page::Region& region = layout.regions[static_cast<std::size_t>(piece.region)];
      x0 = std::max(x0, origin.x + region.x);
      x1 = std::min(x1, origin.x + region.x + region.w);
    }
    if (x0 >= x1) continue;
    const float y = origin.y + piece.y;
    list->AddRectFilled({x0, y}, {x1, y + piece.h}, colour, px(2));
    if (outlined) list->AddRect({x0 - 1, y}, {x1 + 1, y + piece.h}, theme().warning, px(2));
  }
}

void PageView::Impl::draw_text_boxes() {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Theme& colours = theme();
  int hovered_link = -1, region = -1;
  if (ImGui::IsWindowHovered()) {
    const ImVec2 at = on_page(ImGui::GetMousePos(), &region);
    const int box = layout.box_at(at.x, at.y);
    if (box >= 0) hovered_link = layout.boxes[box].link;
  }
  const int tabbed_link = tabbed >= 0 && tabbed < static_cast<int>(layout.boxes.size()) ? layout.boxes[tabbed].link : -1;
  for (std::size_t i = first_box; i < last_box; ++i) {
    const TextBox& box = layout.boxes[i];
    if (box.y + box.h < view_top || box.y > view_top + view_height) continue;
    ImFont* face = font(box.font);
    if (face == nullptr) continue;
    const float x = origin.x + box.x - shift_of(box.region), y = origin.y + box.y;
    const bool clipped = box.region >= 0;
    if (clipped) {
      const page::Region& one = layout.regions[static_cast<std::size_t>(box.region)];
      list->PushClipRect({origin.x + one.x + 1, origin.y + one.y}, {origin.x + one.x + one.w - 1, origin.y + one.y + one.h}, true);
    }
    const bool code = (box.style & Style::code) != 0, link = box.link >= 0;
    const ImU32 ink = link ? colours.link : code ? colours.code[static_cast<std::size_t>(box.token)] : colours.text;
    draw_text(list, box.font, {x, y + std::floor((box.h - face->FontSize) / 2)}, ink, layout.text_of(box));
    if ((box.style & Style::strike) != 0) list->AddLine({x, y + box.h * 0.55F}, {x + box.w, y + box.h * 0.55F}, ink, px(1));
    if (link && (box.link == hovered_link || box.link == tabbed_link)) list->AddLine({x, y + box.h - px(3)}, {x + box.w, y + box.h - px(3)}, ink, px(1));
    if (link && box.link == tabbed_link) list->AddRect({x - px(2), y}, {x + box.w + px(2), y + box.h}, colours.accent, px(3), 0, px(2));
    if (link) note_spot(std::string(layout.text_of(box)), {x, y}, {x + box.w, y + box.h});
    if (clipped) list->PopClipRect();
  }
  if (seen.first < seen.second) note_words(layout.text.substr(seen.first, seen.second - seen.first));
}

// A thin bar under what is wider than the page.
void PageView::Impl::draw_region_bars() {
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t i = 0; i < layout.regions.size(); ++i) {
    const page::Region& one = layout.regions[i];
    if (one.content_width <= one.w + 1 || one.y + one.h < view_top || one.y > view_top + view_height) continue;
    const float share = one.w / one.content_width, at = sideways[i] / one.content_width;
    const float y = origin.y + one.y + one.h - px(5);
    list->AddRectFilled({origin.x + one.x + at * one.w, y}, {origin.x + one.x + (at + share) * one.w, y + px(3)}, theme().border, px(2));
  }
}

}  // namespace shardbook::ui
