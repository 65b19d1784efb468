// A step resolved again with one thing changed: what must hold of every change.
#include "engine/simulate/replay.hpp"

#include "engine/simulate/reorder.hpp"
#include "tests/simulate/programs.hpp"

namespace shardbook::simulate {
namespace {

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

std::vector<MeasuredRank> as_measured(const std::vector<RankSteps>& ranks, const Resolved& times) {
  std::vector<MeasuredRank> measured;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    measured.push_back({ranks[at].rank, ranks[at].catalogue, ranks[at].steps.back().program, &times.ranks[at].steps.back()});
  }
  return measured;
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

TEST(Measured, AlikeTakesOutASlowRank) {
  std::vector<TestRank> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    TestRank& one = ranks.emplace_back(rank);
    one.group("all", {0, 1, 2, 3});
    for (int layer = 0; layer < 5; ++layer) {
      one.op(0, rank == 2 ? 300 : 100);
      one.record(0, 0);
      one.wait(1, 0);
      one.collective(1, 0, 50);
      one.record(1, 1);
      one.wait(0, 1);
    }
  }
  std::vector<RankSteps> steps;
  for (TestRank& rank : ranks) steps.push_back(rank.steps());
  const Resolved times = resolved(steps);
  EXPECT_EQ(times.step_end.back(), 5 * 350);
  const base::Result<Replay> replay = Replay::measured(as_measured(steps, times), nullptr);
  ASSERT_TRUE(replay.ok());
  Change alike;
  alike.alike = true;
  EXPECT_EQ(replay.value().resolve(alike).value().step_ns(), 5 * 150);
}

// The rank whose matmul takes 300 is made as the one in the middle; the one that takes 150 stays, and is waited for.
TEST(Measured, OneRankMadeUsualLeavesTheOthersAsTheyAre) {
  std::vector<TestRank> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    TestRank& one = ranks.emplace_back(rank);
    one.group("all", {0, 1, 2});
    one.op(0, rank == 2 ? 300 : rank == 1 ? 150 : 100);
    one.record(0, 0);
    one.wait(1, 0);
    one.collective(1, 0, 50);
    one.record(1, 1);
    one.wait(0, 1);
  }
  std::vector<RankSteps> steps;
  for (TestRank& rank : ranks) steps.push_back(rank.steps());
  const Resolved times = resolved(steps);
  const base::Result<Replay> replay = Replay::measured(as_measured(steps, times), nullptr);
  ASSERT_TRUE(replay.ok());
  const auto step_with = [&](auto set) {
    Change change;
    set(change);
    return replay.value().resolve(change).value().step_ns();
  };
  EXPECT_EQ(step_with([](Change&) {}), 350);
  EXPECT_EQ(step_with([](Change& change) { change.usual_device = 2; }), 200);
  EXPECT_EQ(step_with([](Change& change) { change.usual_device = 0; }), 350) << "it is not the one that is waited for";
  EXPECT_EQ(step_with([](Change& change) { change.usual_host = 2; }), 350) << "its device is late, not its host";
}

// The host of rank 2 takes 500 for a call, that of rank 1 200, and that of rank 0 100.
TEST(Measured, OneHostMadeUsualIsAsFastAsTheOneInTheMiddle) {
  std::vector<TestRank> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    TestRank& one = ranks.emplace_back(rank);
    one.group("all", {0, 1, 2});
    one.op(0, 100, rank == 2 ? 500 : rank == 1 ? 200 : 100);
    one.record(0, 0);
    one.wait(1, 0);
    one.collective(1, 0, 50);
  }
  std::vector<RankSteps> steps;
  for (TestRank& rank : ranks) steps.push_back(rank.steps());
  const Resolved times = resolved(steps);
  const base::Result<Replay> replay = Replay::measured(as_measured(steps, times), nullptr);
  ASSERT_TRUE(replay.ok());
  const Nanoseconds as_it_is = replay.value().resolve().value().step_ns();
  Change host, device;
  host.usual_host = 2;
  device.usual_device = 2;
  EXPECT_EQ(as_it_is - replay.value().resolve(host).value().step_ns(), 300);
  EXPECT_EQ(replay.value().resolve(device).value().step_ns(), as_it_is) << "its device takes what the others' take";
}

