// Runs of elements as boxes, boxes that cover a tensor, and what two boxes have in common: each beside the plain way, element
// by element.
#include <gtest/gtest.h>

#include <numeric>

#include "engine/checkpoint/boxes.hpp"
#include "tests/support/plans.hpp"

namespace shardbook::checkpoint {
namespace {

using shard::Box;
using shard::Interval;
using shard::TensorShard;
using tests::Chance;

base::Shape shape_by_chance(Chance& chance, int dims) {
  std::vector<std::int64_t> sizes;
  for (int dim = 0; dim < dims; ++dim) sizes.push_back(1 + chance.below(5));
  return shape_of(sizes);
}

Box box_by_chance(Chance& chance, const base::Shape& shape) {
  Box box = shard::whole(shape);
  for (int dim = 0; dim < box.dims; ++dim) {
    const std::int64_t begin = chance.below(static_cast<int>(shape[dim]));
    box.along[static_cast<std::size_t>(dim)] = {begin, begin + 1 + chance.below(static_cast<int>(shape[dim] - begin))};
  }
  return box;
}

// Global indices of a box's elements, row-major.
std::vector<std::int64_t> elements_of_box(const base::Shape& shape, const Box& box) {
  std::vector<std::int64_t> all;
  for (std::int64_t at = 0; at < box.elements(); ++at) all.push_back(TensorShard{"t", shape, box}.global_element(at));
  return all;
}

TEST(Boxes, OfARunHoldItsElementsInOrder) {
  Chance chance(1);
  for (int trial = 0; trial < 3000; ++trial) {
    const int dims = chance.below(5);
    const base::Shape shape = shape_by_chance(chance, dims);
    const Box box = box_by_chance(chance, shape);
    const std::int64_t begin = chance.below(static_cast<int>(box.elements())), end = begin + chance.below(static_cast<int>(box.elements() - begin) + 1);
    const std::vector<std::int64_t> all = elements_of_box(shape, box);
    const std::vector<std::int64_t> wanted(all.begin() + begin, all.begin() + end);
    std::vector<std::int64_t> found;
    const std::vector<Box> boxes = boxes_of(box, {begin, end});
    for (const Box& one : boxes) {
      const std::vector<std::int64_t> more = elements_of_box(shape, one);
      found.insert(found.end(), more.begin(), more.end());
    }
    ASSERT_EQ(found, wanted) << text_of(box) << " of " << base::to_string(shape) << ", " << begin << " to " << end;
    ASSERT_LE(boxes.size(), static_cast<std::size_t>(std::max(1, 2 * dims - 1)));
  }
}

TEST(Boxes, OfAMatrixAreTheEndOfARowWholeRowsAndTheBeginOfAnother) {
  const std::vector<Box> boxes = boxes_of(shard::whole({4, 6}), {3, 20});
  ASSERT_EQ(boxes.size(), 3u);
  EXPECT_EQ(text_of(boxes[0]), "[0:1, 3:6]");
  EXPECT_EQ(text_of(boxes[1]), "[1:3, 0:6]");
  EXPECT_EQ(text_of(boxes[2]), "[3:4, 0:2]");
}

TEST(Cover, IsSaidToBeExactWhereEachElementIsHeldOnce) {
  Chance chance(2);
  int exact = 0, not_exact = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const int dims = chance.below(5);
    const base::Shape shape = shape_by_chance(chance, dims);
    // Runs that follow each other cover it; sometimes one is left out, moved, or there twice
    std::vector<Box> boxes;
    for (std::int64_t at = 0; at < shape.elements();) {
      const std::int64_t next = at + 1 + chance.below(static_cast<int>(shape.elements() - at));
      for (const Box& box : boxes_of(shard::whole(shape), {at, next})) boxes.push_back(box);
      at = next;
    }
    const int change = chance.below(4);
    if (change == 1) boxes.erase(boxes.begin() + chance.below(static_cast<int>(boxes.size())));
    if (change == 2) boxes[static_cast<std::size_t>(chance.below(static_cast<int>(boxes.size())))] = box_by_chance(chance, shape);
    if (change == 3) boxes.push_back(boxes[static_cast<std::size_t>(chance.below(static_cast<int>(boxes.size())))]);
    for (std::size_t at = boxes.size(); at > 1; --at) std::swap(boxes[at - 1], boxes[static_cast<std::size_t>(chance.below(static_cast<int>(at)))]);

    std::vector<int> held(static_cast<std::size_t>(shape.elements()));
    for (const Box& box : boxes) {
      for (std::int64_t element : elements_of_box(shape, box)) ++held[static_cast<std::size_t>(element)];
    }
    const bool once = held == std::vector<int>(held.size(), 1);
    ASSERT_EQ(problem_of_cover(shape, boxes).empty(), once) << base::to_string(shape) << ": " << problem_of_cover(shape, boxes);
    ++(once ? exact : not_exact);
  }
  EXPECT_GT(exact, 500);
  EXPECT_GT(not_exact, 500);
}

TEST(Cover, SaysWhereTwoBoxesMeet) {
  const base::Shape shape{4, 4};
  const std::vector<Box> boxes{shard::slice(shape, 0, {0, 3}), shard::slice(shape, 1, {2, 4})};
  EXPECT_EQ(problem_of_cover(shape, boxes), "two boxes, [0:3, 0:4] and [0:4, 2:4], both hold element [0, 2]");
  EXPECT_EQ(problem_of_cover(shape, {boxes[0]}), "its boxes hold 12 of its 16 elements");
  EXPECT_EQ(problem_of_cover({}, {shard::whole({}), shard::whole({})}), "its boxes hold more than its 1 elements");
}

TEST(CommonRuns, AreWhatBothBoxesHold) {
  Chance chance(3);
  for (int trial = 0; trial < 3000; ++trial) {
    const base::Shape shape = shape_by_chance(chance, chance.below(5));
    const Box from = box_by_chance(chance, shape), to = box_by_chance(chance, shape);
    const std::vector<std::int64_t> stored = elements_of_box(shape, from), wanted = elements_of_box(shape, to);
    std::vector<std::int64_t> found(wanted.size(), -1);
    for (const checkpoint::Run& run : common_runs(from, to)) {
      for (std::int64_t at = 0; at < run.elements; ++at) found[static_cast<std::size_t>(run.to + at)] = stored[static_cast<std::size_t>(run.from + at)];
    }
    for (std::size_t at = 0; at < wanted.size(); ++at) {
      const bool both = std::find(stored.begin(), stored.end(), wanted[at]) != stored.end();
      ASSERT_EQ(found[at], both ? wanted[at] : -1) << text_of(from) << " and " << text_of(to);
    }
  }
}

// A whole matrix is one run, rows of it are one, and columns one a row.
TEST(CommonRuns, AreAsLongAsTheyCanBe) {
  const base::Shape shape{4, 6};
  EXPECT_EQ(common_runs(shard::whole(shape), shard::whole(shape)).size(), 1u);
  EXPECT_EQ(common_runs(shard::whole(shape), shard::slice(shape, 0, {1, 3})).size(), 1u);
  EXPECT_EQ(common_runs(shard::whole(shape), shard::slice(shape, 1, {1, 3})).size(), 4u);
}

}  // namespace
}  // namespace shardbook::checkpoint
