// scene/coverage: how busy was this row in this slice of time?
//
// A slice of the picture may hold one span or a million. Drawn as one block, a row looks busy where it
// stood still half of the time; so the scene keeps how many nanoseconds of each slice were busy. For
// each class of a track: the disjoint intervals in which it is busy (its union), a prefix sum over them,
// and a pyramid of busy time whose level k has slices of 2^(16+k) ns. A query of any length is exact to
// the nanosecond; a picture of n columns costs O(n) from the pyramid where a column is at least 2^16 ns
// wide, else O(n + log spans) by galloping over the prefix sums.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/metrics/intervals.hpp"

namespace shardbook::scene {

using base::Nanoseconds;
using metrics::Interval;
using metrics::Intervals;

class Coverage {
 public:
  Coverage() = default;
  // REQUIRES: the canonical form of metrics/intervals (ascending, none empty, none touching).
  explicit Coverage(Intervals busy);

  bool empty() const { return start_.empty(); }
  // Busy time within [start, end), exact, O(log n).
  Nanoseconds busy(Interval window) const;
  // out[i] = busy time within [edges[i], edges[i + 1]); edges ascend. Sums to busy(front, back) exactly.
  void columns(std::span<const Nanoseconds> edges, std::span<Nanoseconds> out) const;
  // The intervals that touch the window, unclipped.
  Intervals within(Interval window) const;
  std::size_t memory() const;

 private:
  Nanoseconds before(Nanoseconds time) const;          // busy time in (-inf, time), O(log n)
  static constexpr int base_bits = 16;

  std::vector<Nanoseconds> start_, end_, prefix_;      // prefix_[i]: busy time of intervals before i
  Nanoseconds origin_ = 0;                             // where slice 0 of every level begins
  std::vector<std::vector<Nanoseconds>> levels_;       // cumulative busy time at each slice's begin
};

}  // namespace shardbook::scene
