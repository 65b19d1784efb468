#include <cmath>
#include <cstdio>

#include "viewer/lanes/parts.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::lanes {

using ui::px;
using ui::theme;

namespace {

// "12.4 ms" with as many digits as neighbouring ticks differ by.
std::string tick_text(double time_ns, double distance_ns) {
  struct Unit {
    double ns;
    const char* name;
  };
  constexpr Unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};
  const double largest = std::max(std::abs(time_ns), distance_ns);
  const Unit* unit = &units[3];
  for (const Unit& candidate : units) {
    if (largest >= candidate.ns) {
      unit = &candidate;
      break;
    }
  }
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(distance_ns / unit->ns) - 1e-9)), 0, 6);
  char words[48];
  const double shown = std::abs(time_ns) < distance_ns / 2 ? 0 : time_ns / unit->ns;    // never "-0"
  std::snprintf(words, sizeof words, "%.*f %s", decimals, shown, unit->name);
  return words;
}

void draw_steps(ImDrawList* list, const scene::Scene& scene, const scene::TimeView& view, const Frame& ruler, const Frame& body) {
  ImFont* font = ui::font(page::FontKind::small);
  for (const scene::Scene::StepWindow& step : scene.steps()) {
    const float x0 = std::max(ruler.from.x, ruler.from.x + view.x_of(step.window.start));
    const float x1 = std::min(ruler.to.x, ruler.from.x + view.x_of(step.window.end));
    if (x1 <= x0) continue;
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

double tick_ns(double ns_per_pixel, float least_px) {
  const double least = std::max(ns_per_pixel * least_px, 1.0);
  const double power = std::pow(10, std::floor(std::log10(least) + 1e-9));
  for (const double times : {1.0, 2.0, 5.0, 10.0}) {
    if (power * times >= least - 1e-6) return power * times;
  }
  return power * 10;
}

void draw_ruler(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const Frame& ruler, const Frame& body) {
  const scene::TimeView& view = state.view;
  list->PushClipRect(ruler.from, {ruler.to.x, body.to.y}, true);
  draw_steps(list, scene, view, ruler, body);

  // Ticks count from the start of the run, whatever the base of its clock is.
  const auto zero = static_cast<double>(scene.whole().start);
  const double distance = tick_ns(view.per_pixel(), px(96));
  ImFont* font = ui::font(page::FontKind::small);
  const float middle = ruler.from.y + ruler.height() / 2;
  for (double tick = std::ceil((view.start - zero) / distance) * distance; zero + tick <= view.end; tick += distance) {
    const float x = std::floor(ruler.from.x + static_cast<float>((zero + tick - view.start) / view.per_pixel()));
    list->AddLine({x, middle}, {x, body.to.y}, theme().faint);
    list->AddText(font, font->FontSize, {x + px(4), middle + px(1)}, theme().dim, tick_text(tick, distance).c_str());
  }
  list->AddLine({ruler.from.x, ruler.to.y}, ruler.to, theme().border);

  // Ranges: what is kept, what is not.
  const auto band = [&](metrics::Window window, ImU32 colour, const std::string& note) {
    const float x0 = ruler.from.x + view.x_of(window.start), x1 = ruler.from.x + view.x_of(window.end);
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
