// shard/interval: half-open ranges of indices, and how an extent is cut into them.
//
// Every cut in the project is a list of intervals, never "size / n": a rank's part is what its
// interval says, also when an extent does not divide and parts differ by one.
#pragma once

#include <cstdint>
#include <vector>

namespace shardbook::shard {

// The indices begin <= i < end. Empty when begin == end.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  constexpr std::int64_t size() const { return end - begin; }
  constexpr bool empty() const { return begin >= end; }
  constexpr bool contains(std::int64_t index) const { return begin <= index && index < end; }
  // The same indices counted from `origin`.
  constexpr Interval relative_to(std::int64_t origin) const { return {begin - origin, end - origin}; }
  constexpr bool operator==(const Interval&) const = default;
};

// What both hold; {0, 0} when they hold nothing in common.
Interval intersect(Interval a, Interval b);

// Part `index` of [0, extent) cut into `parts` runs in order. Sizes differ by at most one, longer
// ones first. REQUIRES: extent >= 0, parts >= 1, 0 <= index < parts.
Interval part_of(std::int64_t extent, int parts, int index);

// All parts of [0, extent), in order.
std::vector<Interval> cut(std::int64_t extent, int parts);

// value rounded up to a multiple. REQUIRES: value >= 0, multiple >= 1.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace shardbook::shard
