// Modelled steps where power is short, and where a profile says at which speed its matmuls were measured.
#include <cmath>

#include "engine/simulate/clocked.hpp"
#include "engine/simulate/replay.hpp"
#include "tests/simulate/programs.hpp"

namespace shardbook::simulate {
namespace {

constexpr double matmul_ns = 1'394'300 - 800, gap_ns = 800;   // 8192³ of the machine of the tests, from begin to end
constexpr double train = 1.1, settled = 2e-3;                 // the search ends where the clock moves by less than one in a thousand

// As in at_its_clock_test: matmuls at speed s draw s², and nothing that runs together slows.
CostModel clocked(double at, double fastest = 1.3) {
  base::Result<Profile> profile = find_profile(SHARDBOOK_SOURCE_DIR "/tests/simulate/data/machine.json");
  EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error());
  profile.value().contention = {{.ranks = 2}};
  profile.value().power = {.exponent = 2, .idle = 0.1, .communication = 0.7, .memory = 0.6, .fastest = fastest, .train = at};
  return CostModel(std::move(profile).value());
}

struct TwoRanks {
  TwoRanks() {
    for (int rank = 0; rank < 2; ++rank) ranks.emplace_back(rank).group("all", {0, 1});
  }
  void matmul() {
    for (TestRank& rank : ranks) rank.matmul(0, 0);
  }
  // On a stream of its own; awaited: nothing else runs meanwhile.
  void gather(base::Bytes bytes, bool awaited) {
    for (TestRank& rank : ranks) {
      Recorder& recorder = rank.recorder();
      if (awaited) recorder.record_event(0, 0, {}), recorder.wait_event(1, 0, WaitReason::data, {});
      recorder.op(1, OpDesc("all_gather", OpKind::all_gather, base::DType::bf16).collective_of({0, recorder.next_sequence(0), bytes, -1}), {});
      if (awaited) recorder.record_event(1, 1, {}), recorder.wait_event(0, 1, WaitReason::data, {});
    }
  }
  std::vector<RankProgram> programs() {
    std::vector<RankProgram> all;
    for (TestRank& rank : ranks) all.push_back({rank.recorder().rank(), &rank.recorder().catalogue(), &rank.program()});
    return all;
  }
  double step_ns(const CostModel& model) { return static_cast<double>(resolve(programs(), model).value().step_ns); }

