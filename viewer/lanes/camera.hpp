// lanes/camera: which stretch of time is looked at?
//
// Pure arithmetic on a TimeView, so that keys, wheel, scripts and tests move it alike. The view never
// gets narrower than 100 ns nor leaves the run by more than half of its own width.
#pragma once

#include "viewer/scene/items.hpp"

namespace shardbook::lanes {

using metrics::Interval;
using scene::TimeView;

constexpr double least_view_ns = 100;

// Zooms so that the time under `at_x` stays there; factor < 1 zooms in.
void zoom(TimeView& view, double factor, float at_x, Interval whole);
// Moves by a share of the view's width; positive looks later.
void pan(TimeView& view, double share, Interval whole);
void pan_pixels(TimeView& view, float pixels, Interval whole);
// Shows the window with a little air on both sides.
void show(TimeView& view, Interval window, Interval whole, double air = 0.02);
// The least move that brings the window to the middle, without zooming unless it is wider than the view.
void center(TimeView& view, Interval window, Interval whole);

}  // namespace shardbook::lanes
