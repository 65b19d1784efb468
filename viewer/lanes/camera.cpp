#include "viewer/lanes/camera.hpp"

#include <algorithm>

namespace shardbook::lanes {

namespace {

// Neither narrower than the least view nor further out than twice the run.
void keep_within(TimeView& view, Interval whole) {
  const double run = std::max<double>(static_cast<double>(whole.length()), least_view_ns);
  const double length = std::clamp(view.end - view.start, least_view_ns, 2 * run);
  const double middle = std::clamp((view.start + view.end) / 2, static_cast<double>(whole.start), static_cast<double>(whole.end));
  view.start = middle - length / 2;
  view.end = middle + length / 2;
}

}  // namespace

void zoom(TimeView& view, double factor, float at_x, Interval whole) {
  const double run = std::max<double>(static_cast<double>(whole.length()), least_view_ns);
  const double length = view.end - view.start;
  const double wanted = std::clamp(length * factor, least_view_ns, 2 * run);
  const double share = view.width > 0 ? at_x / view.width : 0.5;
  const double fixed = view.start + share * length;
  view.start = fixed - share * wanted;
  view.end = view.start + wanted;
  keep_within(view, whole);
}

void pan(TimeView& view, double share, Interval whole) {
  const double by = share * (view.end - view.start);
  view.start += by;
  view.end += by;
  keep_within(view, whole);
}

void pan_pixels(TimeView& view, float pixels, Interval whole) { pan(view, view.width > 0 ? pixels / view.width : 0, whole); }

void show(TimeView& view, Interval window, Interval whole, double air) {
  const double length = std::max<double>(static_cast<double>(window.length()), least_view_ns);
  view.start = static_cast<double>(window.start) - air * length;
  view.end = static_cast<double>(window.start) + (1 + air) * length;
  keep_within(view, whole);
}

void center(TimeView& view, Interval window, Interval whole) {
  const double length = view.end - view.start;
  if (static_cast<double>(window.length()) > length) {
    show(view, window, whole, 0.1);
    return;
  }
  const double middle = (static_cast<double>(window.start) + static_cast<double>(window.end)) / 2;
  view.start = middle - length / 2;
  view.end = middle + length / 2;
  keep_within(view, whole);
}

}  // namespace shardbook::lanes
