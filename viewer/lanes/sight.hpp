// lanes/sight: which things of a long list are seen?
//
// A run has more pieces than the screen has columns. What is out of sight is not looked at, and of those that fall on one
// pixel a few: drawing a list costs O(pixels * log n), however long it is.
#pragma once

#include <algorithm>

#include "viewer/scene/items.hpp"

namespace shardbook::lanes {

// The pixel of a time, but at most a view's width outside of the view: what is drawn millions of pixels away is drawn wrong.
inline float near_x(const scene::TimeView& view, base::Nanoseconds time) {
  const double x = (static_cast<double>(time) - view.start) / view.per_pixel(), width = view.width;
  return static_cast<float>(std::clamp(x, -width, 2 * width));
}

// Calls draw(thing, x0, x1) in order for things that touch the view. It returns how many pixels behind the thing's end
// are taken: things that end within them are passed over. A thing that is wider is never passed over.
// REQUIRES: time_of(thing), an Interval, ascends in its end along [first, last).
template <typename Iterator, typename TimeOf, typename Draw>
void each_in_sight(Iterator first, Iterator last, const scene::TimeView& view, TimeOf time_of, Draw draw) {
  const auto seek = [&](Iterator from, double time) {
    return std::partition_point(from, last, [&](const auto& thing) { return static_cast<double>(time_of(thing).end) < time; });
  };
  for (Iterator at = seek(first, view.start); at != last;) {
    const base::Interval time = time_of(*at);
    if (static_cast<double>(time.start) > view.end) return;
    const float taken = draw(*at, near_x(view, time.start), near_x(view, time.end));
    at = seek(++at, static_cast<double>(time.end) + static_cast<double>(taken) * view.per_pixel());
  }
}

}  // namespace shardbook::lanes
