// How fast a run was: the peak that a utilisation is of, and what is counted.
#include <gtest/gtest.h>

#include "engine/launch/speed.hpp"
#include "tests/support/small_run.hpp"

namespace shardbook::launch {
namespace {

TEST(PeakFlops, IsThatOfTheDataSheetAndNoneWhereItIsNotKnown) {
  EXPECT_EQ(peak_flops("NVIDIA H200"), 989.4e12);
  EXPECT_EQ(peak_flops("NVIDIA H100 80GB HBM3"), 989.4e12);
  EXPECT_EQ(peak_flops("NVIDIA H100 NVL"), 835e12);
  EXPECT_EQ(peak_flops("NVIDIA A100-SXM4-80GB"), 312e12);
  EXPECT_EQ(peak_flops("NVIDIA L40S"), 362e12);
  EXPECT_EQ(peak_flops("NVIDIA L4"), 121e12);
  EXPECT_EQ(peak_flops("NVIDIA L40"), 0) << "an L40 is no L4";
  EXPECT_EQ(peak_flops("NVIDIA GB200"), 2500e12);
  EXPECT_EQ(peak_flops("NVIDIA X999"), 0);
}

config::RunConfig on_gpus() {
  config::RunConfig config;
  config.device = config::DeviceKind::cuda;
  config.clock = config::Clock::measured;
  config.ranks = 1;
  config.sequences = 16;
  return config;
}

RankOutcome steady(const char* device, base::Nanoseconds step) {
  RankOutcome rank;
  rank.device = device;
  for (int i = 0; i < 8; ++i) {
    rank.step_done.push_back(i * step);
    rank.step_timed.push_back(false);
  }
  return rank;
}

TEST(Utilisation, IsTheFlopsOfTheTokensOverThoseOfTheGpus) {
  config::RunConfig config;
  config.device = config::DeviceKind::cuda;
  config.clock = config::Clock::measured;
  config.ranks = 2;
  const Speed speed = speed_of(config, steady("NVIDIA H200", 1'000'000), 0, 0);
  EXPECT_EQ(speed.step_ns, 1e6);
  EXPECT_DOUBLE_EQ(speed.mfu, static_cast<double>(config.global_tokens()) * config::flops_per_token(config.model) / 1e-3 / (2 * 989.4e12));
  EXPECT_EQ(speed_of(config, steady("NVIDIA X999", 1'000'000), 0, 0).mfu, -1) << "of what peak?";
}

// Reading the marks of a traced step, 40 units here, is between it and the next, and belongs to neither.
TEST(Tracing, CostsWhatATracedStepTakesLongerAndNotWhatIsDoneAfterIt) {
  RankOutcome rank;
  rank.device = "NVIDIA H200";
  rank.step_done = {100, 200, 300, 400, 542, 684, 800, 900, 1000};
  rank.step_timed = {0, 0, 0, 0, 1, 1, 0, 0, 0};
  rank.traced_took = {102, 102};
  const Speed speed = speed_of(on_gpus(), rank, 0, 0);
  EXPECT_EQ(speed.step_ns, 100);
  EXPECT_EQ(speed.steps_counted, 3) << "steps 2, 3 and 7: neither the first two, the last, nor what follows a traced one";
  EXPECT_EQ(speed.traced_step_ns, 102);
  EXPECT_NEAR(speed.tracing_cost, 0.02, 1e-12);
}

// A GPU that finds its clock: 40 quick steps, 20 slow ones round the traced one.
TEST(Tracing, CostsWhatATracedStepTakesLongerThanItsNeighbours) {
  RankOutcome rank;
  rank.device = "NVIDIA H200";
  base::Nanoseconds now = 0;
  for (int step = 0; step < 61; ++step) {
    now += step < 40 ? 80 : 100;
    rank.step_done.push_back(now);
    rank.step_timed.push_back(step == 50);
  }
  rank.traced_took = {101};
  const Speed speed = speed_of(on_gpus(), rank, 0, 0);
  EXPECT_EQ(speed.step_ns, 80);
  EXPECT_EQ(speed.near_traced_ns, 100);
  EXPECT_NEAR(speed.tracing_cost, 0.01, 1e-12);
}

TEST(Tracing, AStepIsFromItsFirstCallToTheEndOfItsLastOp) {
  program::StepTimes times;
  times.window = {0, 90};
  times.issued = {{10, 12}, {12, 15}};
  times.ran = {{11, 70}, {14, 60}};
  EXPECT_EQ(took_alone(times), 60);
  EXPECT_EQ(took_alone({}), 0);
}

// The linears of a step issue what is counted: nothing twice, and the head once.
TEST(Utilisation, CountsTheMatmulsThatAStepIssues) {
  for (const char* model : {"gpt-124m", "gpt-1.3b", "llama-tutor"}) {
    const config::RunConfig config = tests::config_of({{"device", "meta"}, {"model", model}, {"data", "synthetic"}, {"attention", "flash"}, {"layers", "2"}, {"sequences", "2"}, {"steps", "1"}});
    LaunchOptions quiet;
    quiet.write_run = false;
    const base::Result<Outcome> run = launch::run(config, quiet);
    ASSERT_TRUE(run.ok()) << run.error();
    const program::Record& record = run.value().records.front();
    double flops = 0;
    for (const program::Op& op : record.programs.at(record.steps.back().program)->ops) {
      if (op.desc.kind == program::OpKind::gemm) flops += static_cast<double>(op.desc.flop_count);
    }
    EXPECT_EQ(flops, 6.0 * static_cast<double>(config::matmul_parameter_count(config.model) * config.global_tokens())) << model;
  }
}

using How = train::Trainer::How;

// Ten steps that end after so many microseconds each; step 5 is traced.
RankOutcome ten_steps(const std::vector<base::Nanoseconds>& took_us, const std::vector<How>& how) {
  RankOutcome rank;
  base::Nanoseconds now = 0;
  for (std::size_t step = 0; step < took_us.size(); ++step) {
    now += 1000 * took_us[step];
    rank.step_done.push_back(now);
    rank.step_timed.push_back(step == 5);
    if (step == 5) rank.traced_took.push_back(1000 * took_us[step]);
  }
  rank.step_how = how;
  rank.graph = {210, 1000};
  return rank;
}

// The capture (steps 1 and 2), the traced step, the one behind it and the last are others.
TEST(Speed, OfStepsThatAreLaunchedByOneCallIsTheirsAlone) {
  const std::vector<How> how = {How::one_by_one, How::captured, How::captured, How::replayed, How::replayed, How::one_by_one, How::replayed, How::replayed, How::replayed, How::replayed};
  const Speed speed = speed_of(on_gpus(), ten_steps({5000, 9000, 9000, 800, 700, 2000, 900, 702, 701, 10}, how), 0, 0);
  EXPECT_TRUE(speed.as_graph);
  EXPECT_EQ(speed.replayed, 6);
  EXPECT_EQ(speed.graph.nodes, 210u);
  EXPECT_EQ(speed.steps_counted, 3);
  EXPECT_EQ(speed.step_ns, 701'000);
  EXPECT_EQ(speed.step_max_ns, 702'000);
  EXPECT_EQ(speed.traced_step_ns, 2'000'000);
}

TEST(Speed, OfStepsThatCameOneByOneIsOfAllThatWereNotTraced) {
  const Speed speed = speed_of(on_gpus(), ten_steps({5000, 900, 900, 800, 700, 2000, 900, 702, 701, 10}, std::vector<How>(10, How::one_by_one)), 0, 0);
  EXPECT_FALSE(speed.as_graph);
  EXPECT_EQ(speed.replayed, 0);
  EXPECT_EQ(speed.steps_counted, 5);
  EXPECT_EQ(speed.step_ns, 702'000);
}

}  // namespace
}  // namespace shardbook::launch
