// scene/items: what is drawn of one row?
//
// Few spans in view: each is an Item with its exact place. Many: one Item a run of like columns, with
// how much of its time each class was busy; never a solid block for what was half idle. Each Item knows
// its longest span, so that hover and click find something at every zoom. Items are what tests assert.
//
// Time of a row in view is never lost: spans (clipped) and busy shares times their width sum to
// Scene::busy() of the view, at every zoom.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/base/intervals.hpp"
#include "engine/timeline/timeline.hpp"

namespace shardbook::scene {

// What an item shows; lanes/ gives each a colour and a shape.
enum class Paint : std::uint8_t {
  compute, communication, memory, sync, host, annotation,   // as timeline::Class
  exposed, idle, wait,                                      // wait: a collective before its last rank came
  critical,
};
constexpr int paint_count = 10;

// Items of a row ascend in x0 for each depth, and those of depth 0 don't overlap.
struct Item {
  enum class Kind : std::uint8_t { span, coverage };
  Kind kind = Kind::span;
  // Of a span its class (of critical rows: critical). Of coverage the row's: exposed, idle, critical; host
  // of host rows; annotation of marks; of streams and ranks compute, and `busy` says more.
  Paint paint = Paint::compute;
  std::int32_t depth = 0;                     // nested level within the row
  float x0 = 0, x1 = 0;                       // pixels from the left of the plot, clipped to it
  // Of coverage: share of compute, communication, memory, other; sum <= 1. Of a rank row: compute, exposed
  // communication, exposed memory, 0; the rest is idle. Of exposed rows [1], of idle and critical ones [3].
  std::array<float, 4> busy{};
  bool of_rank = false;                       // coverage of a rank row: its communication is all exposed
  timeline::SpanRef span;                     // the span, or the longest one of a coverage item (may be invalid)
  base::Nanoseconds wait_ns = 0;              // of a collective's span: how much of it was waiting
  base::Nanoseconds queued_ns = 0;            // and behind that, of standing before a full device (metrics/queued.hpp)
  std::uint32_t count = 1;                    // spans that begin in it, at least 1 (of derived rows 1)
};

// The view: what time is where on the screen. Pixels are computed as double differences from `start`.
struct TimeView {
  double start = 0, end = 1;                  // ns; start < end
  float width = 1;                            // pixels
  int most = 0;                               // items of a row at most; 0: width / 3. Below 8 it is 8; each nested level may take 4 more.
  double per_pixel() const { return (end - start) / width; }
  float x_of(base::Nanoseconds time) const { return static_cast<float>((static_cast<double>(time) - start) / per_pixel()); }
  base::Nanoseconds time_at(float x) const { return static_cast<base::Nanoseconds>(start + x * per_pixel()); }
};

}  // namespace shardbook::scene
