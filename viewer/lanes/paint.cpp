#include "viewer/lanes/paint.hpp"

#include <algorithm>
#include <cmath>

#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::lanes {

using scene::Item;
using scene::Paint;
using ui::px;
using ui::theme;

namespace {

ImU32 with_alpha(ImU32 colour, float alpha) {
  const auto a = static_cast<ImU32>(alpha * static_cast<float>((colour >> IM_COL32_A_SHIFT) & 0xff));
  return (colour & ~IM_COL32_A_MASK) | (a << IM_COL32_A_SHIFT);
}

ImU32 fill_of(Paint paint) { return theme().paint[static_cast<std::size_t>(paint)]; }
ImU32 words_of(Paint paint) { return theme().paint_text[static_cast<std::size_t>(paint)]; }

bool is_hatched(Paint paint) { return paint == Paint::communication || paint == Paint::exposed; }

void draw_block(ImDrawList* list, Paint paint, ImVec2 from, ImVec2 to, Hatch& hatch) {
  const ImU32 fill = fill_of(paint);
  switch (paint) {
    case Paint::idle:
    case Paint::wait:
      list->AddRectFilled(from, to, with_alpha(fill, 0.22f));
      if (to.x - from.x >= 3) list->AddRect(from, to, fill);
      return;
    case Paint::sync:
    case Paint::annotation:
    case Paint::host:
      list->AddRectFilled(from, to, with_alpha(fill, 0.75f), to.x - from.x > 6 ? px(2) : 0);
      return;
    default:
      list->AddRectFilled(from, to, fill, to.x - from.x > 6 ? px(2) : 0);
  }
  // Shapes, where there is room to see them.
  if (to.x - from.x < px(3)) return;
  const ImU32 ink = with_alpha(words_of(paint), 0.42f);
  if (is_hatched(paint)) hatch.fill(list, from, to, ink, paint == Paint::exposed);
  if (paint == Paint::memory) {
    const float middle = std::floor((from.y + to.y) / 2);
    list->AddRectFilled({from.x, middle - px(1)}, {to.x, middle + px(1)}, ink);
  }
}

// Stacked from the bottom: compute, communication, memory, other.
void draw_coverage(ImDrawList* list, const Item& item, float x0, float x1, const RowRect& row, Hatch& hatch) {
  const std::array<Paint, 4> classes{Paint::compute, item.of_rank ? Paint::exposed : Paint::communication, Paint::memory, Paint::host};
  float bottom = row.bottom;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (item.busy[c] <= 0) continue;
    // A derived row is of one class only, and is painted as what it is.
    const Paint paint = item.paint >= Paint::exposed ? item.paint : classes[c];
    const float top = std::max(row.top, bottom - std::max(1.0f, item.busy[c] * row.height()));
    const ImU32 fill = fill_of(paint);
    list->AddRectFilled({x0, top}, {x1, bottom}, fill);
    if (is_hatched(paint)) hatch.fill(list, {x0, top}, {x1, bottom}, with_alpha(words_of(paint), 0.42f), paint == Paint::exposed);
    bottom = top;
  }
}

}  // namespace

void Hatch::fill(ImDrawList* list, ImVec2 from, ImVec2 to, ImU32 colour, bool both_ways) {
  if (lines_ > most_lines_) return;
  // Whole multiples, so that equal x still give equal lines.
  const float step = step_ * std::max(1.0f + static_cast<float>(lines_ / lines_a_step_), std::ceil((to.x - from.x) / (400 * step_)));
  const float height = to.y - from.y;
  // Line k runs through (k * step, to.y) upward to the right; its ends are cut to the rectangle.
  for (float foot = std::floor((from.x - height) / step) * step; foot < to.x; foot += step) {
    const float enter = std::max(foot, from.x), leave = std::min(foot + height, to.x);
    if (leave <= enter) continue;
    list->AddLine({enter, to.y - (enter - foot)}, {leave, to.y - (leave - foot)}, colour, 1);
    if (both_ways) list->AddLine({enter, from.y + (enter - foot)}, {leave, from.y + (leave - foot)}, colour, 1);
    lines_ += both_ways ? 2 : 1;
  }
}

