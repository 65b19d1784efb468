// Which part of a tensor is mine: intervals, boxes, and global indices of local elements.
#include "engine/shard/shard.hpp"

#include <gtest/gtest.h>

#include <random>

#include "engine/base/check.hpp"

namespace shardbook::shard {
namespace {

TEST(Interval, CutsAnExtentThatDoesNotDivideIntoPartsThatDifferByOne) {
  EXPECT_EQ(cut(10, 4), (std::vector<Interval>{{0, 3}, {3, 6}, {6, 8}, {8, 10}}));
  EXPECT_EQ(cut(2, 4), (std::vector<Interval>{{0, 1}, {1, 2}, {2, 2}, {2, 2}}));
}

TEST(Interval, CutsCoverRandomExtentsOnceAndInOrder) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 500; ++trial) {
    const std::int64_t extent = std::uniform_int_distribution<>(0, 1000)(random);
    const int parts = std::uniform_int_distribution<>(1, 40)(random);
    std::int64_t at = 0;
    for (const Interval part : cut(extent, parts)) {
      EXPECT_EQ(part.begin, at);
      EXPECT_GE(part.size(), extent / parts);
      EXPECT_LE(part.size(), (extent + parts - 1) / parts);
      at = part.end;
    }
    EXPECT_EQ(at, extent);
  }
}

TEST(Interval, IntersectsToWhatBothHold) {
  EXPECT_EQ(intersect(Interval{0, 5}, Interval{3, 9}), (Interval{3, 5}));
  EXPECT_EQ(intersect(Interval{3, 9}, Interval{0, 5}), (Interval{3, 5}));
  EXPECT_TRUE(intersect(Interval{0, 3}, Interval{3, 5}).empty());
  EXPECT_EQ(intersect(Interval{0, 3}, Interval{7, 9}).size(), 0);
}

TEST(TensorShard, CutAlongRowsHoldsWholeRows) {
  const TensorShard up = cut_along("mlp.up.weight", {8, 3}, 0, 4, 1);
  EXPECT_EQ(up.local_shape(), (base::Shape{2, 3}));
  EXPECT_EQ(up.global_element(0), 6);
  EXPECT_EQ(up.global_element(5), 11);
  EXPECT_FALSE(up.is_whole());
}

TEST(TensorShard, CutAlongColumnsKeepsTheGlobalStride) {
  const TensorShard down = cut_along("mlp.down.weight", {2, 8}, 1, 4, 3);
  EXPECT_EQ(down.local_shape(), (base::Shape{2, 2}));
  EXPECT_EQ(down.global_element(0), 6);
  EXPECT_EQ(down.global_element(2), 14);
}

TEST(TensorShard, ReplicatedIsTheWholeTensor) {
  const TensorShard bias = replicated("attention.out.bias", {7});
  EXPECT_TRUE(bias.is_whole());
  EXPECT_EQ(bias.global_element(6), 6);
}

TEST(TensorShard, OwnsEveryGlobalElementExactlyOnceForRandomShapes) {
  std::mt19937 random(2);
  auto draw = [&](int least, int most) { return std::uniform_int_distribution<>(least, most)(random); };
  for (int trial = 0; trial < 300; ++trial) {
    const base::Shape global{draw(1, 6), draw(1, 9), draw(1, 5)};
    const int dim = draw(0, 2);
    const int parts = draw(1, 7);
    std::vector<int> owners(static_cast<std::size_t>(global.elements()), 0);
    for (int index = 0; index < parts; ++index) {
      const TensorShard mine = cut_along("w", global, dim, parts, index);
      for (std::int64_t local = 0; local < mine.local_elements(); ++local) {
        ++owners.at(static_cast<std::size_t>(mine.global_element(local)));
      }
    }
    for (int count : owners) ASSERT_EQ(count, 1) << base::to_string(global) << " dim " << dim << " parts " << parts;
  }
}

TEST(Box, IntersectionOfTwoCutsIsWhatMustMoveBetweenTheirOwners) {
  const base::Shape global{12, 4};
  const Box third = slice(global, 0, part_of(12, 3, 1));
  const Box half = slice(global, 0, part_of(12, 2, 1));
  EXPECT_EQ(intersect(third, half), slice(global, 0, {6, 8}));
  EXPECT_EQ(intersect(third, slice(global, 0, {0, 2})).elements(), 0);
}

TEST(Shard, StopsAProgrammersMistake) {
  EXPECT_THROW(part_of(4, 2, 2), base::Failure);
  EXPECT_THROW(cut_along("w", {4, 4}, 2, 2, 0), base::Failure);
  EXPECT_THROW(slice({4}, 0, {2, 5}), base::Failure);
  EXPECT_THROW(replicated("w", {4}).global_element(4), base::Failure);
}

}  // namespace
}  // namespace shardbook::shard
