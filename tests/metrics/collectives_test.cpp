// One collective on all its ranks: wait and transfer, stragglers, bandwidths, order.
#include "engine/metrics/collectives.hpp"

#include "engine/metrics/predicates.hpp"
#include "tests/metrics/scene.hpp"

namespace shardbook::metrics {
namespace {

TEST(Collectives, AreSplitIntoWaitAndTransferByTheirLastRank) {
  Scene scene(3);
  const auto a = scene.collective(0, 100, 260, 0), b = scene.collective(1, 130, 260, 0), c = scene.collective(2, 180, 262, 0);
  const Timeline timeline = scene.done();
  const auto matched = match_collectives(timeline);
  ASSERT_EQ(matched.size(), 1u);
  EXPECT_TRUE(matched[0].complete);
  EXPECT_EQ(matched[0].last_rank, 2);
  EXPECT_EQ(matched[0].skew_ns, 80);
  EXPECT_EQ(split(timeline, matched[0], scene.at(a)).wait_ns, 80);
  EXPECT_EQ(split(timeline, matched[0], scene.at(a)).transfer_ns, 80);
  EXPECT_EQ(split(timeline, matched[0], scene.at(b)).wait_ns, 50);
  EXPECT_EQ(split(timeline, matched[0], scene.at(c)).wait_ns, 0);
  EXPECT_EQ(split(timeline, matched[0], scene.at(c)).transfer_ns, 82);
  EXPECT_EQ(straggler(timeline, matched), 2);
}

TEST(Collectives, WaitsBelowTheClockErrorAreNotClaimed) {
  Scene scene(2, /*clock_error_ns=*/100);
  const auto a = scene.collective(0, 100, 260, 0);
  scene.collective(1, 180, 260, 0);
  const Timeline timeline = scene.done();
  const auto matched = match_collectives(timeline);
  EXPECT_FALSE(matched[0].skew_is_significant());
  EXPECT_EQ(split(timeline, matched[0], scene.at(a)).wait_ns, 0);
  EXPECT_FALSE(straggler(timeline, matched));
}

TEST(Collectives, WithoutNumbersMatchByTheirOrder) {
  Scene scene(2);
  for (Rank rank : {0, 1}) {
    scene.collective(rank, 500 + rank, 600, -1);
    scene.collective(rank, 100 + rank, 200, -1);
  }
  const Timeline timeline = scene.done();
  const auto matched = match_collectives(timeline);
  ASSERT_EQ(matched.size(), 2u);
  for (const MatchedCollective& collective : matched) {
    ASSERT_EQ(collective.spans.size(), 2u);
    EXPECT_EQ(timeline.start(collective.spans[0]) + 1, timeline.start(collective.spans[1]));
  }
}

TEST(Collectives, ThatLackARankAreIncompleteAndClaimNoWait) {
  Scene scene(2);
  const auto a = scene.collective(0, 100, 200, 0);
  const Timeline timeline = scene.done();
  const auto matched = match_collectives(timeline);
  EXPECT_FALSE(matched[0].complete);
  EXPECT_EQ(split(timeline, matched[0], scene.at(a)).transfer_ns, 100);
}

TEST(Collectives, BandwidthsAreThoseOfNcclTests) {
  // 8 ranks, 512 MiB all-gather in 1.4002 ms: 335.5 GB/s on the bus, as nccl-tests prints it.
  Scene scene(8);
  for (Rank rank = 0; rank < 8; ++rank) {
    scene.collective(rank, 0, 1'400'200, 0, {}, CollectiveOp::all_gather, 512ll << 20);
    scene.collective(rank, 2'000'000, 4'650'200, 1, {}, CollectiveOp::all_reduce, 512ll << 20);
  }
  const Timeline timeline = scene.done();
  const auto matched = match_collectives(timeline);
  EXPECT_NEAR(*algbw(timeline, matched[0]), 383.4, 0.05);
  EXPECT_NEAR(*busbw(timeline, matched[0]), 335.5, 0.05);
  EXPECT_NEAR(*busbw(timeline, matched[1]), 354.5, 0.05);
}

TEST(Collectives, DisagreementOfRanksIsNamed) {
  Scene scene(2);
  scene.collective(0, 0, 10, 0, {}, CollectiveOp::all_gather, 64);
  scene.collective(1, 0, 10, 0, {}, CollectiveOp::all_reduce, 64);
  const Timeline timeline = scene.done();
  std::string disagreement;
  match_collectives(timeline, &disagreement);
  EXPECT_EQ(disagreement, "group dp_shard, collective 0: rank 0 calls all_gather, rank 1 calls all_reduce");
  EXPECT_EQ(*order_disagreement(timeline),
            "in group dp_shard, at place 0, rank 0 calls all_gather of 64 bytes (number 0) and rank 1 calls "
            "all_reduce of 64 bytes (number 0)");
}

TEST(Order, IsTheSameIfAllRanksCallTheSameInTurn) {
  Scene scene(2);
  for (Rank rank : {0, 1}) {
    scene.collective(rank, 10 * rank, 10 * rank + 5, 0, {}, CollectiveOp::all_gather, 64);
    scene.collective(rank, 100, 105, 1, {}, CollectiveOp::reduce_scatter, 64);
  }
  EXPECT_TRUE(same_order(scene.done()));
}

TEST(Order, IsBrokenByARankThatStopsEarly) {
  Scene scene(2);
  scene.collective(0, 0, 5, 0);
  scene.collective(1, 0, 5, 0);
  scene.collective(0, 10, 15, 1);
  EXPECT_EQ(*order_disagreement(scene.done()),
            "in group dp_shard, at place 1, rank 0 calls all_gather of 0 bytes (number 1) and rank 1 calls nothing more");
}

}  // namespace
}  // namespace shardbook::metrics