  std::vector<TestRank> ranks;
};

// Measured at speed 1.1, without a pause they draw the limit at speed 1, and take 1.1 times as long.
TEST(Clocked, MatmulsWithoutAPauseRunAtSpeedOneHoweverTheyWereMeasured) {
  TwoRanks step;
  for (int at = 0; at < 4; ++at) step.matmul();
  EXPECT_NEAR(step.step_ns(clocked(0)), 4 * (matmul_ns + gap_ns), 10) << "no speed is known, so they are as measured";
  for (const double at : {1.0, train}) EXPECT_NEAR(step.step_ns(clocked(at)), 4 * (at * matmul_ns + gap_ns), settled * 4 * matmul_ns) << at;
}

// A matmul m at speed 1, and a gather g that nothing hides: m s + 0.7 g = m / s + g.
TEST(Clocked, MatmulsRunFasterWhereTheDeviceWaitsForTheNetwork) {
  TwoRanks step;
  step.matmul();
  step.gather(512 << 20, true);
  const double plain = step.step_ns(clocked(0)), g = plain - matmul_ns, m = train * matmul_ns;
  const double speed = (0.3 * g + std::sqrt(0.09 * g * g + 4 * m * m)) / (2 * m);
  ASSERT_GT(speed, 1.05);
  EXPECT_NEAR(step.step_ns(clocked(train)), m / speed + g, settled * plain);
  EXPECT_NEAR(step.step_ns(clocked(train, 1.1)), m / std::min(speed, 1.1) + g, settled * plain) << "but not faster than with power to spare";
}

// The speed of matmuls m, at speed 1, beside which a gather of g alone is hidden, and draws what it draws beyond an idle device:
// m s + (0.7 - 0.1) g = m / s.
double speed_beside(double m, double g) { return (std::sqrt(0.36 * g * g + 4 * m * m) - 0.6 * g) / (2 * m); }
double gather_ns(base::Bytes bytes) { return clocked(0).collective_ns(OpKind::all_gather, bytes, {0, 1}); }

// A gather that is hidden draws what it draws for as long as its bytes take alone; also one that nothing holds back, and that runs beside
// the matmuls of the step before.
TEST(Clocked, AGatherThatIsHiddenSlowsTheClock) {
  TwoRanks step;
  step.gather(256 << 20, false);
  for (int at = 0; at < 4; ++at) step.matmul();
  const double m = 4 * train * matmul_ns, speed = speed_beside(m, gather_ns(256 << 20));
  ASSERT_LT(speed, 0.98);
  EXPECT_NEAR(step.step_ns(clocked(train)), m / speed + 4 * gap_ns, 2 * settled * m);
}

// So does one behind the last matmul, which those of the next step hide.
TEST(Clocked, AGatherThatTheNextStepHidesSlowsTheClock) {
  TwoRanks step;
  for (int at = 0; at < 4; ++at) step.matmul();
  for (TestRank& rank : step.ranks) rank.recorder().record_event(0, 0, {}), rank.recorder().wait_event(1, 0, WaitReason::data, {});
  step.gather(512 << 20, false);
  const base::Result<Resolved> out = resolve(step.programs(), clocked(train));
  ASSERT_TRUE(out.ok()) << out.error();
  const program::TimeSpan first = out.value().ranks[0].steps[1].ran[0];
  const double m = 4 * train * matmul_ns, speed = speed_beside(m, gather_ns(512 << 20));
  EXPECT_NEAR(static_cast<double>(first.end - first.start), m / 4 / speed, 2 * settled * matmul_ns);
}

// Of a collective all of its span counts, or its wait and as long as its bytes take alone.
TEST(Clocked, CollectivesCountByTheirSpansOrByTheirBytes) {
  TestRank rank(0);
  rank.op(0, 100, 0, OpKind::pointwise);
  rank.op(0, 100, 0, OpKind::pointwise);
  rank.collective(1, rank.group("all", {0, 1}), 0);
  const program::Program& program = rank.program();
  RankTimes times;
  times.steps.emplace_back().ran = {{0, 100}, {100, 200}, {150, 350}};   // 80 of 200 waited for, and 120 for what takes 90 alone
  times.wait_ns = {{0, 0, 80}};
  Costs costs;
  costs.op_ns = {100, 100, 90};
  costs.power = {0.6F, 0.6F, 0.7F};
  const auto of = [&](Drawn drawn) {
    Load sum;
    for (const Load& load : loads_of(costs, program, times, {0, 0, 400}, drawn)) {
      sum.communication_ns += load.communication_ns, sum.waiting_ns += load.waiting_ns, sum.memory_ns += load.memory_ns, sum.window_ns += load.window_ns;
    }
    return sum;
  };
  EXPECT_EQ(of(Drawn::its_span).communication_ns, 200);
  EXPECT_EQ(of(Drawn::its_span).waiting_ns, 80);
  EXPECT_EQ(of(Drawn::its_bytes).communication_ns, 80 + 90);
  EXPECT_EQ(of(Drawn::its_bytes).waiting_ns, 80);
  EXPECT_EQ(of(Drawn::its_bytes).memory_ns, 200);
  EXPECT_EQ(of(Drawn::its_bytes).window_ns, 400);
  costs.copied = {false, false, true};
  EXPECT_EQ(of(Drawn::its_span).communication_ns, 200) << "as measured";
  costs.drawn_ns = {0, 0, 60};
  EXPECT_EQ(of(Drawn::its_bytes).communication_ns, 80 + 60) << "copy engines take 90 for what kernels move in 60";
}

// What would be is asked of the same step: with nothing changed it is the run's, and what the network no longer takes is in part lost
// to a slower clock.
TEST(Clocked, AReplayIsTheRunsAndLosesAPartOfWhatAWaitCosts) {
  TwoRanks step;
  step.matmul();
  for (TestRank& rank : step.ranks) {
    OpDesc kernel("gelu_forward", OpKind::pointwise, base::DType::bf16);
    kernel.bytes_read = base::Bytes{4} << 30;   // about as long as the matmul
    rank.recorder().op(0, kernel, {});
  }
  step.gather(128 << 20, true);
  const CostModel model = clocked(train);
  base::Result<Replay> replay = Replay::modelled(step.programs(), model);
  ASSERT_TRUE(replay.ok()) << replay.error();
  const auto ns = [&](const Change& change) { return static_cast<double>(replay.value().resolve(change).value().step_ns()); };
  EXPECT_NEAR(ns({}), step.step_ns(model), settled * step.step_ns(model));
  Change same;
  same.same_clock = true;
  EXPECT_NEAR(ns(same), ns({}), settled * ns({})) << "its own clock is the one that it has";
  Change gone;
  gone.scale.communication = 0;
  same.scale.communication = 0;
  EXPECT_GT(ns(gone), 1.003 * ns(same));
}

// Of a program's ops, in the profile's clock: what waits for memory ran at the fastest in its train; so did a matmul that draws little, and
// one that draws all at the speed of the trains.
TEST(Clocked, AtSpeedOneEachKernelIsLongerByTheSpeedOfItsTrain) {
  TestRank rank(0);
  rank.matmul(0, 0);
  rank.recorder().op(0, OpDesc("small", OpKind::gemm, base::DType::bf16).size({8192, 8192, 8192, 1}).flops(1'000'000), {});
  rank.recorder().op(0, OpDesc("half", OpKind::gemm, base::DType::bf16).size({8192, 8192, 8192, 1}).flops(static_cast<std::int64_t>(0.8 * matmul_ns * 815e3)), {});
  rank.recorder().op(0, OpDesc("gelu_forward", OpKind::pointwise, base::DType::bf16), {});
  const CostModel model = clocked(train);
  const auto plain = model.costs(rank.program(), rank.recorder().catalogue()), at_one = model.costs_at_speed_one(rank.program(), rank.recorder().catalogue());
  const auto times = [&](std::size_t op) { return static_cast<double>(at_one->op_ns[op]) / static_cast<double>(plain->op_ns[op]); };
  EXPECT_NEAR(times(0), train, 1e-3);
  EXPECT_NEAR(times(1), 1.3, 1e-3) << "no faster than with power to spare";
  EXPECT_NEAR(times(2), train / std::sqrt(0.1 + 0.9 * 0.8), 1e-3) << "as fast as draws the limit";
  EXPECT_NEAR(times(3), std::pow(1.3, others_feel), 2e-3);
  EXPECT_EQ(plain->power.size(), 0u);
  EXPECT_EQ(clocked(0).costs_at_speed_one(rank.program(), rank.recorder().catalogue())->op_ns, plain->op_ns);
  Conditions slow;
  slow.slow_rank = 0;
  slow.kernel_ns = 5e6;
  const auto padded = CostModel(model.profile(), slow).costs_at_speed_one(rank.program(), rank.recorder().catalogue(), {}, false, 0);
  for (std::size_t op = 0; op < 3; ++op) {
    EXPECT_NEAR(static_cast<double>(padded->op_ns[op] - at_one->op_ns[op]), slow.kernel_ns + gap_ns, 2);
    EXPECT_NEAR(padded->power[op] * static_cast<float>(padded->op_ns[op]), at_one->power[op] * static_cast<float>(at_one->op_ns[op]), 1e3) << "the kernel behind it draws nothing";
  }
}

// Two matmuls of one rate, of which one moves half of what memory can meanwhile: it draws more, and its train ran at a lower clock.
TEST(Clocked, AMatmulDrawsByItsRateAndItsBytes) {
  Profile profile = clocked(train).profile();
  profile.power.multiplying = 0.7, profile.power.moving = 0.6;
  const CostModel model(profile);
  const auto half = [] { return OpDesc("half", OpKind::gemm, base::DType::bf16).size({8192, 8192, 8192, 1}).flops(static_cast<std::int64_t>(0.5 * matmul_ns * 815e3)); };
  OpDesc moves = half();
  moves.bytes_read = static_cast<base::Bytes>(0.5 * matmul_ns * profile.device.memory_bytes_per_ns);
  TestRank rank(0);
  rank.recorder().op(0, half(), {});
  rank.recorder().op(0, moves, {});
  const auto plain = model.costs(rank.program(), rank.recorder().catalogue()), at_one = model.costs_at_speed_one(rank.program(), rank.recorder().catalogue());
  EXPECT_NEAR(at_one->power[0], 0.1 + 0.7 * 0.5, 1e-3);
  EXPECT_NEAR(at_one->power[1], 0.1 + 0.7 * 0.5 + 0.6 * 0.5, 1e-3);
  for (const std::size_t op : {0, 1}) {
    const double longer = static_cast<double>(at_one->op_ns[op]) / static_cast<double>(plain->op_ns[op]);
    EXPECT_NEAR(longer, std::min(1.3, train / std::sqrt(static_cast<double>(at_one->power[op]))), 1e-3) << op;
  }
  EXPECT_LT(train / std::sqrt(static_cast<double>(at_one->power[1])), 1.3);
  EXPECT_EQ(profile_from_json(to_json(profile), "again").value(), profile);
}

// A later rank's first ops may begin before the step before has ended on the others: they are no part of this step's window.
TEST(Clocked, WhatBeginsBeforeTheStepIsNotCounted) {
  TestRank rank(0);
  for (int at = 0; at < 3; ++at) rank.op(0, 100, 0, OpKind::pointwise);
  RankTimes times;
  times.steps.emplace_back().ran = {{-150, -50}, {-50, 50}, {50, 150}};
  times.wait_ns = {{0, 0, 0}};
  Costs costs;
  costs.op_ns = {100, 100, 100};
  costs.power = {0.6F, 0.6F, 0.6F};
  double window = 0;
  for (const Load& load : loads_of(costs, rank.program(), times, {0, 0, 150}, Drawn::its_span)) window += load.window_ns;
  EXPECT_EQ(window, 150);
}

TEST(Clocked, AProfileKeepsTheSpeedOfItsTrains) {
  const Profile profile = clocked(train).profile();
  const base::Result<Profile> again = profile_from_json(to_json(profile), "again");
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_EQ(again.value(), profile);
  EXPECT_EQ(again.value().power.train, train);
  EXPECT_TRUE(clocked(train).has_clock());
  EXPECT_FALSE(clocked(0).has_clock());
}

}  // namespace
}  // namespace shardbook::simulate
