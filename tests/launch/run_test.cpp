// From a config to a run on disk: what is promised of every run.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "engine/base/json.hpp"
#include "engine/launch/launch.hpp"
#include "engine/metrics/exposure.hpp"
#include "engine/metrics/partition.hpp"
#include "engine/timeline/reader.hpp"
#include "engine/timeline/rules.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/small_run.hpp"

namespace shardbook::launch {
namespace {

namespace fs = std::filesystem;
using tests::Folder;

config::RunConfig small_run(const tests::Asked& asked) {
  return tests::config_of(tests::with({{"device", "host"}, {"layers", "2"}, {"width", "32"}, {"heads", "4"}, {"sequence", "16"}, {"sequences", "8"}, {"steps", "6"}}, asked));
}

Outcome run_or_fail(const config::RunConfig& config, const LaunchOptions& options) {
  base::Result<Outcome> outcome = run(config, options);
  EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error());
  if (outcome.ok() && options.write_run) {
    EXPECT_EQ(tests::problem_of_run(outcome.value().folder, config.ranks), "");
  }
  return outcome.ok() ? std::move(outcome).value() : Outcome{};
}

TEST(Run, LeavesFilesThatKeepEveryRuleAndReadBackAlike) {
  const Folder folder;
  const config::RunConfig config = small_run({{"tp", "2"}, {"fsdp", "2"}, {"out", folder.run()}});
  const Outcome outcome = run_or_fail(config, {});
  for (int rank = 0; rank < 4; ++rank) {
    const std::string name = "rank" + std::to_string(rank);
    EXPECT_TRUE(fs::exists(fs::path(folder.run()) / (name + ".program")));
    EXPECT_EQ(timeline::violations((fs::path(folder.run()) / (name + ".json")).string()), std::vector<std::string>{});
  }
  const base::Result<timeline::Timeline> read = timeline::read(folder.run());
  ASSERT_TRUE(read.ok()) << read.error();
  for (int rank = 0; rank < 4; ++rank) {
    const metrics::Partition kept = metrics::partition(outcome.timeline, rank, metrics::steps_window(outcome.timeline, rank));
    const metrics::Partition again = metrics::partition(read.value(), rank, metrics::steps_window(read.value(), rank));
    EXPECT_GT(kept.compute_ns, 0);
    EXPECT_EQ(kept.compute_ns + kept.exposed_communication_ns + kept.exposed_memory_ns + kept.idle_ns, kept.window.length());
    EXPECT_EQ(again.exposed_communication_ns, kept.exposed_communication_ns);
    EXPECT_EQ(again.idle_ns, kept.idle_ns);
  }
  EXPECT_EQ(metrics::exposure_sentence(read.value(), metrics::common_window(read.value())),
            metrics::exposure_sentence(outcome.timeline, metrics::common_window(outcome.timeline)));
}

TEST(Run, IsRepeatedBitForBitByTheConfigThatItStores) {
  const Folder folder;
  const config::RunConfig config = small_run({{"tp", "2"}, {"fsdp", "2"}, {"out", folder.run()}});
  const Outcome first = run_or_fail(config, {});
  config::RunConfig stored;
  ASSERT_TRUE(config::read_json(stored, base::json_text(first.info.config), "run.json").ok());
  const base::Result<config::RunConfig> valid = config::validate(stored, 0);
  ASSERT_TRUE(valid.ok()) << valid.error();
  LaunchOptions in_memory;
  in_memory.write_run = false;
  const Outcome again = run_or_fail(valid.value(), in_memory);
  ASSERT_EQ(again.results.size(), first.results.size());
  for (std::size_t step = 0; step < first.results.size(); ++step) EXPECT_EQ(again.results[step].loss, first.results[step].loss);
  EXPECT_EQ(again.program_hashes, first.program_hashes);
}

TEST(Run, TellsTheTimeByTheClockThatWasAsked) {
  LaunchOptions in_memory;
  in_memory.write_run = false;
  const Outcome wall = run_or_fail(small_run({{"tp", "2"}, {"clock", "wall"}}), in_memory);
  EXPECT_EQ(wall.timeline.ranks.at(0).clock, timeline::Clock::wall);
  EXPECT_GT(wall.speed.step_ns, 0);
  const Outcome meta = run_or_fail(small_run({{"tp", "2"}, {"device", "meta"}}), in_memory);
  const Outcome modelled = run_or_fail(small_run({{"tp", "2"}}), in_memory);
  EXPECT_EQ(modelled.timeline.ranks.at(0).clock, timeline::Clock::modelled);
  EXPECT_EQ(modelled.timeline.ranks.at(0).profile, "h200x8");
  EXPECT_EQ(meta.program_hashes, modelled.program_hashes);
  EXPECT_EQ(meta.speed.step_ns, modelled.speed.step_ns) << "the model knows the program and nothing else";
  EXPECT_TRUE(meta.results.empty());
}

TEST(Run, ModelsTheTimelineOfTracedStepsAndTheSpeedOfOthers) {
  LaunchOptions in_memory;
  in_memory.write_run = false;
  const Outcome outcome = run_or_fail(small_run({{"tp", "2"}, {"fsdp", "2"}, {"trace-steps", "2:5"}}), in_memory);
  const Speed& speed = outcome.speed;
  EXPECT_GT(speed.traced_step_ns, speed.step_ns);
  EXPECT_DOUBLE_EQ(speed.tracing_cost, speed.traced_step_ns / speed.step_ns - 1);
  EXPECT_EQ(outcome.info.results.at("traced_step_ns"), speed.traced_step_ns);
  EXPECT_EQ(outcome.info.results.at("step_ns"), speed.step_ns);
  // As on a GPU, a traced step stands alone: its host begins when its rank's device has run the step before. The
  // resolver says of the last one how long it is.
  std::map<base::Rank, const timeline::Step*> before;
  double last_end = 0, last_but_one_end = 0;
  for (const timeline::Step& step : outcome.timeline.steps) {
    if (const timeline::Step*& previous = before[step.rank]; previous != nullptr) {
      EXPECT_GE(step.host_start, previous->end) << "rank " << step.rank << ", step " << step.number;
    }
    before[step.rank] = &step;
    if (step.number == 3) last_but_one_end = std::max(last_but_one_end, static_cast<double>(step.end));
    if (step.number == 4) last_end = std::max(last_end, static_cast<double>(step.end));
  }
  EXPECT_DOUBLE_EQ(last_end - last_but_one_end, speed.traced_step_ns);
}

// Of a step that one call launches the timeline shows one that was issued call by call: what is exposed of it is told apart.
TEST(Run, TellsWhatIsExposedOfAStepThatAGraphLaunches) {
  LaunchOptions in_memory;
  in_memory.write_run = false;
  const Outcome graph = run_or_fail(small_run({{"tp", "2"}, {"set", "host.graph=on"}}), in_memory);
  const double share = graph.speed.exposed_as_graph;
  EXPECT_GT(share, 0);
  EXPECT_LT(share, 1);
  EXPECT_EQ(graph.info.results.at("graph").at("exposed_share"), share);
  const Outcome ideal = run_or_fail(small_run({{"tp", "2"}, {"set", "host.graph=on"}, {"set", "network=ideal"}}), in_memory);
  EXPECT_LT(ideal.speed.exposed_as_graph, 0.001) << "a network that takes no time leaves nothing exposed";
  // Without its collectives the step cannot gain more than what was exposed of them, and no more is exposed than they take, which they
  // do in the timeline's last step, too.
  const double exposed_ns = share * graph.speed.step_ns;
  EXPECT_LE(graph.speed.step_ns - ideal.speed.step_ns, exposed_ns);
  const timeline::Step& last = graph.timeline.steps.back();
  const metrics::Partition traced = metrics::partition(graph.timeline, last.rank, *metrics::step_window(graph.timeline, last.rank, last.number));
  EXPECT_LT(exposed_ns, static_cast<double>(traced.communication_ns)) << "backward hides some";
  EXPECT_EQ(run_or_fail(small_run({{"tp", "2"}}), in_memory).speed.exposed_as_graph, -1);
}

TEST(Run, CountsStepsFromZeroInItsProgressAsInItsRecord) {
  Progress progress;
  progress.result.step = 40;
  progress.clock = config::Clock::wall;
  EXPECT_EQ(progress_text(progress).find("step 40 · loss"), 0u) << progress_text(progress);
  std::vector<std::int64_t> told;
  LaunchOptions options;
  options.write_run = false;
  options.progress = [&](const Progress& now) { told.push_back(now.result.step); };
  run_or_fail(small_run({{"steps", "8"}, {"progress", "3"}}), options);
  EXPECT_EQ(told, (std::vector<std::int64_t>{0, 3, 6, 7})) << "every third, and the last";
}

// 65,536 ranks are issued one after the other for minutes: whoever waits is told how far it is.
TEST(Run, OnMetaTellsOfEachRankThatHasBeenIssued) {
  std::vector<int> told;
  LaunchOptions options;
  options.write_run = false;
  options.issued = [&](int ranks) { told.push_back(ranks); };
  run_or_fail(small_run({{"device", "meta"}, {"fsdp", "4"}}), options);
  EXPECT_EQ(told, (std::vector<int>{1, 2, 3, 4}));
}

// No file may grow beyond so many bytes while this lives, as on a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small = before_;
    small.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_{};
};

