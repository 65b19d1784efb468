// A step resolved again with one thing changed: what must hold of every change.
#include "engine/simulate/replay.hpp"

#include <numeric>

#include "engine/simulate/reorder.hpp"
#include "tests/simulate/programs.hpp"

namespace shardbook::simulate {
namespace {

using base::Nanoseconds;

constexpr unsigned replayed_seeds = 40;

std::vector<RankSteps> under(std::vector<RankSteps> ranks, const Scale& scale) {
  for (RankSteps& rank : ranks) {
    for (Step& step : rank.steps) step.costs = std::make_shared<const Costs>(scaled(*step.costs, *step.program, scale));
  }
  return ranks;
}

std::vector<double Scale::*> factors() {
  return {&Scale::compute, &Scale::communication, &Scale::memory, &Scale::host, &Scale::latency, &Scale::bandwidth};
}

// Random ranks, of whose collectives a third of the time does not depend on the size.
std::vector<RankSteps> with_latency(RandomRanks& ranks, int count) {
  std::vector<RankSteps> steps = ranks.steps(count);
  for (RankSteps& rank : steps) {
    auto costs = std::make_shared<Costs>(*rank.steps.front().costs);
    for (base::Nanoseconds ns : costs->op_ns) costs->fixed_ns.push_back(ns / 3);
    for (Step& step : rank.steps) step.costs = costs;
  }
  return steps;
}

TEST(Scaled, ByOnesIsTheSame) {
  for (unsigned seed = 0; seed < replayed_seeds; ++seed) {
    RandomRanks ranks(seed);
    const std::vector<RankSteps> steps = with_latency(ranks, 2);
    const Resolved one = resolved(steps), other = resolved(under(steps, {}));
    ASSERT_EQ(one.step_end, other.step_end) << "seed " << seed;
  }
}

// Where nothing is shared every end is a longest path, and a longest path grows with what it is made of.
TEST(Scaled, StepsGrowWithEachFactor) {
  for (unsigned seed = 0; seed < replayed_seeds; ++seed) {
    RandomRanks ranks(seed);
    const std::vector<RankSteps> steps = with_latency(ranks, 2);
    for (double Scale::*factor : factors()) {
      base::Nanoseconds before = 0;
      for (double value : {0.0, 0.5, 1.0, 2.0}) {
        Scale scale;
        scale.*factor = value;
        const base::Nanoseconds end = resolved(under(steps, scale)).step_end.back();
        ASSERT_LE(before, end) << "seed " << seed << " factor " << value;
        before = end;
      }
    }
  }
}

TEST(Scaled, LatencyAndBandwidthAreTheWholeOfACollective) {
  TestRank rank(0);
  const auto alone = rank.group("tp", {0});
  rank.collective(1, alone, 900);
  std::vector<RankSteps> steps{rank.steps()};
  auto costs = std::make_shared<Costs>(*steps[0].steps[0].costs);
  costs->fixed_ns = {300};
  steps[0].steps[0].costs = costs;
  const auto takes = [&](double latency, double bandwidth) { return under(steps, {.latency = latency, .bandwidth = bandwidth})[0].steps[0].costs->op_ns[0]; };
  EXPECT_EQ(takes(1, 1), 900);
  EXPECT_EQ(takes(0, 1), 600);
  EXPECT_EQ(takes(1, 0), 300);
  EXPECT_EQ(takes(0.5, 2), 150 + 1200);
  EXPECT_EQ(takes(0, 0), 1) << "an op keeps 1 ns";
}

TEST(Scaled, ContentionOfNothingIsNone) {
  Machine machine;
  machine.contention = {{2, 1.2, 1.7, 1.1, 1.3}};
  const Machine none = scaled(machine, {.contention = 0}), half = scaled(machine, {.contention = 0.5});
  EXPECT_EQ(none.contention[0].gemm_by_collective, 1);
  EXPECT_DOUBLE_EQ(half.contention[0].collective_by_gemm, 1.35);
}

// A wait is named by its own line or by the line of what it awaits.
TEST(WithoutWaits, LeavesOutThoseOfTheLineOnly) {
  TestRank rank(0, 3);
  rank.op(0, 100);
  rank.record(0, 0);       // test.cpp:2
  rank.wait(1, 0);         // test.cpp:3
  rank.op(1, 10);
  rank.wait(2, 0);         // test.cpp:5
  rank.op(2, 10);
  const std::vector<RankSteps> steps{rank.steps()};
  const auto ends = [&](std::vector<program::SourceLine> lines) {
    ResolveOptions options;
    options.without_waits = std::move(lines);
    const Resolved out = resolved(steps, {}, options);
    return std::pair(out.ranks[0].steps[0].ran[1].end, out.ranks[0].steps[0].ran[2].end);
  };
  using Ends = std::pair<base::Nanoseconds, base::Nanoseconds>;
  EXPECT_EQ(ends({}), Ends(110, 110));
  EXPECT_EQ(ends({{"test.cpp", 3}}), Ends(10, 110));
  EXPECT_EQ(ends({{"test.cpp", 5}}), Ends(110, 10));
  EXPECT_EQ(ends({{"test.cpp", 2}}), Ends(10, 10)) << "the line of the record";
  EXPECT_EQ(ends({{"other.cpp", 3}}), Ends(110, 110));
}

// Four ranks that do the same: one is enough.
TEST(OneForAll, GivesTheTimesOfAll) {
  for (unsigned seed = 0; seed < replayed_seeds; ++seed) {
    std::vector<TestRank> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      std::mt19937 draw(seed);
      TestRank& one = ranks.emplace_back(rank, 3);
      one.group("all", {0, 1, 2, 3});
      for (int at = 0; at < 40; ++at) {
        const auto stream = static_cast<StreamId>(draw() % 3);
        const auto ns = static_cast<base::Nanoseconds>(1 + draw() % 500);
        switch (draw() % 5) {
          case 0: one.record(stream, draw() % 4); break;
          case 1: one.wait(stream, draw() % 4); break;
          case 2: one.collective(2, 0, ns); break;
          default: one.op(stream, ns, static_cast<base::Nanoseconds>(draw() % 50)); break;
        }
      }
    }
    std::vector<RankSteps> all;
    for (TestRank& rank : ranks) all.push_back(rank.steps(3));
    std::vector<RankSteps> one{all[0]};
    one[0].for_all = true;
    Machine machine;
    machine.shares = true;
    machine.contention = {{2, 1.2, 1.7, 1.1, 1.3}, {4, 1.4, 1.5, 1.2, 1.6}};
    const Resolved expected = resolved(all, machine), given = resolved(one, machine);
    ASSERT_EQ(given.step_end, expected.step_end) << "seed " << seed;
  }
}

// What was measured is whole nanoseconds, what resolves is not: an op on the path may be one shorter or longer.
double rounding_of(const std::vector<RankSteps>& ranks) {
  double ops = 0;
  for (const RankSteps& rank : ranks) ops += static_cast<double>(rank.steps[0].program->ops.size());
  return ops;
}

TEST(Measured, WithNothingChangedIsWhatWasMeasured) {
  for (unsigned seed = 0; seed < replayed_seeds; ++seed) {
    RandomRanks ranks(seed);
    const std::vector<RankSteps> steps = ranks.steps(1);
    const Resolved times = resolved(steps);
    const base::Result<Replay> replay = Replay::measured(as_measured(steps, times), nullptr);
    ASSERT_TRUE(replay.ok()) << replay.error();
    const base::Result<Replayed> same = replay.value().resolve();
    ASSERT_TRUE(same.ok()) << same.error();
    EXPECT_EQ(replay.value().step_ns(), times.step_end.back());
    EXPECT_NEAR(same.value().step_ns(), times.step_end.back(), rounding_of(steps)) << "seed " << seed;
    EXPECT_EQ(replay.value().resolve().value().step_ns(), same.value().step_ns()) << "equal input, equal output";
  }
}

// Measured, then scaled, is scaled and then measured.
TEST(Measured, ScaledIsWhatTheScaledOneWouldHaveMeasured) {
  for (unsigned seed = 0; seed < replayed_seeds; ++seed) {
    RandomRanks ranks(seed);
    const std::vector<RankSteps> steps = ranks.steps(1);
    const Resolved times = resolved(steps);
    const base::Result<Replay> replay = Replay::measured(as_measured(steps, times), nullptr);
    ASSERT_TRUE(replay.ok());
    Change change;
    change.scale = {.compute = 0.5, .communication = 2};
    const base::Result<Replayed> changed = replay.value().resolve(change);
    ASSERT_TRUE(changed.ok());
    EXPECT_NEAR(changed.value().step_ns(), resolved(under(steps, change.scale)).step_end.back(), 2 * rounding_of(steps)) << "seed " << seed;
  }
}

// Ranks that sum over all of them what their matmuls made, as often as there are layers: by rank what a matmul takes, and issuing it.
class SummingRanks {
 public:
  SummingRanks(int layers, const std::vector<Nanoseconds>& matmul_ns, const std::vector<Nanoseconds>& issue_ns = {}) {
    std::vector<base::Rank> all(matmul_ns.size());
    std::iota(all.begin(), all.end(), 0);
    for (base::Rank rank : all) {
      TestRank& one = ranks_.emplace_back(rank);
      one.group("all", all);
      for (int layer = 0; layer < layers; ++layer) {
        one.op(0, matmul_ns[static_cast<std::size_t>(rank)], issue_ns.empty() ? 0 : issue_ns[static_cast<std::size_t>(rank)]);
        one.record(0, 0);
        one.wait(1, 0);
        one.collective(1, 0, 50);
        one.record(1, 1);
        one.wait(0, 1);
      }
    }
    for (TestRank& rank : ranks_) steps_.push_back(rank.steps());
    times_ = resolved(steps_);
  }
  Nanoseconds end() const { return times_.step_end.back(); }
  // What the step takes, measured and resolved again with a change.
  Nanoseconds step_with(const Change& change) const {
    const base::Result<Replay> replay = Replay::measured(as_measured(steps_, times_), nullptr);
    return replay.ok() ? replay.value().resolve(change).value().step_ns() : -1;
  }

