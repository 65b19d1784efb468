// lanes/ticks: which times stand on the ruler, and what is written at them?
#pragma once

#include <string>
#include <vector>

#include "viewer/scene/items.hpp"

namespace shardbook::lanes {

// The distance of ticks for this scale in ns: 1, 2 or 5 times a power of ten, at least 1, at least `least_px` apart.
double tick_ns(double ns_per_pixel, float least_px);

// The ticks within the view, ascending, each a multiple of `distance` counted from `zero` (the start of the run).
std::vector<double> ticks_of(const scene::TimeView& view, double zero, double distance);

// "12.4 ms": a time with as many digits as it takes to tell neighbouring ticks apart. Never "-0".
std::string tick_text(double time_ns, double distance_ns);

}  // namespace shardbook::lanes
