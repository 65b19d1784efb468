// views/figures: how a time, a share and a difference are written, and how long each part of a bar is.
//
// Pure; what decides the figures that a reader sees and compares stands here once.
#pragma once

#include <array>
#include <string>
#include <utility>

#include "engine/metrics/partition.hpp"
#include "viewer/scene/find.hpp"
#include "viewer/scene/items.hpp"

namespace shardbook::views {

// "12.3 %"; "0.0 %" of nothing.
std::string percent_text(base::Nanoseconds part, base::Nanoseconds whole);
// "1.23 ms · 12.3 %"; and with all digits, "1.234567 ms · 12.3 %", where figures are to be added up.
std::string share_text(base::Nanoseconds part, base::Nanoseconds whole);
std::string exact_share_text(base::Nanoseconds part, base::Nanoseconds whole);
// Of b against a: "+1.2 ms", "−310 µs", "0"; "two clocks" where the two are not of one kind of clock.
std::string difference_text(base::Nanoseconds a, base::Nanoseconds b, bool clocks_differ);

// A rank's bar from left to right: compute, exposed transfer, exposed waiting, copies, idle. `waiting` is a part of the
// exposed time.
// Lengths sum to the partition's window, exactly; x ascend from `from` to `to` without gap.
struct BarPart {
  scene::Paint paint{};
  const char* name = "";
  base::Nanoseconds length = 0;
  float x0 = 0, x1 = 0;
};
std::array<BarPart, 5> bar_parts(const metrics::Partition& partition, base::Nanoseconds waiting, float from, float to);

// The lengths, both included, that the bars of the histogram stand for that two shares of its width lie on, in any order.
// All of the width is all lengths. Where the bars are closer than a nanosecond, none: then the first is the greater.
std::pair<base::Nanoseconds, base::Nanoseconds> lengths_between(const scene::Histogram& histogram, double one, double other);

}  // namespace shardbook::views
