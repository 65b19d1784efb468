#include <cmath>

#include "viewer/lanes/parts.hpp"
#include "viewer/lanes/sight.hpp"
#include "viewer/lanes/ticks.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::lanes {

using ui::px;
using ui::theme;

namespace {

constexpr float least_tick_units = 96;

void draw_steps(ImDrawList* list, const scene::Scene& scene, const scene::TimeView& view, const Frame& ruler, const Frame& body) {
  ImFont* font = ui::font(page::FontKind::small);
  float drawn_to = ruler.from.x;
  for (const scene::Scene::StepWindow& step : scene.steps()) {
    const float x0 = std::max(ruler.from.x, ruler.from.x + near_x(view, step.window.start));
    const float x1 = std::min(ruler.to.x, ruler.from.x + near_x(view, step.window.end));
    // Of steps that share a pixel the first is drawn.
    if (x1 <= x0 || x1 - drawn_to < 1) continue;
    drawn_to = x1;
    const float bottom = ruler.from.y + ruler.height() / 2;
    list->AddRectFilled({x0, ruler.from.y}, {x1, bottom}, step.number % 2 ? theme().hover : theme().raised);
    list->AddLine({x0, ruler.from.y}, {x0, body.to.y}, theme().border);
    list->AddLine({x1, ruler.from.y}, {x1, body.to.y}, theme().border);
    const std::string words = "step " + std::to_string(step.number);
    const float width = font->CalcTextSizeA(font->FontSize, 1e9f, 0, words.c_str()).x;
    if (x1 - x0 > width + px(10)) {
      list->AddText(font, font->FontSize, {std::floor(x0 + px(6)), ruler.from.y + px(1)}, theme().text, words.c_str());
    }
  }
}

}  // namespace

void draw_ruler(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const Frame& ruler, const Frame& body) {
  const scene::TimeView& view = state.view;
  list->PushClipRect(ruler.from, {ruler.to.x, body.to.y}, true);
  draw_steps(list, scene, view, ruler, body);

  // Ticks count from the start of the run, whatever the base of its clock is.
  const auto zero = static_cast<double>(scene.whole().start);
  ImFont* font = ui::font(page::FontKind::small);
  double distance = tick_ns(view.per_pixel(), px(least_tick_units));
  // Late in a long run the words are longer than the usual distance.
  const std::string longest = tick_text(view.end - zero, distance);
  distance = std::max(distance, tick_ns(view.per_pixel(), ui::measure().width(longest, page::FontKind::small) + px(12)));
  const float middle = ruler.from.y + ruler.height() / 2;
  for (const double tick : ticks_of(view, zero, distance)) {
    const float x = std::floor(ruler.from.x + static_cast<float>((zero + tick - view.start) / view.per_pixel()));
    list->AddLine({x, middle}, {x, body.to.y}, theme().faint);
    // Words that the edge would cut are not written: half a figure is another figure.
    const std::string words = tick_text(tick, distance);
    if (x + px(4) + ui::measure().width(words, page::FontKind::small) > ruler.to.x) continue;
    list->AddText(font, font->FontSize, {x + px(4), middle + px(1)}, theme().dim, words.c_str());
    ui::note_words(words);
  }
  list->AddLine({ruler.from.x, ruler.to.y}, ruler.to, theme().border);

  // Ranges: what is kept, what is not.
  const auto band = [&](metrics::Window window, ImU32 colour, const std::string& note) {
    const float x0 = ruler.from.x + near_x(view, window.start), x1 = ruler.from.x + near_x(view, window.end);
    if (x1 < ruler.from.x || x0 > ruler.to.x) return;
    list->AddRectFilled({x0, middle}, {std::max(x1, x0 + 1), ruler.to.y}, (colour & ~IM_COL32_A_MASK) | IM_COL32(0, 0, 0, 70));
    list->AddLine({x0, middle}, {x0, body.to.y}, colour);
    list->AddLine({x1, middle}, {x1, body.to.y}, colour);
    if (!note.empty()) list->AddText(font, font->FontSize, {std::max(x0, ruler.from.x) + px(4), ruler.from.y + px(1)}, theme().text, note.c_str());
  };
  for (const scene::Range& range : state.ranges) band(range.window, theme().accent, range.note);
  if (state.temporary) band(*state.temporary, theme().warning, "");
  list->PopClipRect();
}

}  // namespace shardbook::lanes
