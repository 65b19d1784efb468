// Of runs that were measured with their cause and, in the same sitting, without: does why say what its absence gained?
#include <functional>
#include <utility>

#include "tests/cause/runs.hpp"

namespace shardbook::cause {
namespace {

// The same run without its cause took so long, in the same sitting: medians of untraced steps (tests/data/cause/measured).
struct Planted {
  const std::string* folder;
  const char* name;
  Regime regime;
  const char* part;      // of what the first cause is
  double without_ms;
};

class Measured : public ::testing::TestWithParam<Planted> {};

TEST_P(Measured, RunsNameWhatWasPlantedAndWhatItsAbsenceGains) {
  const PlantedRun run = captured_run(GetParam().name, *GetParam().folder);
  double said = 0;
  for (int step : {50, 51}) {
    const Why why = why_or_fail(run, {step, {}});
    EXPECT_EQ(why.regime, GetParam().regime) << headline(why);
    EXPECT_NE(why.causes.front().what.find(GetParam().part), std::string::npos) << headline(why);
    EXPECT_NE(headline(why).find(GetParam().part), std::string::npos) << headline(why);
    said += static_cast<double>(why.causes.front().gain_ns) / 2;
  }
  const double really = run.recorded.info->results.at("step_ns").get<double>() - 1e6 * GetParam().without_ms;
  EXPECT_NEAR(said, really, 0.15 * really);
}

// Of a run whose traced steps come long after the GPUs found their clock: what is said of the four in the mean is held to what
// untraced and traced steps took less without the cause.
void expect_by_both_measures(const PlantedRun& run, double untraced_without_ms, double traced_without_ms, const std::function<void(const Why&)>& expect) {
  double said = 0;
  for (int step : {100, 101, 102, 103}) {
    const Why why = why_or_fail(run, {step, {}});
    expect(why);
    said += static_cast<double>(why.causes.front().gain_ns) / 4;
  }
  for (const auto& [key, without_ms] : {std::pair{"near_traced_ns", untraced_without_ms}, {"traced_step_ns", traced_without_ms}}) {
    const double gained = run.recorded.info->results.at(key).get<double>() - 1e6 * without_ms;
    EXPECT_NEAR(said, gained, 0.15 * gained) << key;
  }
}

TEST(MeasuredRuns, PrefetchGivesWhatTheRunWithItTookByBothMeasures) {
  expect_by_both_measures(captured_run("gpt-1.3b-fsdp2-no-prefetch", measured), 84.195, 84.934,
                          [](const Why& why) { EXPECT_NE(why.causes.front().remedy.find("--prefetch 1"), std::string::npos) << headline(why); });
}

// Four ranks wait for each other a little, and all for one, which is named in every step.
TEST(MeasuredRuns, ASlowRankOfFourIsNamedInEveryStepWithWhatItsAbsenceGains) {
  expect_by_both_measures(captured_run("gpt-1.3b-fsdp4-slow-rank", measured), 147.55, 150.42, [](const Why& why) {
    EXPECT_TRUE(why.has_problem) << headline(why);
    EXPECT_NE(headline(why).find("all wait for rank 2, whose kernels take 1."), std::string::npos) << headline(why);
  });
}

INSTANTIATE_TEST_SUITE_P(Runs, Measured,
                         ::testing::Values(Planted{&captured, "gpt-1.3b-tp2", Regime::bandwidth, "100 all-reduces of tp stand between kernels", 72.21},
                                           Planted{&measured, "gpt-124m-tp2", Regime::bandwidth, "52 all-reduces of tp stand between kernels", 12.22},
                                           Planted{&measured, "gpt-1.3b-tp4", Regime::bandwidth, "100 all-reduces of tp stand between kernels", 38.98},
                                           Planted{&measured, "gpt-1.3b-tp2-fsdp2", Regime::bandwidth, "100 all-reduces of tp stand between kernels", 76.01},
                                           Planted{&measured, "gpt-1.3b-fsdp2-slow-rank", Regime::rank, "all wait for rank 1", 82.68}));

}  // namespace
}  // namespace shardbook::cause
