// views/figures: how a time, a share and a difference are written, and how long each part of a bar is.
//
// Pure; what decides the figures that a reader sees and compares stands here once.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

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

// The bar of a rank, or of several that are alike: then partition and waiting are the first's.
struct RankBar {
  std::vector<base::Rank> ranks;       // ascending
  metrics::Partition partition;
  base::Nanoseconds waiting = 0;
  bool apart = false;                  // never folded: the rank that all wait for
};
// One bar for ranks whose parts differ by no more than a hundredth of the window from those of the bar's first.
std::vector<RankBar> folded(const std::vector<RankBar>& bars);
// All, or so many with the most exposed time, in the order of the ranks. with_apart: and those that stand apart before them.
std::vector<RankBar> most_exposed(std::vector<RankBar> bars, std::size_t most, bool with_apart);
// "rank 3", "ranks 0–7 alike", "ranks 0, 2–3 alike"; of more than three pieces "12 ranks like 0".
std::string name_of(const RankBar& bar);

// The lengths, both included, that the bars of the histogram stand for that two shares of its width lie on, in any order.
// All of the width is all lengths. Where the bars are closer than a nanosecond, none: then the first is the greater.
std::pair<base::Nanoseconds, base::Nanoseconds> lengths_between(const scene::Histogram& histogram, double one, double other);

}  // namespace shardbook::views
