// What do ops that run together take from each other, and who finds room on the device?
#include <gtest/gtest.h>

#include "engine/simulate/resolver.hpp"
#include "tests/simulate/programs.hpp"

namespace shardbook::simulate {
namespace {

using base::Nanoseconds;

TEST(Contention, LetsOpsOfOneDeviceTakeTurns) {
  TestRank rank(0);
  rank.op(0, 100);
  rank.op(1, 300);
  Machine machine;
  machine.shares = true;
  const Resolved out = resolved({rank.steps()}, machine);
  expect_span(out.ranks[0].steps[0].ran[0], 0, 200);   // at half speed while both run
  expect_span(out.ranks[0].steps[0].ran[1], 0, 400);   // 100 ns' worth by then, the rest alone
}

// Copy engines carry it, over a bus of its own, and the CPU works beside: that slows nothing and is slowed by nothing
TEST(Contention, LeavesCopiesToAndFromHostMemoryAndTheCpusWorkAlone) {
  TestRank ranks[2] = {TestRank(0, 5), TestRank(1, 5)};
  for (TestRank& rank : ranks) {
    rank.op(0, 1000);
    rank.collective(1, rank.group("dp_shard", {0, 1}), 100);
    rank.crossing(2, 500);
    rank.crossing(3, 700);
    rank.of_cpu(4, 600);
  }
  Machine machine;
  machine.shares = true;
  machine.contention = {{2, 1.25, 2.0, 4, 4}};
  const Resolved out = resolved({ranks[0].steps(), ranks[1].steps()}, machine);
  expect_span(out.ranks[0].steps[0].ran[1], 0, 200);           // as without the copies
  expect_span(out.ranks[0].steps[0].ran[0], 0, 200 + 1000 - 160);
  expect_span(out.ranks[0].steps[0].ran[2], 0, 500);
  expect_span(out.ranks[0].steps[0].ran[3], 0, 700);
  expect_span(out.ranks[0].steps[0].ran[4], 0, 600);
}

TEST(Contention, DoesNotStretchWhatIsLatency) {
  TestRank rank(0);
  rank.op(0, 100, 0, OpKind::pointwise, 0);
  rank.op(1, 100, 0, OpKind::pointwise, 0);
  Machine machine;
  machine.shares = true;
  const Resolved out = resolved({rank.steps()}, machine);
  expect_span(out.ranks[0].steps[0].ran[0], 0, 100);
  expect_span(out.ranks[0].steps[0].ran[1], 0, 100);
}

// One that is known to lose more: its own factor, and contention scaled to nothing takes it away.
TEST(Contention, SlowsAMatmulByWhatWasMeasuredOfItsSize) {
  TestRank ranks[2] = {TestRank(0), TestRank(1)};
  for (TestRank& rank : ranks) {
    rank.op(0, 1000);
    rank.collective(1, rank.group("dp_shard", {0, 1}), 100);
  }
  std::vector<RankSteps> steps{ranks[0].steps(), ranks[1].steps()};
  for (RankSteps& rank : steps) {
    auto costs = std::make_shared<Costs>(*rank.steps[0].costs);
    costs->beside = {2.0f, 0};
    rank.steps[0].costs = costs;
  }
  Machine machine;
  machine.shares = true;
  machine.contention = {{2, 1.25, 1.0, 1, 1}};
  const Resolved out = resolved(steps, machine);
  expect_span(out.ranks[0].steps[0].ran[0], 0, 1050);   // of the first 100 ns half was done
  const Resolved without = resolved(steps, scaled(machine, {.contention = 0}));
  expect_span(without.ranks[0].steps[0].ran[0], 0, 1000);
}

// 1000 ns alone and 1800 beside a collective; it begins beside one that lasts for so long from then on. Blocks that found no room begin when that has
// gone, and take as long as a block does, which is the whole time of a matmul that fills the device; unless others had ended before.
TEST(Contention, BeginsTheLastBlocksOfAMatmulWhenTheCollectiveHasGone) {
  const auto end_of_matmul = [](Nanoseconds collective_ns, bool fills, bool last_blocks) {
    TestRank ranks[2] = {TestRank(0), TestRank(1)};
    for (TestRank& rank : ranks) {
      rank.collective(1, rank.group("tp", {0, 1}), 10 + collective_ns);
      rank.op(0, 10, 0, OpKind::pointwise);   // so that it is there first
      rank.op(0, 1000, 0, OpKind::gemm, 1, fills);
    }
    std::vector<RankSteps> steps{ranks[0].steps(), ranks[1].steps()};
    for (RankSteps& rank : steps) {
      auto costs = std::make_shared<Costs>(*rank.steps[0].costs);
      costs->beside = {0, 0, 1.8f};
      rank.steps[0].costs = costs;
    }
    Machine machine;
    machine.shares = true;
    machine.contention = {{2, 1.25, 1.0, 1, 1}};
    machine.last_blocks = last_blocks;
    return resolved(steps, machine).ranks[0].steps[0].ran[2].end - 10;
  };
  EXPECT_EQ(end_of_matmul(360, true, false), 1160);   // a fluid: 200 of 1000 are done by then
  EXPECT_EQ(end_of_matmul(360, false, true), 1160);   // it has room beside it
  EXPECT_EQ(end_of_matmul(360, true, true), 1360);
  EXPECT_EQ(end_of_matmul(800, true, true), 1800);    // by now the blocks that had room are about to end
  EXPECT_EQ(end_of_matmul(1500, true, true), 1800);
  EXPECT_EQ(end_of_matmul(5000, true, true), 1800);
}

TEST(Contention, SlowsMatmulsAndCollectivesByTheMeasuredFactors) {
  TestRank ranks[2] = {TestRank(0), TestRank(1)};
  for (TestRank& rank : ranks) {
    rank.op(0, 1000);
    rank.collective(1, rank.group("dp_shard", {0, 1}), 100);
  }
  Machine machine;
  machine.shares = true;
  machine.contention = {{2, 1.25, 2.0, 1, 1}};
  const Resolved out = resolved({ranks[0].steps(), ranks[1].steps()}, machine);
  expect_span(out.ranks[0].steps[0].ran[1], 0, 200);           // twice as slow
  expect_span(out.ranks[0].steps[0].ran[0], 0, 200 + 1000 - 160);  // did 200 / 1.25 by then
}

TEST(Contention, RunsACollectiveAtThePaceOfItsSlowestRank) {
  TestRank busy(0), idle(1);
  for (TestRank* rank : {&busy, &idle}) rank->collective(1, rank->group("dp_shard", {0, 1}), 100);
  busy.op(0, 1000);
  Machine machine;
  machine.shares = true;
  machine.contention = {{2, 1.25, 2.0, 1, 1}};
  const Resolved out = resolved({busy.steps(), idle.steps()}, machine);
  expect_span(out.ranks[1].steps[0].ran[0], 0, 200);
}

TEST(Contention, MakesTwoCollectivesShareTheLinks) {
  TestRank ranks[2] = {TestRank(0), TestRank(1)};
  for (TestRank& rank : ranks) {
    rank.collective(0, rank.group("tp", {0, 1}), 100);
    rank.collective(1, rank.group("dp_shard", {0, 1}), 100);
  }
  Machine machine;
  machine.shares = true;
  const Resolved out = resolved({ranks[0].steps(), ranks[1].steps()}, machine);
  expect_span(out.ranks[0].steps[0].ran[0], 0, 200);
  expect_span(out.ranks[1].steps[0].ran[1], 0, 200);
}

// A matmul, then an all-reduce of what it made beside the matmul that follows, as in tensor parallelism's backward.
// `fills`: do the matmuls that follow leave no room?
struct BackwardOfALinear {
  explicit BackwardOfALinear(bool fills, Nanoseconds sum_ns = 40, int that_follow = 1) {
    for (TestRank& rank : ranks) {
      rank.op(0, 100);
      rank.record(0, 0);
      rank.wait(1, 0);
      rank.collective(1, rank.group("tp", {0, 1}), sum_ns);
      for (int i = 0; i < that_follow; ++i) rank.op(0, 300, 0, OpKind::gemm, 1, fills);
      rank.op(0, 10, 0, OpKind::pointwise);
    }
  }
  Resolved resolved_on(Machine machine) { return resolved({ranks[0].steps(), ranks[1].steps()}, machine); }
  TestRank ranks[2] = {TestRank(0), TestRank(1)};
};

Machine with_gap(Nanoseconds gap_ns) {
  Machine machine;
  machine.shares = true;
  machine.stream_gap_ns = gap_ns;
  machine.event_latency_ns = 3;
  return machine;
}

TEST(Room, IsGivenToACollectiveWhenTheMatmulThatFillsTheDeviceEnds) {
  const Resolved out = BackwardOfALinear(true).resolved_on(with_gap(2));
  expect_span(out.ranks[0].steps[0].ran[2], 102, 402);
  expect_span(out.ranks[0].steps[0].ran[1], 103, 442);   // 40 of transfer behind the matmul, and its wait before
  EXPECT_EQ(out.ranks[0].wait_ns[0][1], 0) << "it waited for no rank";
  EXPECT_EQ(out.ranks[0].steps[0].ran[3].start, 404) << "what moves memory goes on beside it";
}

TEST(Room, GoesToTheMatmulThatFollowsOnItsStreamAtOnce) {
  // The collective hears of the event at 103, the matmul starts at 105: its launch was there before.
  const Resolved out = BackwardOfALinear(true).resolved_on(with_gap(5));
  expect_span(out.ranks[0].steps[0].ran[2], 105, 405);
  expect_span(out.ranks[0].steps[0].ran[1], 103, 445);
}

TEST(Room, IsGivenBetweenMatmulsThatFollowAtOnce) {
  const Resolved out = BackwardOfALinear(true, 40, 2).resolved_on(with_gap(0));
  expect_span(out.ranks[0].steps[0].ran[2], 100, 400);
  expect_span(out.ranks[0].steps[0].ran[1], 103, 440);   // held by the first, and there before the second
}

TEST(Room, IsNotNeededByACollectiveThatMovesNothing) {
  const Resolved out = BackwardOfALinear(true, 1).resolved_on(with_gap(2));
  expect_span(out.ranks[0].steps[0].ran[1], 103, 104);
}

TEST(Room, IsThereBesideAMatmulThatDoesNotFillTheDevice) {
  const Resolved out = BackwardOfALinear(false).resolved_on(with_gap(2));
  expect_span(out.ranks[0].steps[0].ran[1], 103, 143);
}

TEST(Room, IsKeptByACollectiveThatIsThereFirst) {
  TestRank ranks[2] = {TestRank(0), TestRank(1)};
  for (TestRank& rank : ranks) {
    rank.op(0, 100, 0, OpKind::pointwise);
    rank.collective(1, rank.group("tp", {0, 1}), 400);
    rank.op(0, 200, 0, OpKind::gemm, 1, true);
  }
  Machine machine = with_gap(0);
  machine.contention = {{2, 1.5, 1, 1, 1}};
  const Resolved out = resolved({ranks[0].steps(), ranks[1].steps()}, machine);
  expect_span(out.ranks[0].steps[0].ran[1], 0, 400);
  expect_span(out.ranks[0].steps[0].ran[2], 100, 400);   // 200 at two thirds
}

TEST(Room, IsTakenOverByTheCollectiveThatFollowsAtOnce) {
  TestRank ranks[2] = {TestRank(0), TestRank(1)};
  for (TestRank& rank : ranks) {
    const auto group = rank.group("tp", {0, 1});
    rank.collective(1, group, 400);
    rank.collective(1, group, 100);
    rank.op(0, 50, 0, OpKind::pointwise);
    rank.op(0, 1000, 0, OpKind::gemm, 1, true);
  }
  expect_span(resolved({ranks[0].steps(), ranks[1].steps()}, with_gap(2)).ranks[0].steps[0].ran[1], 402, 502);
}

TEST(Room, ComesToAHeldCollectiveBeforeTheNextMatmul) {
  TestRank ranks[2] = {TestRank(0), TestRank(1)};
  for (TestRank& rank : ranks) {
    for (int matmul = 0; matmul < 3; ++matmul) rank.op(0, 100, 0, OpKind::gemm, 1, true);
    rank.collective(1, rank.group("tp", {0, 1}), 40, 50);
  }
  const Resolved out = resolved({ranks[0].steps(), ranks[1].steps()}, with_gap(2));
  expect_span(out.ranks[0].steps[0].ran[3], 50, 140);   // held until the first ends, at 100
}

TEST(Room, HoldsACollectiveUntilEveryRankHasSome) {
  TestRank full(0), empty(1);
  full.op(0, 300, 0, OpKind::gemm, 1, true);
  for (TestRank* rank : {&full, &empty}) rank->collective(1, rank->group("tp", {0, 1}), 40, 10);
  const Resolved out = resolved({full.steps(), empty.steps()}, with_gap(0));
  expect_span(out.ranks[0].steps[0].ran[1], 10, 340);
  expect_span(out.ranks[1].steps[0].ran[0], 10, 340);
}

}  // namespace
}  // namespace shardbook::simulate
