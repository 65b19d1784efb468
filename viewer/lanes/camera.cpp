#include "viewer/lanes/camera.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardbook::lanes {

namespace {

double middle_of(Interval window) { return static_cast<double>(window.start) + static_cast<double>(window.length()) / 2; }

// A width that the run allows.
double allowed(double length, Interval whole) {
  const double least = least_view_ns(whole);
  return std::clamp(length, least, 2 * std::max(static_cast<double>(whole.length()), least));
}

void put(TimeView& view, double middle, double length, Interval whole) {
  const double half = allowed(length, whole) / 2;
  const double at = std::clamp(middle, static_cast<double>(whole.start), static_cast<double>(whole.end));
  view.start = at - half;
  view.end = at + half;
}

}  // namespace

double least_view_ns(Interval whole) {
  const double farthest = std::max(std::abs(static_cast<double>(whole.start)), std::abs(static_cast<double>(whole.end)));
  const double step = std::nextafter(farthest, std::numeric_limits<double>::max()) - farthest;
  return std::max(100.0, 1024 * step);
}

void zoom(TimeView& view, double factor, float at_x, Interval whole) {
  const double length = view.end - view.start, wanted = allowed(length * factor, whole);
  const double share = view.width > 0 ? at_x / view.width : 0.5;
  const double fixed = view.start + share * length;
  put(view, fixed + (0.5 - share) * wanted, wanted, whole);
}

void pan(TimeView& view, double share, Interval whole) {
  const double length = view.end - view.start;
  look_at(view, (view.start + view.end) / 2 + share * length, whole);
}

void pan_pixels(TimeView& view, float pixels, Interval whole) { pan(view, view.width > 0 ? pixels / view.width : 0, whole); }

void show(TimeView& view, Interval window, Interval whole, double air) {
  const double length = std::max(static_cast<double>(window.length()), least_view_ns(whole));
  put(view, static_cast<double>(window.start) + length / 2, (1 + 2 * air) * length, whole);
}

void center(TimeView& view, Interval window, Interval whole) {
  if (static_cast<double>(window.length()) > view.end - view.start) show(view, window, whole, 0.1);
  else look_at(view, middle_of(window), whole);
}

void look_at(TimeView& view, double time, Interval whole) { put(view, time, view.end - view.start, whole); }

void keep_within(TimeView& view, Interval whole) {
  const double length = view.end - view.start, middle = (view.start + view.end) / 2, best = allowed(length, whole);
  // Ends are rounded, so a width that is allowed may be a hair off.
  const bool is_wide = std::abs(length - best) <= 0.01 * best;
  if (!is_wide || middle < static_cast<double>(whole.start) - best / 100 || middle > static_cast<double>(whole.end) + best / 100) look_at(view, middle, whole);
}

}  // namespace shardbook::lanes