TEST(Run, LeavesNoFolderBehindWhereTheDiskIsFull) {
  const Folder folder;
  const std::string out = (fs::path(folder.run()) / "runs" / "one").string();
  const config::RunConfig config = small_run({{"device", "meta"}, {"out", out}});
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{64}}) {   // full before the first file, and behind the probe
    base::Result<Outcome> outcome = base::Error{"not run"};
    {
      const FullDisk full(bytes);
      outcome = run(config, {});
    }
    ASSERT_FALSE(outcome.ok()) << bytes;
    EXPECT_NE(outcome.error().find(out), std::string::npos) << outcome.error();
    EXPECT_FALSE(fs::exists(folder.run())) << "with " << bytes << " bytes: " << outcome.error();
  }
}

TEST(Run, KeepsAFolderThatWasThereWhenItFails) {
  const Folder folder;
  fs::create_directories(folder.run());
  const config::RunConfig config = small_run({{"device", "meta"}, {"out", folder.run()}});
  base::Result<Outcome> outcome = base::Error{"not run"};
  {
    const FullDisk full(64);
    outcome = run(config, {});
  }
  ASSERT_FALSE(outcome.ok());
  EXPECT_TRUE(fs::is_empty(folder.run()));
}

TEST(Run, EndsAtTheSameStepEverywhereWhenInterruptedAndOpens) {
  const Folder folder;
  LaunchOptions options;
  options.progress = [](const Progress& progress) {
    if (progress.result.step >= 20) std::raise(SIGINT);
  };
  const config::RunConfig config = small_run({{"tp", "2"}, {"fsdp", "2"}, {"steps", "100000"}, {"progress", "5"}, {"out", folder.run()}});
  const Outcome outcome = run_or_fail(config, options);
  EXPECT_TRUE(outcome.stopped_early);
  EXPECT_LT(outcome.results.size(), 200u);
  const base::Result<timeline::Timeline> read = timeline::read(folder.run());
  ASSERT_TRUE(read.ok()) << read.error();
  EXPECT_EQ(read.value().ranks.size(), 4u);
  ASSERT_EQ(read.value().banners.size(), 1u) << "who opens it is told that it was stopped";
  EXPECT_EQ(read.value().banners[0], base::text(folder.run(), " is of a run that was stopped after ", outcome.results.size(), " of 100000 steps"));
}

TEST(Run, RefusesAFolderThatCannotBeWrittenBeforeItTrains) {
  const Folder folder;
  std::ofstream(folder.run()) << "a file, no folder";
  bool trained = false;
  LaunchOptions options;
  options.progress = [&](const Progress&) { trained = true; };
  const base::Result<Outcome> outcome = run(small_run({{"out", (fs::path(folder.run()) / "run").string()}}), options);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().find("cannot be written"), std::string::npos) << outcome.error();
  EXPECT_FALSE(trained);
}

TEST(Run, OnTheHostRefusesToBeOneOfSeveralProcesses) {
  const std::vector<std::pair<const char*, const char*>> torchrun{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"},
      {"LOCAL_WORLD_SIZE", "2"}, {"GROUP_RANK", "0"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29500"}, {"TORCHELASTIC_RUN_ID", "x"}};
  for (const auto& [name, value] : torchrun) setenv(name, value, 1);
  LaunchOptions in_memory;
  in_memory.write_run = false;
  const base::Result<Outcome> outcome = run(small_run({}), in_memory);
  for (const auto& [name, value] : torchrun) unsetenv(name);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().find("torchrun"), std::string::npos) << outcome.error();
}

}  // namespace
}  // namespace shardbook::launch