// --- The clock ----------------------------------------------------------------------------------------

// A machine on which nothing that runs together slows, and power is short: matmuls at speed s draw s².
CostModel at_its_limit() {
  base::Result<Profile> profile = find_profile(SHARDBOOK_SOURCE_DIR "/tests/simulate/data/machine.json");
  EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error());
  profile.value().contention = {{.ranks = 2}};
  profile.value().power = {.exponent = 2, .idle = 0.1, .communication = 0.7, .memory = 0.6, .fastest = 1.3};
  return CostModel(std::move(profile).value());
}

// 800 µs of a matmul and 200 of a kernel, which draws 0.6: 880 are left for the matmul's 800, so it ran at √1.1. Without the
// kernel nothing rests: the matmul takes √1.1 times as long, at speed 1.
TEST(AtItsClock, AMatmulIsSlowerWhereTheKernelThatDrewLessIsGone) {
  TestRank rank(0);
  rank.matmul(0, 800'000);
  rank.op(0, 200'000, 0, OpKind::pointwise);
  const std::vector<RankSteps> steps{rank.steps()};
  const Resolved times = resolved(steps);
  const CostModel model = at_its_limit();
  const base::Result<Replay> replay = Replay::measured(as_measured(steps, times), &model);
  ASSERT_TRUE(replay.ok()) << replay.error();
  EXPECT_EQ(replay.value().resolve().value().step_ns(), 1'000'000) << "with nothing changed it is what it was";
  Change gone;
  gone.factor = [](base::Rank, program::OpIndex op) { return op == 1 ? 0.0 : 1.0; };
  const double settled = 2e-3;   // the search ends where the clock moves by less than one in a thousand
  EXPECT_NEAR(replay.value().resolve(gone).value().step_ns(), 800'000 * std::sqrt(1.1), settled * 800'000);
  gone.same_clock = true;
  EXPECT_EQ(replay.value().resolve(gone).value().step_ns(), 800'001);
}

// A matmul of 600 µs and two kernels of 200, which draw 0.6: 760 are left for the matmul, so it ran at √(760/600). Without the first
// kernel it is slower, and the second is, too, by the power of 0.35: at speed s both draw m s² + 0.6 k in the m + k that they take.
TEST(AtItsClock, OtherKernelsFeelAPartOfIt) {
  TestRank rank(0);
  rank.matmul(0, 600'000);
  for (int i = 0; i < 2; ++i) rank.op(0, 200'000, 0, OpKind::pointwise);
  const std::vector<RankSteps> steps{rank.steps()};
  const CostModel model = at_its_limit();
  const base::Result<Replay> replay = Replay::measured(as_measured(steps, resolved(steps)), &model);
  ASSERT_TRUE(replay.ok()) << replay.error();
  Change gone;
  gone.factor = [](base::Rank, program::OpIndex op) { return op == 1 ? 0.0 : 1.0; };
  const double before = std::sqrt(760.0 / 600);
  double low = 0.5, high = before, matmul = 0, kernel = 0;
  for (int i = 0; i < 60; ++i) {
    const double speed = (low + high) / 2;
    matmul = 600'000 * before / speed;
    kernel = 200'000 * std::pow(before / speed, 0.35);
    (matmul * speed * speed + 0.6 * kernel > matmul + kernel ? high : low) = speed;
  }
  EXPECT_GT(kernel, 201'000);
  EXPECT_NEAR(replay.value().resolve(gone).value().step_ns(), matmul + kernel, 2e-3 * (matmul + kernel));
}

// The same twice, in forward and in backward. Where forward's kernel is gone, forward's matmul slows by √1.1 and backward's does
// not: the limit holds for a mean over milliseconds. With one clock for all, each would take 1.039 times as long.
TEST(AtItsClock, ForwardAndBackwardHaveAClockOfTheirOwn) {
  TestRank rank(0);
  for (const program::Phase phase : {program::Phase::forward, program::Phase::backward}) {
    const program::Scope scope(rank.recorder(), phase, 0);
    rank.matmul(0, 800'000);
    rank.op(0, 200'000, 0, OpKind::pointwise);
  }
  const std::vector<RankSteps> steps{rank.steps()};
  const Resolved times = resolved(steps);
  const CostModel model = at_its_limit();
  const base::Result<Replay> replay = Replay::measured(as_measured(steps, times), &model);
  ASSERT_TRUE(replay.ok()) << replay.error();
  EXPECT_EQ(replay.value().resolve().value().step_ns(), 2'000'000);
  Change gone;
  gone.factor = [](base::Rank, program::OpIndex op) { return op == 1 ? 0.0 : 1.0; };
  const base::Result<Replayed> without = replay.value().resolve(gone);
  ASSERT_TRUE(without.ok()) << without.error();
  const std::vector<program::TimeSpan>& ran = without.value().ranks.front().steps.back().ran;
  EXPECT_NEAR(ran[0].end - ran[0].start, 800'000 * std::sqrt(1.1), 2e-3 * 800'000);
  EXPECT_EQ(ran[2].end - ran[2].start, 800'000);
}

// Rank 0 computes for 500 µs and waits for rank 1, which computes for 700; then both sum for 100. Rank 0's collective is there
// for 300 µs: it waits for 200 and draws 0.4, midway between rest and a collective's 0.7, then moves for 100: 650 are left for
// 500, so its speed was √1.3. When rank 1 no longer is late, rank 0 waits no more, and its matmul sets the pace: its work,
// 500 √1.3, at speed s takes m = that / s, and draws that · s; with the sum's 70 this is the step's m + 100. Were waits counted
// as rest, the step would be 681 µs instead of 655; as the collective itself, 628.
TEST(AtItsClock, AWaitInACollectiveDrawsHalfAsMuchMoreThanRestAsTheCollectiveDoes) {
  std::vector<TestRank> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    TestRank& one = ranks.emplace_back(rank);
    one.group("all", {0, 1});
    one.matmul(0, rank == 1 ? 700'000 : 500'000);
    one.record(0, 0);
    one.wait(1, 0);
    one.collective(1, 0, 100'000);
  }
  const std::vector<RankSteps> steps{ranks[0].steps(), ranks[1].steps()};
  const Resolved times = resolved(steps);
  ASSERT_EQ(times.ranks[0].wait_ns[0][1], 200'000);
  const CostModel model = at_its_limit();
  const base::Result<Replay> replay = Replay::measured(as_measured(steps, times), &model);
  ASSERT_TRUE(replay.ok()) << replay.error();
  Change punctual;
  punctual.of_rank[1].compute = 5.0 / 7;
  const double work = 500'000 * std::sqrt(1.3), sum = 100'000;
  // work · s + 0.7 sum = work / s + sum
  const double speed = (0.3 * sum + std::sqrt(0.09 * sum * sum + 4 * work * work)) / (2 * work);
  const double step = work / speed + sum;
  EXPECT_NEAR(step, 655'285, 10);
  EXPECT_NEAR(replay.value().resolve(punctual).value().step_ns(), step, 2e-3 * step);
}

// A step that is made as its middle rank goes through it runs at the clock at which that rank did, not at each rank's own. Matmuls of
// 500, 600 and 700 µs, then a sum of 100: the middle one waits for 100, so 690 of 800 are left for its 600, and it ran at √1.15. At its
// own clock, which was faster, the first rank would be the slowest now.
TEST(AtItsClock, OfRanksMadeAlikeIsThatOfTheRankInTheMiddle) {
  std::vector<TestRank> ranks;
  std::vector<RankSteps> steps;
  for (int rank = 0; rank < 3; ++rank) {
    TestRank& one = ranks.emplace_back(rank);
    one.group("all", {0, 1, 2});
    one.matmul(0, 500'000 + 100'000 * rank);
    one.record(0, 0);
    one.wait(1, 0);
    one.collective(1, 0, 100'000);
  }
  for (TestRank& rank : ranks) steps.push_back(rank.steps());
  const CostModel model = at_its_limit();
  const base::Result<Replay> replay = Replay::measured(as_measured(steps, resolved(steps)), &model);
  ASSERT_TRUE(replay.ok()) << replay.error();
  Change alike;
  alike.alike = true;
  const double work = 600'000 * std::sqrt(1.15), sum = 100'000;
  // As above: work · s + 0.7 sum = work / s + sum
  const double speed = (0.3 * sum + std::sqrt(0.09 * sum * sum + 4 * work * work)) / (2 * work);
  const double step = work / speed + sum;
  EXPECT_NEAR(replay.value().resolve(alike).value().step_ns(), step, 2e-3 * step);
}

// Gathers that are issued when they are needed, one buffer: then one place earlier, as with two.
TEST(Earlier, IssuesAGatherWhileTheUnitBeforeIsUsed) {
  TestRank rank(0);
  rank.group("shard", {0});
  constexpr int units = 4;
  Recorder& recorder = rank.recorder();
  Costs costs;
  const auto issue = [&] { costs.issue_ns.push_back(0); };
  const auto op = [&](StreamId stream, OpKind kind, base::Nanoseconds ns, std::uint32_t line) {
    OpDesc desc("op", kind, base::DType::bf16);
    if (kind == OpKind::all_gather) desc.collective_of({0, recorder.next_sequence(0), 1024});
    recorder.op(stream, desc, {"test.cpp", line});
    costs.op_ns.push_back(ns);
    costs.shared_part.push_back(0);
    issue();
  };
  for (int unit = 0; unit < units; ++unit) {
    recorder.wait_event(1, 1, WaitReason::buffer_reuse, {"test.cpp", 1}), issue();   // released
    op(1, OpKind::all_gather, 60, 2);
    recorder.record_event(1, 0, {"test.cpp", 3}), issue();                           // gathered
    recorder.wait_event(0, 0, WaitReason::data, {"test.cpp", 4}), issue();
    op(0, OpKind::gemm, 100, 5);
    recorder.record_event(0, 1, {"test.cpp", 6}), issue();
  }
  const program::Program& program = rank.program();
  const auto end_of = [&](const program::Program& which) {
    RankSteps steps{0, &recorder.catalogue(), {{&which, std::make_shared<const Costs>(costs)}}};
    return resolved({steps}).step_end.back();
  };
  EXPECT_EQ(end_of(program), units * 160);
  const Reordered once = issued_earlier(program, {{"test.cpp", 2}});
  EXPECT_EQ(once.moved, 3u);
  EXPECT_EQ(once.program.commands.size(), program.commands.size());
  EXPECT_EQ(end_of(once.program), 60 + units * 100) << "all but the first hide";
  EXPECT_EQ(issued_earlier(program, {{"test.cpp", 9}}).moved, 0u);
}

TEST(Earlier, DoesNotPassWhatTheCollectiveDependsOn) {
  TestRank rank(0);
  rank.group("tp", {0});
  for (int layer = 0; layer < 3; ++layer) {
    rank.op(0, 100);
    rank.record(0, 0);
    rank.wait(1, 0);
    rank.recorder().op(1, OpDesc("sum", OpKind::all_reduce, base::DType::bf16).collective_of({0, rank.recorder().next_sequence(0), 8}), {"sum.cpp", 1});
    rank.record(1, 1);
    rank.wait(0, 1);
  }
  EXPECT_EQ(issued_earlier(rank.program(), {{"sum.cpp", 1}}).moved, 0u) << "each sums what was computed just before";
}

}  // namespace
}  // namespace shardbook::simulate
