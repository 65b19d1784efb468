// base/intervals: merges of sorted lists; see intervals.hpp.
#include "engine/base/intervals.hpp"

#include <algorithm>

namespace shardbook::base {
namespace {

// Appends to a normalised list; `next` starts no earlier than the last one.
void append(Intervals& list, Interval next) {
  if (next.end <= next.start) return;
  if (!list.empty() && next.start <= list.back().end) {
    list.back().end = std::max(list.back().end, next.end);
  } else {
    list.push_back(next);
  }
}

}  // namespace

Intervals union_of(std::vector<Interval> any) {
  const auto earlier = [](const Interval& a, const Interval& b) { return a.start < b.start; };
  if (!std::is_sorted(any.begin(), any.end(), earlier)) std::sort(any.begin(), any.end(), earlier);
  Intervals out;
  for (const Interval& next : any) append(out, next);
  return out;
}

Intervals unite(const Intervals& a, const Intervals& b) {
  Intervals out;
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const bool from_a = j == b.size() || (i < a.size() && a[i].start <= b[j].start);
    append(out, from_a ? a[i++] : b[j++]);
  }
  return out;
}

Intervals intersect(const Intervals& a, const Intervals& b) {
  Intervals out;
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    append(out, {std::max(a[i].start, b[j].start), std::min(a[i].end, b[j].end)});
    if (a[i].end < b[j].end) ++i;
    else ++j;
  }
  return out;
}

Intervals subtract(const Intervals& a, const Intervals& b) {
  Intervals out;
  std::size_t j = 0;
  for (const Interval& whole : a) {
    Nanoseconds from = whole.start;
    while (j < b.size() && b[j].end <= from) ++j;
    std::size_t k = j;
    for (; k < b.size() && b[k].start < whole.end; ++k) {
      append(out, {from, b[k].start});
      from = std::max(from, b[k].end);
    }
    append(out, {from, whole.end});
  }
  return out;
}

Intervals clip(const Intervals& a, Interval window) { return intersect(a, Intervals{window}); }

Nanoseconds length(const Intervals& a) {
  Nanoseconds sum = 0;
  for (const Interval& interval : a) sum += interval.length();
  return sum;
}

Nanoseconds length_within(const Intervals& a, Interval window) {
  auto at = std::upper_bound(a.begin(), a.end(), window.start,
                             [](Nanoseconds time, const Interval& interval) { return time < interval.end; });
  Nanoseconds sum = 0;
  for (; at != a.end() && at->start < window.end; ++at) {
    sum += std::min(at->end, window.end) - std::max(at->start, window.start);
  }
  return sum;
}

}  // namespace shardbook::base
