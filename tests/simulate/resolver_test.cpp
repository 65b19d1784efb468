// Does each op run when the rules say, in programs small enough to compute by hand?
#include "engine/simulate/resolver.hpp"

#include <gtest/gtest.h>

#include "tests/simulate/programs.hpp"

namespace shardbook::simulate {
namespace {

using program::EdgeKind;

TEST(Machine, HasLastBlocksWhereTheProfileSaysItsSpeed) {
  Profile profile;
  profile.power.exponent = 2;
  EXPECT_FALSE(machine_of(profile).last_blocks);
  profile.power.train = 1.01;
  EXPECT_TRUE(machine_of(profile).last_blocks);
  base::Result<Profile> ships = find_profile("h200x8");
  ASSERT_TRUE(ships.ok());
  EXPECT_FALSE(machine_of(ships.value()).last_blocks) << "figures of the notes are by it";
}

// Where memory is windows running together costs what was measured there: matmuls of a measured factor, too, as much less as the large ones.
TEST(Machine, OfWindowsCostsMatmulsAsMuchLessAsWasMeasured) {
  base::Result<Profile> found = find_profile(SHARDBOOK_SOURCE_DIR "/tests/simulate/data/machine.json");
  ASSERT_TRUE(found.ok()) << found.error();
  Profile profile = found.value();
  profile.contention = {{2, 1.4, 1.3, 1.2, 1.1}, {4, 1.5, 1.3, 1.2, 1.1}};
  profile.windows.collectives[OpKind::all_gather][2] = {{4096, 10'000}};
  const auto machine = [&](bool windows) { return machine_of(CostModel(profile, Conditions{.windows = windows})); };
  EXPECT_EQ(machine(true).contention, profile.contention) << "not measured: as of other memory";
  EXPECT_EQ(machine(true).beside, 1);
  profile.windows.contention = {{2, 1.1, 1.05, 1.2, 1.15}};
  EXPECT_EQ(machine(false).contention, profile.contention);
  EXPECT_EQ(machine(true).contention.at(0), profile.windows.contention[0]);
  EXPECT_EQ(machine(true).contention.at(1), profile.contention.at(1));
  EXPECT_NEAR(machine(true).beside, 0.25, 1e-9);
}

TEST(Resolver, RunsAStreamInOrder) {
  TestRank rank(0);
  rank.op(0, 100);
  rank.op(0, 50);
  const Resolved out = resolved({rank.steps()});
  expect_span(out.ranks[0].steps[0].ran[0], 0, 100);
  expect_span(out.ranks[0].steps[0].ran[1], 100, 150);
  EXPECT_EQ(out.step_ns, 150);
}

TEST(Resolver, StartsAnOpWhenItsHostHasIssuedIt) {
  TestRank rank(0);
  rank.step_cost(5);
  rank.op(0, 10, 100);
  rank.op(0, 10, 100);
  Machine machine;
  machine.launch_latency_ns = 7;
  const Resolved out = resolved({rank.steps()}, machine);
  expect_span(out.ranks[0].steps[0].issued[1], 105, 205);
  expect_span(out.ranks[0].steps[0].ran[0], 112, 122);
  expect_span(out.ranks[0].steps[0].ran[1], 212, 222);
  expect_span(out.ranks[0].steps[0].window, 0, 205);
}

TEST(Resolver, LeavesTheGapBetweenOpsOfAStream) {
  TestRank rank(0);
  rank.op(0, 100);
  rank.op(0, 100);
  Machine machine;
  machine.stream_gap_ns = 9;
  expect_span(resolved({rank.steps()}, machine).ranks[0].steps[0].ran[1], 109, 209);
}

TEST(Resolver, StartsAfterTheAwaitedEventAndItsLatency) {
  TestRank rank(0);
  rank.op(0, 100);
  rank.record(0, 0);
  rank.op(0, 1000);
  rank.wait(1, 0);
  rank.op(1, 10);
  Machine machine;
  machine.event_latency_ns = 3;
  expect_span(resolved({rank.steps()}, machine).ranks[0].steps[0].ran[2], 103, 113);
  rank.events_take(1);   // as in a graph
  expect_span(resolved({rank.steps()}, machine).ranks[0].steps[0].ran[2], 101, 111);
}

TEST(Resolver, LetsAStreamAwaitItsOwnEventForNothing) {
  TestRank rank(0);
  rank.op(0, 100);
  rank.record(0, 0);
  rank.wait(0, 0);
  rank.op(0, 10);
  Machine machine;
  machine.event_latency_ns = 3;
  expect_span(resolved({rank.steps()}, machine).ranks[0].steps[0].ran[1], 100, 110);
}

TEST(Resolver, AwaitsTheGenerationThatWasRecordedBeforeTheWait) {
  TestRank rank(0);
  rank.op(0, 100);
  rank.record(0, 0);
  rank.wait(1, 0);
  rank.op(0, 100);
  rank.record(0, 0);
  rank.op(1, 10);
  rank.wait(1, 0);
  rank.op(1, 10);
  const Resolved out = resolved({rank.steps()});
  expect_span(out.ranks[0].steps[0].ran[2], 100, 110);
  expect_span(out.ranks[0].steps[0].ran[3], 200, 210);
}

TEST(Resolver, AwaitsWhatAnEarlierStepRecordedLast) {
  TestRank rank(0);
  rank.wait(1, 0);  // in the first step nobody has recorded it
  rank.op(1, 10);
  rank.op(0, 100);
  rank.record(0, 0);
  const Resolved out = resolved({rank.steps(2)});
  expect_span(out.ranks[0].steps[0].ran[0], 0, 10);
  expect_span(out.ranks[0].steps[1].ran[0], 100, 110);
}

TEST(Resolver, BlocksTheHostInAHostWait) {
  TestRank rank(0);
  rank.op(0, 100, 10);
  rank.record(0, 0, 1);
  rank.host_wait(0, 5);
  rank.op(0, 100, 10);
  const Resolved out = resolved({rank.steps()});
  expect_span(out.ranks[0].steps[0].issued[2], 11, 115);
  expect_span(out.ranks[0].steps[0].ran[1], 125, 225);
}

TEST(Resolver, BlocksTheHostInAReadBackUntilItsStreamIsThere) {
  TestRank rank(0);
  rank.op(0, 100, 10);
  rank.op(1, 500);
  rank.read_back(0, 5);
  rank.op(0, 1);
  expect_span(resolved({rank.steps()}).ranks[0].steps[0].ran[2], 115, 116);
}

TEST(Resolver, StartsACollectiveWhenItsLastRankArrives) {
  TestRank early(0), late(1);
  for (TestRank* rank : {&early, &late}) {
    rank->op(0, rank == &late ? 300 : 100);
    rank->collective(0, rank->group("tp", {0, 1}), 40);
  }
  const Resolved out = resolved({early.steps(), late.steps()});
  expect_span(out.ranks[0].steps[0].ran[1], 100, 340);
  expect_span(out.ranks[1].steps[0].ran[1], 300, 340);
  EXPECT_EQ(out.ranks[0].wait_ns[0][1], 200);
  EXPECT_EQ(out.ranks[1].wait_ns[0][1], 0);
  EXPECT_EQ(out.ranks[0].wait_ns[0][0], 0);
}

TEST(Resolver, CountsASkewOfHostsAsWaitOfTheFirst) {
  TestRank first(0), second(1);
  for (TestRank* rank : {&first, &second}) rank->collective(0, rank->group("tp", {0, 1}), 40);
  std::vector<RankSteps> ranks = {first.steps(), second.steps()};
  ranks[1].start_ns = 1000;
  const Resolved out = resolved(ranks);
  expect_span(out.ranks[0].steps[0].ran[0], 0, 1040);
  EXPECT_EQ(out.ranks[0].wait_ns[0][0], 1000);
}

TEST(Resolver, KeepsTheOrderOfACommunicatorOverStreams) {
  TestRank ranks[2] = {TestRank(0), TestRank(1)};
  for (TestRank& rank : ranks) {
    const auto group = rank.group("tp", {0, 1});
    rank.collective(0, group, 100);
    rank.collective(1, group, 50);
  }
  const Resolved out = resolved({ranks[0].steps(), ranks[1].steps()});
  expect_span(out.ranks[0].steps[0].ran[1], 100, 150);
}

TEST(Resolver, RunsCollectivesOneByOneWhereTheDeviceSerialisesThem) {
  TestRank ranks[2] = {TestRank(0), TestRank(1)};
  for (TestRank& rank : ranks) {
    rank.op(0, 200);
    rank.record(0, 0);
    rank.wait(1, 0, WaitReason::buffer_reuse);
    rank.collective(1, rank.group("dp_shard", {0, 1}), 100);
    rank.collective(0, rank.group("tp", {0, 1}), 10);
  }
  const std::vector<RankSteps> given = {ranks[0].steps(), ranks[1].steps()};
  Machine machine;
  expect_span(resolved(given, machine).ranks[0].steps[0].ran[2], 200, 210);
  machine.order = Machine::CollectiveOrder::serial;
  expect_span(resolved(given, machine).ranks[0].steps[0].ran[2], 300, 310);
}

// A gather that waits for memory holds up an all-reduce of another communicator that was issued after it.
TEST(Resolver, LetsOneCollectiveOvertakeAnotherOnlyInFreeOrder) {
  TestRank ranks[2] = {TestRank(0, 3), TestRank(1, 3)};
  for (TestRank& rank : ranks) {
    rank.op(0, 200);
    rank.record(0, 0);
    rank.wait(1, 0);
    rank.collective(1, rank.group("dp_shard", {0, 1}), 100);
    rank.collective(2, rank.group("tp", {0, 1}), 10);
  }
  const std::vector<RankSteps> given = {ranks[0].steps(), ranks[1].steps()};
  Machine machine;
  expect_span(resolved(given, machine).ranks[0].steps[0].ran[2], 200, 210);
  machine.order = Machine::CollectiveOrder::free;
  expect_span(resolved(given, machine).ranks[0].steps[0].ran[2], 0, 10);
}

TEST(Resolver, MatchesSendAndReceiveByPairAndDirection) {
  TestRank ranks[3] = {TestRank(0), TestRank(1), TestRank(2)};
  // 0 sends to 1, 1 sends to 2: a pipeline. Their sequence numbers differ.
  for (TestRank& rank : ranks) rank.group("pp", {0, 1, 2});
  ranks[0].op(0, 100);
  ranks[0].collective(0, 0, 10, 0, OpKind::send, 64, 1);
  ranks[1].collective(0, 0, 10, 0, OpKind::recv, 64, 0);
  ranks[1].op(0, 100);
  ranks[1].collective(0, 0, 10, 0, OpKind::send, 64, 2);
  ranks[2].collective(0, 0, 10, 0, OpKind::recv, 64, 1);
  const Resolved out = resolved({ranks[0].steps(), ranks[1].steps(), ranks[2].steps()});
  expect_span(out.ranks[1].steps[0].ran[0], 0, 110);
  expect_span(out.ranks[2].steps[0].ran[0], 0, 220);
}

// --- Steps after each other ---------------------------------------------------------------------------

TEST(Resolver, LetsTheHostIssueTheNextStepWhileTheDeviceRunsThisOne) {
  TestRank rank(0);
  rank.op(0, 100, 10);
  const Resolved out = resolved({rank.steps(4)});
  EXPECT_EQ(out.ranks[0].steps[3].window.start, 30);
  EXPECT_EQ(out.step_ns, 100);
}

TEST(Resolver, TakesTheHostsPeriodWhereTheHostIsTheLimit) {
  TestRank rank(0);
  rank.step_cost(7);
  for (int at = 0; at < 5; ++at) rank.op(0, 3, 20);
  EXPECT_EQ(resolved({rank.steps(3)}).step_ns, 107);
}

TEST(Resolver, DrainsEachStepWhereAsked) {
  TestRank rank(0);
  rank.op(0, 100, 10);
  ResolveOptions options;
  options.drain_each_step = true;
  const Resolved out = resolved({rank.steps(3)}, {}, options);
  expect_span(out.ranks[0].steps[1].window, 110, 220);
  EXPECT_EQ(out.step_ns, 110);
}

// --- What if ------------------------------------------------------------------------------------------------

TEST(WhatIf, TheLimiterWereNotThere) {
  TestRank rank(0);
  rank.op(0, 100);
  rank.record(0, 0);
  rank.wait(1, 0, WaitReason::limiter);
  rank.op(1, 10);
  ResolveOptions options;
  EXPECT_EQ(resolved({rank.steps()}, {}, options).step_ns, 110);
  options.without = {EdgeKind::buffer_reuse};
  EXPECT_EQ(resolved({rank.steps()}, {}, options).step_ns, 110);
  options.without = {EdgeKind::limiter};
  EXPECT_EQ(resolved({rank.steps()}, {}, options).step_ns, 100);
}

TEST(WhatIf, TheHostDidNotWait) {
  TestRank rank(0);
  rank.op(0, 100);
  rank.record(0, 0);
  rank.host_wait(0);
  rank.op(1, 100);
  ResolveOptions options;
  options.without = {EdgeKind::host};
  EXPECT_EQ(resolved({rank.steps()}, {}, options).step_ns, 100);
}

TEST(WhatIf, StreamOrderCannotBeLeftOut) {
  TestRank rank(0);
  rank.op(0, 100);
  ResolveOptions options;
  options.without = {EdgeKind::stream};
  EXPECT_THROW((void)resolve({rank.steps()}, Machine{}, options), base::Failure);
}

// --- What cannot be resolved ------------------------------------------------------------------------------

std::string refusal(const std::vector<RankSteps>& ranks) {
  const base::Result<Resolved> result = resolve(ranks, Machine{});
  EXPECT_FALSE(result.ok());
  return result.ok() ? "" : result.error();
}

TEST(Deadlock, IsToldWithWhoWaitsWhereForWhom) {
  // Each rank begins with the collective that the other has second.
  TestRank left(0), right(1);
  for (TestRank* rank : {&left, &right}) {
    rank->group("tp", {0, 1});
    rank->group("dp_shard", {0, 1});
    const program::GroupId first = rank == &left ? 0 : 1;
    rank->collective(0, first, 10);
    rank->collective(0, static_cast<program::GroupId>(1 - first), 10);
  }
  EXPECT_EQ(refusal({left.steps(), right.steps()}),
            "the ranks wait for each other for ever: rank 0 waits in all_gather 0 of tp [0, 1] (test.cpp:1) for rank 1; "
            "rank 1 waits in all_gather 0 of dp_shard [0, 1] (test.cpp:1) for rank 0");
}

TEST(Deadlock, NamesTheRankThatNeverCalls) {
  TestRank calls(0), does_not(1);
  for (TestRank* rank : {&calls, &does_not}) rank->group("tp", {0, 1});
  calls.collective(0, 0, 10);
  does_not.op(0, 10);
  EXPECT_EQ(refusal({calls.steps(), does_not.steps()}),
            "the ranks wait for each other for ever: rank 0 waits in all_gather 0 of tp [0, 1] (test.cpp:1) for rank 1; "
            "rank 1 has issued all it has");
}

TEST(Mismatch, OfKindsOrSizesIsToldWithBothRanks) {
  TestRank left(0), right(1);
  for (TestRank* rank : {&left, &right}) rank->group("tp", {0, 1});
  left.collective(0, 0, 10, 0, OpKind::all_gather, 512);
  right.collective(0, 0, 10, 0, OpKind::all_reduce, 1024);
  const std::string said = refusal({left.steps(), right.steps()});
  EXPECT_NE(said.find("rank 0 calls all_gather 0 of tp [0, 1] with 512 bytes where rank 1 calls all_reduce with 1024 bytes"),
            std::string::npos)
      << said;
}

TEST(Mismatch, IsNoneWhereRanksBringUnequalPartsToAnAllToAll) {
  TestRank left(0), right(1);
  for (TestRank* rank : {&left, &right}) rank->group("ep", {0, 1});
  left.collective(0, 0, 10, 0, OpKind::all_to_all, 512);
  right.collective(0, 0, 10, 0, OpKind::all_to_all, 1024);
  const Resolved out = resolved({left.steps(), right.steps()});
  expect_span(out.ranks[0].steps[0].ran[0], 0, 10);
}

TEST(Mismatch, OfRanksGivenIsTold) {
  TestRank alone(0);
  alone.group("tp", {0, 1});
  alone.collective(0, 0, 10);
  const std::string said = refusal({alone.steps()});
  EXPECT_NE(said.find("rank 1 was not given"), std::string::npos) << said;
}

}  // namespace
}  // namespace shardbook::simulate
