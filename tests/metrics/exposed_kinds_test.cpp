// Exposed time by kind of communication: which kinds there are, and that they sum.
#include "engine/metrics/exposed_kinds.hpp"

#include "tests/metrics/scene.hpp"

namespace shardbook::metrics {
namespace {

TEST(ExposedKinds, SumManySmallOnesAboveASingleLongOne) {
  Scene scene;
  timeline::Detail gather = scene.detail("all_gather", 0), reduce = scene.detail("reduce_scatter", 0, "backward");
  gather.source = scene.line("schedule.cpp", 64);
  reduce.source = scene.line("schedule.cpp", 129);
  for (int layer = 0; layer < 5; ++layer) {
    gather.layer = layer;
    scene.collective(0, 100 * layer, 100 * layer + 30, layer, gather);
  }
  const auto one = scene.collective(0, 600, 690, 5, reduce, CollectiveOp::reduce_scatter);
  const Timeline timeline = scene.done();
  const std::vector<ExposedKind> kinds = exposed_kinds(timeline, {0, 1000});
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].name, "all-gather in forward");
  EXPECT_EQ(kinds[0].spans, 5);
  EXPECT_EQ(kinds[0].exposed_ns, 150);
  EXPECT_EQ(line_text(timeline, kinds[0].line), "schedule.cpp:64");
  EXPECT_EQ(kinds[1].name, "reduce-scatter in backward");
  EXPECT_EQ(kinds[1].exposed_ns, 90);
  EXPECT_EQ(kinds[1].longest, scene.at(one));
}

TEST(ExposedKinds, OfTwoStreamsHaveEqualPartsOfWhatOverlaps) {
  Scene scene;
  scene.collective(0, 0, 50, 0, scene.detail("all_gather", 0));
  scene.collective(0, 21, 90, 1, scene.detail("all_reduce", 0), CollectiveOp::all_reduce, 0, 24);
  scene.compute(0, 80, 200);
  const std::vector<ExposedKind> kinds = exposed_kinds(scene.done(), {0, 200});
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].exposed_ns, 30 + 14) << "from 50 to 80 alone, and of the 29 from 21 to 50 the smaller half";
  EXPECT_EQ(kinds[1].exposed_ns, 21 + 15) << "from 0 to 21 alone, and the half with the odd nanosecond";
}

// A tensor-parallel sum within each gather: with one owner the sums would not be seen at all.
TEST(ExposedKinds, DoNotVanishBehindWhatBeganFirst) {
  Scene scene;
  for (int layer = 0; layer < 10; ++layer) {
    scene.collective(0, 100 * layer, 100 * layer + 90, 2 * layer, scene.detail("all_gather", layer));
    scene.collective(0, 100 * layer + 10, 100 * layer + 80, 2 * layer + 1, scene.detail("all_reduce", layer), CollectiveOp::all_reduce, 0, 24);
  }
  const std::vector<ExposedKind> kinds = exposed_kinds(scene.done(), {0, 1000});
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].exposed_ns, 10 * 55);
  EXPECT_EQ(kinds[1].name, "all-reduce in forward");
  EXPECT_EQ(kinds[1].exposed_ns, 10 * 35);
}

TEST(ExposedKinds, TellWhatPassedBeforeTheLastRankCame) {
  Scene scene(2);
  scene.collective(0, 100, 400, 0, scene.detail("all_gather", 0));
  scene.collective(1, 300, 400, 0, scene.detail("all_gather", 0));
  scene.compute(0, 0, 150);
  const Timeline timeline = scene.done();
  const std::vector<ExposedKind> kinds = exposed_kinds(timeline, {0, 400});
  ASSERT_EQ(kinds.size(), 1u);
  EXPECT_EQ(kinds[0].exposed_ns, 250 + 100);
  EXPECT_EQ(kinds[0].waiting_ns, 150) << "from 150, where compute ends, to 300, where rank 1 comes";
  EXPECT_EQ(kinds_text(timeline, kinds, 5),
            " share  kind                         exposed  spans waiting  issued at\n"
            "100.0%  all-gather in forward         350 ns      2     43%  \n");
}

TEST(ExposedKinds, SumToTheExposedCommunicationOfThePartition) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const Timeline timeline = random_timeline(random, 3);
    const Window window{static_cast<Nanoseconds>(random() % 60), 60 + static_cast<Nanoseconds>(random() % 90)};
    Nanoseconds expected = 0, sum = 0;
    for (const timeline::Provenance& rank : timeline.ranks) expected += partition(timeline, rank.rank, window).exposed_communication_ns;
    for (const ExposedKind& kind : exposed_kinds(timeline, window)) {
      sum += kind.exposed_ns;
      EXPECT_GT(kind.spans, 0);
      EXPECT_TRUE(kind.longest.valid());
      EXPECT_LE(kind.waiting_ns, kind.exposed_ns);
    }
    ASSERT_EQ(sum, expected) << "round " << round;
  }
}

TEST(ExposedKinds, AreNoneWhereComputeCoversAll) {
  Scene scene;
  scene.compute(0, 0, 100);
  scene.collective(0, 10, 60, 0, scene.detail("all_gather", 0));
  EXPECT_TRUE(exposed_kinds(scene.done(), {0, 100}).empty());
}

}  // namespace
}  // namespace shardbook::metrics
