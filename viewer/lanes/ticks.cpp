#include "viewer/lanes/ticks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace shardbook::lanes {

double tick_ns(double ns_per_pixel, float least_px) {
  const double least = std::max(ns_per_pixel * least_px, 1.0);
  const double power = std::pow(10, std::floor(std::log10(least) + 1e-9));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (power * times >= least * (1 - 1e-9)) return power * times;
  }
  return power * 10;
}

std::vector<double> ticks_of(const scene::TimeView& view, double zero, double distance) {
  std::vector<double> ticks;
  const double first = std::ceil((view.start - zero) / distance), last = std::floor((view.end - zero) / distance);
  for (double number = 0; first + number <= last; ++number) ticks.push_back((first + number) * distance);
  return ticks;
}

std::string tick_text(double time_ns, double distance_ns) {
  struct Unit {
    double ns;
    const char* name;
  };
  constexpr Unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};
  const double largest = std::max(std::abs(time_ns), distance_ns);
  const Unit* unit = std::find_if(std::begin(units), std::end(units) - 1, [&](const Unit& one) { return largest >= one.ns * (1 - 1e-9); });
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(distance_ns / unit->ns) - 1e-9)), 0, 9);
  const double shown = std::abs(time_ns) < distance_ns / 2 ? 0 : time_ns / unit->ns;
  char words[48];
  std::snprintf(words, sizeof words, "%.*f %s", decimals, shown, unit->name);
  return words;
}

}  // namespace shardbook::lanes