void draw_item(ImDrawList* list, const Item& item, const RowRect& row, Hatch& hatch) {
  const float x0 = row.left + item.x0;
  float x1 = std::max(row.left + item.x1, x0 + 1);
  if (item.kind == Item::Kind::coverage) {
    draw_coverage(list, item, x0, x1, row, hatch);
    return;
  }
  // A hair of ground between neighbours, so that they can be counted.
  if (x1 - x0 > 4) x1 -= 1;
  draw_block(list, item.paint, {x0, row.top}, {x1, row.bottom}, hatch);
}

void draw_queued(ImDrawList* list, float x0, float x1, const RowRect& row, Hatch& hatch) {
  list->AddRectFilled({x0, row.top}, {x1, row.bottom}, theme().panel);
  const ImU32 fill = fill_of(Paint::communication);
  const float half = std::max(px(2.5f), row.height() * 0.15f), middle = std::floor((row.top + row.bottom) / 2);
  const ImVec2 from{x0, std::floor(middle - half)}, to{x1, std::floor(middle + half)};
  list->AddRectFilled(from, to, with_alpha(fill, 0.3f));
  hatch.fill(list, from, to, fill);
  list->AddLine({x0, from.y}, {x1, from.y}, fill);
  list->AddLine({x0, to.y}, {x1, to.y}, fill);
  // Where it got there.
  list->AddRectFilled({x0, row.top + px(1)}, {x0 + px(1.5f), row.bottom - px(1)}, fill);
}

ImU32 plate_of(Paint paint) { return is_hatched(paint) || paint == Paint::memory ? fill_of(paint) : 0; }

void draw_label(ImDrawList* list, const std::string& words, float x0, float x1, const RowRect& row, ImU32 colour, ImU32 ground) {
  ImFont* font = ui::font(page::FontKind::small);
  const float size = font->FontSize, room = x1 - x0 - px(8);
  if (room < size * 1.5f) return;
  const char* end = words.data() + words.size();
  const char* cut = end;
  const float width = font->CalcTextSizeA(size, room, 0, words.data(), end, &cut).x;
  const float y = std::floor((row.top + row.bottom - size) / 2);
  const auto put = [&](const char* begin, const char* stop, float x, float wide) {
    if (ground != 0) list->AddRectFilled({x - px(2), y}, {x + wide + px(2), y + size}, ground, px(2));
    list->AddText(font, size, {x, y}, colour, begin, stop);
  };
  if (cut == end) {
    put(words.data(), end, std::floor(x0 + std::min(px(4), (x1 - x0 - width) / 2)), width);
    return;
  }
  const float dots = font->CalcTextSizeA(size, room, 0, "…").x;
  const float kept = font->CalcTextSizeA(size, room - dots, 0, words.data(), end, &cut).x;
  if (cut - words.data() < 3) return;
  const std::string shown = std::string(words.data(), cut) + "…";
  put(shown.data(), shown.data() + shown.size(), std::floor(x0 + px(4)), kept + dots);
}

void draw_frame(ImDrawList* list, float x0, float x1, const RowRect& row, bool selected) {
  const float least = px(4);
  if (x1 - x0 < least) {
    const float middle = (x0 + x1) / 2;
    x0 = middle - least / 2;
    x1 = middle + least / 2;
  }
  const float out = selected ? px(2) : px(1);
  if (selected) list->AddRect({x0 - out - 1, row.top - out - 1}, {x1 + out, row.bottom + out + 1}, theme().ground, px(2), 0, px(1.5f));
  list->AddRect({x0 - out, row.top - out}, {x1 + out - 1, row.bottom + out}, theme().text, px(2), 0, selected ? px(2) : px(1));
}

}  // namespace shardbook::lanes
