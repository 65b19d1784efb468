// Sets of times, against a reference that looks at each nanosecond by itself.
#include "engine/base/intervals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace shardbook::base {
namespace {

// Membership of each nanosecond of [0, size) in a set.
using Bits = std::vector<bool>;
constexpr Nanoseconds size = 160;

Bits bits_of(const Intervals& intervals) {
  Bits bits(size, false);
  for (const Interval& interval : intervals) {
    for (Nanoseconds t = interval.start; t < interval.end; ++t) bits[static_cast<std::size_t>(t)] = true;
  }
  return bits;
}

bool normalised(const Intervals& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].start >= list[i].end) return false;
    if (i > 0 && list[i].start <= list[i - 1].end) return false;
  }
  return true;
}

std::vector<Interval> random_intervals(std::mt19937& random) {
  std::uniform_int_distribution<Nanoseconds> at(0, 120), length(0, 20);
  std::uniform_int_distribution<int> count(0, 15);
  std::vector<Interval> out(static_cast<std::size_t>(count(random)));
  for (Interval& interval : out) {
    interval.start = at(random);
    interval.end = interval.start + length(random);
  }
  return out;
}

TEST(Intervals, FollowTheAlgebraOfSets) {
  std::mt19937 random(1);
  for (int turn = 0; turn < 500; ++turn) {
    const std::vector<Interval> raw_a = random_intervals(random), raw_b = random_intervals(random);
    const Intervals a = union_of(raw_a), b = union_of(raw_b);
    const Bits in_a = bits_of(raw_a), in_b = bits_of(raw_b);
    Bits both(size), either(size), only_a(size);
    for (std::size_t t = 0; t < size; ++t) {
      both[t] = in_a[t] && in_b[t];
      either[t] = in_a[t] || in_b[t];
      only_a[t] = in_a[t] && !in_b[t];
    }
    EXPECT_EQ(bits_of(a), in_a);
    EXPECT_EQ(bits_of(intersect(a, b)), both);
    EXPECT_EQ(bits_of(unite(a, b)), either);
    EXPECT_EQ(bits_of(subtract(a, b)), only_a);
    for (const Intervals& list : {a, intersect(a, b), unite(a, b), subtract(a, b)}) EXPECT_TRUE(normalised(list));
    const Interval window{17, 93};
    EXPECT_EQ(length_within(a, window), std::count(in_a.begin() + 17, in_a.begin() + 93, true));
    EXPECT_EQ(length_within(a, window), length(clip(a, window)));
  }
}

}  // namespace
}  // namespace shardbook::base
