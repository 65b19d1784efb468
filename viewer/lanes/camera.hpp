// lanes/camera: which stretch of time is looked at?
//
// Pure arithmetic on a TimeView, so that keys, wheel, scripts and tests move it alike. A view never gets narrower than
// least_view_ns, nor wider than twice the run, and its middle never leaves the run. REQUIRES: view.start < view.end.
#pragma once

#include "viewer/scene/items.hpp"

namespace shardbook::lanes {

using base::Interval;
using scene::TimeView;

// 100 ns; more where a double cannot tell a thousandth of that apart: a trace that counts from 1970 is seen 262 us wide.
double least_view_ns(Interval whole);

// Zooms so that the time under `at_x` stays there, as far as the run reaches; factor < 1 zooms in.
void zoom(TimeView& view, double factor, float at_x, Interval whole);
// Moves by a share of the view's width; positive looks later.
void pan(TimeView& view, double share, Interval whole);
void pan_pixels(TimeView& view, float pixels, Interval whole);
// Shows the window with this share of its length as air on both sides.
void show(TimeView& view, Interval window, Interval whole, double air = 0.02);
// Brings the window to the middle, without zooming unless it is wider than the view.
void center(TimeView& view, Interval window, Interval whole);
// Brings this time to the middle, without zooming.
void look_at(TimeView& view, double time, Interval whole);
// A view that was read from a file; changes nothing where it already is as the head says.
void keep_within(TimeView& view, Interval whole);

}  // namespace shardbook::lanes
