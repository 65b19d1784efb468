// base/intervals: sets of times, and their algebra. Every metric is made of it.
//
// A set of times is a list of half-open intervals [start, end), ascending, none empty, none
// touching: that form is unique, so two sets are equal if their lists are. Integer nanoseconds;
// all operations are one merge, linear in their inputs (a union also sorts what is not sorted).
#pragma once

#include <vector>

#include "engine/base/types.hpp"

namespace shardbook::base {

struct Interval {
  Nanoseconds start = 0, end = 0;
  Nanoseconds length() const { return end - start; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

using Intervals = std::vector<Interval>;

// The union of intervals in any order; empty ones are dropped.
Intervals union_of(std::vector<Interval> any);
Intervals unite(const Intervals& a, const Intervals& b);
Intervals intersect(const Intervals& a, const Intervals& b);
Intervals subtract(const Intervals& a, const Intervals& b);
Intervals clip(const Intervals& a, Interval window);
Nanoseconds length(const Intervals& a);
// The part of `a` within one interval, in O(log n + parts).
Nanoseconds length_within(const Intervals& a, Interval window);

}  // namespace shardbook::base