 private:
  std::vector<TestRank> ranks_;
  std::vector<RankSteps> steps_;
  Resolved times_;
};

TEST(Measured, AlikeTakesOutASlowRank) {
  const SummingRanks ranks(5, {100, 100, 300, 100});
  EXPECT_EQ(ranks.end(), 5 * 350);
  Change alike;
  alike.alike = true;
  EXPECT_EQ(ranks.step_with(alike), 5 * 150);
}

// The rank whose matmul takes 300 is made as the one in the middle; the one that takes 150 stays, and is waited for.
TEST(Measured, OneRankMadeUsualLeavesTheOthersAsTheyAre) {
  const SummingRanks ranks(1, {100, 150, 300});
  Change late, other, host;
  late.usual_device = 2;
  other.usual_device = 0;
  host.usual_host = 2;
  EXPECT_EQ(ranks.step_with({}), 350);
  EXPECT_EQ(ranks.step_with(late), 200);
  EXPECT_EQ(ranks.step_with(other), 350) << "it is not the one that is waited for";
  EXPECT_EQ(ranks.step_with(host), 350) << "its device is late, not its host";
}

// The host of rank 2 takes 500 for a call, that of rank 1 200, and that of rank 0 100.
TEST(Measured, OneHostMadeUsualIsAsFastAsTheOneInTheMiddle) {
  const SummingRanks ranks(1, {100, 100, 100}, {100, 200, 500});
  Change host, device;
  host.usual_host = 2;
  device.usual_device = 2;
  EXPECT_EQ(ranks.step_with({}) - ranks.step_with(host), 300);
  EXPECT_EQ(ranks.step_with(device), ranks.step_with({})) << "its device takes what the others' take";
}

}  // namespace
}  // namespace shardbook::simulate
