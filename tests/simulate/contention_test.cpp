// What do ops that run together take from each other, and who finds room on the device?
#include <gtest/gtest.h>

#include <utility>

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

// They take no multiprocessors, so a matmul loses nothing and keeps nothing from them; what waits for memory shares it with them
TEST(Contention, LeavesMatmulsAndGathersByCopyEnginesAlone) {
  for (const OpKind kind : {OpKind::gemm, OpKind::pointwise}) {
    TestRank ranks[2] = {TestRank(0), TestRank(1)};
    std::vector<RankSteps> steps;
    for (TestRank& rank : ranks) {
      rank.op(0, 1000, 0, kind);
      rank.collective(1, rank.group("dp_shard", {0, 1}), 100);
      RankSteps& own = steps.emplace_back(rank.steps());
      auto costs = std::make_shared<Costs>(*own.steps[0].costs);
      costs->copied = {false, true};
      own.steps[0].costs = costs;
    }
    Machine machine;
    machine.shares = true;
    machine.contention = {{2, 1.25, 2, 1.25, 1.5}};
    const Resolved out = resolved(steps, machine);
    const bool memory = kind == OpKind::pointwise;
    expect_span(out.ranks[0].steps[0].ran[1], 0, memory ? 150 : 100);
    expect_span(out.ranks[0].steps[0].ran[0], 0, memory ? 1030 : 1000);   // of the first 150 ns 120 were done
  }
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

// 1000 ns alone and 1800 beside a collective; it begins beside collectives that last for so long from then on, one right behind the other.
struct BesideCollectives {
  std::vector<Nanoseconds> last;
  bool fills = true, last_blocks = true;
  float shared = 1;          // the part of the matmul that is slowed
  double beside = 1;         // ... of what it loses
  Nanoseconds comes_ns = 0;  // when the other rank comes to the first one
  Nanoseconds end_of_matmul() const {
    TestRank ranks[2] = {TestRank(0), TestRank(1)};
    for (TestRank& rank : ranks) {
      Nanoseconds begins = 10;
      if (comes_ns > 0 && &rank == &ranks[1]) rank.op(1, 10 + comes_ns, 0, OpKind::pointwise);
      for (Nanoseconds ns : last) rank.collective(1, rank.group("tp", {0, 1}), std::exchange(begins, 0) + ns);
      if (&rank == &ranks[1]) continue;
      rank.op(0, 10, 0, OpKind::pointwise);   // so that the collective is there first
      rank.op(0, 1000, 0, OpKind::gemm, shared, fills);
    }
    std::vector<RankSteps> steps{ranks[0].steps(), ranks[1].steps()};
    auto costs = std::make_shared<Costs>(*steps[0].steps[0].costs);
    costs->beside.assign(costs->op_ns.size(), 0);
    costs->beside.back() = 1.8f;
    steps[0].steps[0].costs = costs;
    Machine machine;
    machine.shares = true;
    machine.contention = {{2, 1.25, 1.0, 1, 1}};
    machine.last_blocks = last_blocks;
    machine.beside = beside;
    machine.stream_gap_ns = 2;
    return resolved(steps, machine).ranks[0].steps[0].ran.back().end - 12;
  }
};

// Blocks that found no room begin when that has gone, and take as long as a block does, which is the whole time of a matmul that fills
// the device; unless others had ended before.
TEST(Contention, BeginsTheLastBlocksOfAMatmulWhenTheCollectiveHasGone) {
  EXPECT_EQ((BesideCollectives{{362}, true, false}.end_of_matmul()), 1160);   // a fluid: 200 of 1000 are done by then
  EXPECT_EQ((BesideCollectives{{362}, false, true}.end_of_matmul()), 1160);   // it has room beside it
  EXPECT_EQ((BesideCollectives{{362}}.end_of_matmul()), 1360);
  EXPECT_EQ((BesideCollectives{{802}}.end_of_matmul()), 1800);    // by now the blocks that had room are about to end
  EXPECT_EQ((BesideCollectives{{1502}}.end_of_matmul()), 1800);
  EXPECT_EQ((BesideCollectives{{5002}}.end_of_matmul()), 1800);
  EXPECT_EQ((BesideCollectives{.last = {362}, .comes_ns = 240}.end_of_matmul()), 1612) << "one that waits for a rank keeps them out, too";
  EXPECT_EQ((BesideCollectives{.last = {362}, .shared = 0.25f}.end_of_matmul()), 1200) << "never longer than beside one that stays";
  EXPECT_EQ((BesideCollectives{.last = {362}, .beside = 0.5}.end_of_matmul()), 1360);
  EXPECT_EQ((BesideCollectives{.last = {362}, .beside = 0.25}.end_of_matmul()), 1200);
}

TEST(Contention, LetsNoLastBlocksBeginWhereAnotherCollectiveTakesOverTheRoom) {
  // 362, a gap of 2, 400: 200 of 1000 are done, 2, 222.2, and the rest when both have gone
  EXPECT_EQ((BesideCollectives{{362, 400}}.end_of_matmul()), 362 + 400 + 1000);
  EXPECT_EQ((BesideCollectives{{362, 400}, true, false}.end_of_matmul()), 1338);
  EXPECT_EQ((BesideCollectives{{362, 1000}}.end_of_matmul()), 1800);
  EXPECT_EQ((BesideCollectives{{362, 5000}}.end_of_matmul()), 1798) << "in the gap it goes on as it was, at full speed";
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

TEST(Room, IsNotNeededByAGatherOfCopyEngines) {
  BackwardOfALinear linear(true);
  std::vector<RankSteps> steps{linear.ranks[0].steps(), linear.ranks[1].steps()};
  for (RankSteps& rank : steps) {
    auto costs = std::make_shared<Costs>(*rank.steps[0].costs);
    costs->copied = {false, true, false, false};
    rank.steps[0].costs = costs;
  }
  const Resolved out = resolved(steps, with_gap(2));
  expect_span(out.ranks[0].steps[0].ran[1], 103, 143);
  expect_span(out.ranks[0].steps[0].ran[2], 102, 402);
}

// A sum whose blocks fit beside the matmul's is not held, whichever comes first, and costs it nothing; the next matmul is another kernel
TEST(Room, IsFoundBesideAMatmulThatLetsTheSumIn) {
  for (const Nanoseconds gap_ns : {2, 5}) {
    BackwardOfALinear linear(true, 400, 2);
    std::vector<RankSteps> steps{linear.ranks[0].steps(), linear.ranks[1].steps()};
    for (RankSteps& rank : steps) {
      auto costs = std::make_shared<Costs>(*rank.steps[0].costs);
      costs->lets_in = {0, 0, bit_of(OpKind::all_gather), bit_of(OpKind::reduce_scatter), 0};   // a gather it is, here
      rank.steps[0].costs = costs;
    }
    Machine machine = with_gap(gap_ns);
    machine.contention = {{2, 2, 1, 1, 1}};
    const Resolved out = resolved(steps, machine);
    expect_span(out.ranks[0].steps[0].ran[1], 103, 503);
    expect_span(out.ranks[0].steps[0].ran[2], 100 + gap_ns, 400 + gap_ns);
    const Nanoseconds beside = 503 - (400 + 2 * gap_ns);   // half as fast until the sum ends
    expect_span(out.ranks[0].steps[0].ran[3], 400 + 2 * gap_ns, 503 + 300 - beside / 2);
  }
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
