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

// Two ranks; sums of 1 MiB that take 100 us alone, `alone` of them, and then one that is ready 3 us after a kernel of 83 us
// has begun, and takes `takes`. The kernel does `flops_a_byte`.
struct Queue {
  Nanoseconds takes = 0;
  std::int64_t flops_a_byte = 500;
  int alone = 3;
  timeline::Clock clock = timeline::Clock::measured;
  Nanoseconds late = 0;                       // rank 1 comes so much later
};
WaitSplit last_of(const Queue& queue, Rank rank = 0) {
  Scene scene(2, 0, queue.clock);
  timeline::Detail kernel;
  kernel.bytes = 1000;
  kernel.flops = 1000 * queue.flops_a_byte;
  for (Rank r : {0, 1}) {
    Nanoseconds now = 0;
    for (int i = 0; i < queue.alone; ++i, now += 200'000) scene.collective(r, now, now + 100'000, i, {}, CollectiveOp::all_reduce, 1 << 20);
    const Nanoseconds begin = now + (r == 1 ? queue.late : 0);
    scene.compute(r, begin, begin + 83'000, kernel);
    scene.collective(r, begin + 3'000, now + 3'000 + queue.takes, queue.alone, {}, CollectiveOp::all_reduce, 1 << 20);
  }
  const Timeline timeline = scene.done();
  const auto matched = match_collectives(timeline);
  const MatchedCollective& last = matched.back();
  return split(timeline, last, last.spans[static_cast<std::size_t>(rank)]);
}

TEST(Queued, IsACollectiveBehindAMatmulWhereWhatIsLeftIsAWholeTransfer) {
  const WaitSplit parts = last_of({.takes = 184'000});
  EXPECT_EQ(parts.queued_ns, 80'000) << "until the matmul ends";
  EXPECT_EQ(parts.transfer_ns, 104'000);
  EXPECT_EQ(parts.wait_ns, 0);
  // The last blocks of a matmul leave one after the other: what is left may be a little less than 80 us.
  EXPECT_EQ(last_of({.takes = 170'000}).queued_ns, 70'000);
  EXPECT_EQ(last_of({.takes = 184'000, .flops_a_byte = 500, .alone = 3, .clock = timeline::Clock::modelled}).queued_ns, 80'000);
}

TEST(Queued, ComesAfterTheWaitForTheLastRankAndTheThreePartsAreTheSpan) {
  const Queue queue{.takes = 184'000, .flops_a_byte = 500, .alone = 3, .clock = timeline::Clock::measured, .late = 20'000};
  const WaitSplit first = last_of(queue, 0), late = last_of(queue, 1);
  EXPECT_EQ(first.wait_ns, 20'000);
  EXPECT_EQ(late.wait_ns, 0);
  // From when both are there, 64 us of 100 are left over.
  EXPECT_EQ(first.queued_ns, 64'000);
  EXPECT_EQ(late.queued_ns, 64'000);
  EXPECT_EQ(first.wait_ns + first.queued_ns + first.transfer_ns, 184'000);
  EXPECT_EQ(late.wait_ns + late.queued_ns + late.transfer_ns, 164'000);
}

TEST(Queued, IsNotClaimedWhereTheRunDoesNotShowIt) {
  EXPECT_EQ(last_of({.takes = 150'000}).queued_ns, 0) << "slowed by the matmul, not kept out";
  EXPECT_EQ(last_of({.takes = 150'000}).transfer_ns, 150'000);
  EXPECT_EQ(last_of({.takes = 184'000, .flops_a_byte = 3}).queued_ns, 0) << "behind a kernel that is no matmul";
  EXPECT_EQ(last_of({.takes = 184'000, .flops_a_byte = 500, .alone = 2}).queued_ns, 0) << "how long one takes alone is not known";
  EXPECT_EQ(last_of({.takes = 184'000, .flops_a_byte = 500, .alone = 3, .clock = timeline::Clock::wall}).queued_ns, 0) << "a CPU has no multiprocessors";
  EXPECT_EQ(last_of({.takes = 184'000, .flops_a_byte = 500, .alone = 3, .clock = timeline::Clock::unknown}).queued_ns, 0);
}

}  // namespace
}  // namespace shardbook::metrics
