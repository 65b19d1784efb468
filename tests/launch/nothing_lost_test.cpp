// What a run has recorded is there, whatever ends it.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "engine/launch/journal.hpp"
#include "engine/launch/launch.hpp"
#include "engine/launch/recover.hpp"
#include "engine/launch/run_folder.hpp"
#include "engine/launch/wire.hpp"
#include "engine/timeline/reader.hpp"
#include "tests/support/small_run.hpp"

namespace shardbook::launch {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using tests::Folder;

config::RunConfig small_into(const std::string& out, const tests::Asked& asked) {
  return tests::config_of(tests::with({{"device", "host"}, {"layers", "1"}, {"width", "16"}, {"heads", "2"}, {"sequence", "8"}, {"sequences", "4"}, {"fsdp", "2"}, {"out", out}}, asked));
}

bool has_banner(const timeline::Timeline& timeline, const std::string& words) {
  for (const std::string& banner : timeline.banners) {
    if (banner.find(words) != std::string::npos) return true;
  }
  return false;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A child that trains for ever, and is stopped in the middle of it: it has traced steps 2 and 3, and gone on.
pid_t train_threads_in_child(const std::string& out) {
  const config::RunConfig config = small_into(out, {{"steps", "1000000"}, {"trace-steps", "2:4"}});
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};   // SIGQUIT would leave one
    ::setrlimit(RLIMIT_CORE, &no_core);
    (void)run(config, {});
    _exit(0);
  }
  const auto results = [&] {
    const auto remains = read_journal((fs::path(out) / "rank1.partial").string());
    return remains ? remains.value().outcome.results.size() : 0;
  };
  for (int tries = 0; tries < 1000 && results() < 8; ++tries) std::this_thread::sleep_for(20ms);
  EXPECT_GE(results(), 8u);
  return child;
}

class EndedRun : public ::testing::TestWithParam<int> {};

// By a signal that leaves it no last word.
TEST_P(EndedRun, IsMadeWholeFromWhatItsRanksRecorded) {
  const Folder folder;
  const pid_t child = train_threads_in_child(folder.run());

  // While it lives nobody takes its folder.
  const auto too_early = recover(folder.run());
  EXPECT_FALSE(too_early.ok());
  if (!too_early.ok()) {
    EXPECT_NE(too_early.error().find("has not ended"), std::string::npos) << too_early.error();
  }
  const auto same_folder = run(small_into(folder.run(), {{"steps", "1"}}), {});
  EXPECT_FALSE(same_folder.ok());

  int status = 0;
  kill(child, GetParam());
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == GetParam()) << status;
  EXPECT_TRUE(is_unfinished(folder.run()));
  const auto outcome = recover(folder.run());
  ASSERT_TRUE(outcome.ok()) << outcome.error();
  EXPECT_GE(outcome.value().results.size(), 8u);
  EXPECT_FALSE(is_unfinished(folder.run()));

  // The same numbers as of a run that nobody killed, as far as it came.
  LaunchOptions in_memory;
  in_memory.write_run = false;
  const auto whole = run(small_into("", {{"steps", "8"}, {"trace-steps", "2:4"}}), in_memory);
  ASSERT_TRUE(whole.ok()) << whole.error();
  EXPECT_EQ(outcome.value().program_hashes, whole.value().program_hashes);
  EXPECT_EQ(outcome.value().timeline.spans(), whole.value().timeline.spans());
  EXPECT_EQ(outcome.value().speed.step_ns, whole.value().speed.step_ns);

  const auto read = timeline::read(folder.run());
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read.value().ranks.size(), 2u);
  EXPECT_EQ(read.value().steps.size(), 4u) << "two steps of two ranks";
  EXPECT_TRUE(has_banner(read.value(), "it ended without a word (killed?)"));
}

INSTANTIATE_TEST_SUITE_P(Signals, EndedRun, ::testing::Values(SIGKILL, SIGQUIT));

TEST(NothingLost, ARankThatFailsLeavesTheStepsOfAll) {
  const Folder folder;
  LaunchOptions options;
  options.progress = [](const Progress& progress) {
    if (progress.result.step == 6) throw base::Failure("no memory for layer 7");
  };
  const auto outcome = run(small_into(folder.run(), {{"steps", "50"}, {"progress", "1"}, {"trace-steps", "2:4"}}), options);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error(), "rank 0: no memory for layer 7; what was recorded by then is in " + folder.run());
  const auto read = timeline::read(folder.run());
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read.value().steps.size(), 4u);
  EXPECT_TRUE(has_banner(read.value(), "rank 0: no memory for layer 7"));
  EXPECT_FALSE(fs::exists(fs::path(folder.run()) / "rank0.partial"));
}

TEST(NothingLost, AFirstStepIsKeptAndAFolderWithoutOneIsNot) {
  const Folder folder;
  LaunchOptions options;
  options.progress = [](const Progress&) { throw base::Failure("at once"); };
  (void)run(small_into(folder.run(), {{"steps", "50"}, {"progress", "1"}, {"trace-steps", "2:4"}}), options);
  // One step has been recorded by the time that it is told of: that much is kept.
  EXPECT_TRUE(fs::exists(fs::path(folder.run()) / "run.json"));
  { const base::Result<RunFolder> taken = RunFolder::make(small_into(folder / "other", {}), {}); EXPECT_TRUE(taken.ok()); }
  EXPECT_FALSE(fs::exists(folder.path() / "other")) << "taken, and given back empty";
}

TEST(NotFinite, ALossOrNormIsNamedAndTheRunIsWhole) {
  const Folder folder;
  const auto outcome = run(small_into(folder.run(), {{"lr", "999"}, {"min-lr", "999"}, {"clip", "0"}, {"eps", "1e-30"},
                                                {"warmup-steps", "0"}, {"steps", "200"}, {"trace-steps", "0:1"}}), {});
  ASSERT_TRUE(outcome.ok()) << outcome.error();
  const std::string& failure = outcome.value().failure;
  EXPECT_EQ(failure.find("rank 0: the "), 0u) << failure;
  EXPECT_TRUE(failure.find(" is inf, on all ranks") != std::string::npos || failure.find("nan, on all ranks") != std::string::npos) << failure;
  EXPECT_TRUE(outcome.value().stopped_early);
  EXPECT_LT(outcome.value().results.size(), 200u);
  const auto read = timeline::read(folder.run());
  ASSERT_TRUE(read) << read.error();
  EXPECT_TRUE(has_banner(read.value(), failure));
  EXPECT_EQ(read.value().steps.size(), 2u);
}

TEST(NotFinite, NumbersTravelBetweenRanksAsTheyAre) {
  RankOutcome outcome;
  outcome.device = "a device";
  outcome.results = {{0, 5.5, INFINITY, 1e-3}, {1, NAN, -0.0, 1e-4}};
  outcome.step_done = {7, 8};
  outcome.step_timed = {0, 1};
  outcome.traced_took = {5};
  outcome.step_how = {train::Trainer::How::captured, train::Trainer::How::replayed};
  outcome.graph = {210, 1'050'000};
  outcome.not_finite = "the loss of step 1 is nan";
  outcome.record = std::string("\0\n\xff", 3);
  const RankOutcome back = from_bytes(to_bytes(outcome));
  ASSERT_EQ(back.results.size(), 2u);
  EXPECT_EQ(back.results[0].gradient_norm, INFINITY);
  EXPECT_TRUE(std::isnan(back.results[1].loss));
  EXPECT_TRUE(std::signbit(back.results[1].gradient_norm));
  EXPECT_EQ(back.step_done, outcome.step_done);
  EXPECT_EQ(back.step_timed, outcome.step_timed);
  EXPECT_EQ(back.traced_took, outcome.traced_took);
  EXPECT_EQ(back.step_how, outcome.step_how);
  EXPECT_EQ(back.graph.nodes, 210u);
  EXPECT_EQ(back.graph.made_in, 1'050'000);
  EXPECT_EQ(back.not_finite, outcome.not_finite);
  EXPECT_EQ(back.record, outcome.record);
  const std::string bytes = to_bytes(outcome);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_THROW(from_bytes(std::string_view(bytes).substr(0, cut)), base::Failure) << cut;
}

TEST(RunFolder, ThatHoldsAnythingIsRefused) {
  const Folder folder;
  fs::create_directories(folder.run());
  std::ofstream(fs::path(folder.run()) / "notes.txt") << "mine";
  const auto outcome = run(small_into(folder.run(), {{"device", "meta"}}), {});
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().find("holds something already"), std::string::npos) << outcome.error();
  EXPECT_EQ(content_of(fs::path(folder.run()) / "notes.txt"), "mine");
}

TEST(RunFolder, OfManyThatWantOneAtOnceOneGetsIt) {
  const Folder folder;
  const config::RunConfig config = small_into(folder.run(), {});
  for (int round = 0; round < 20; ++round) {
    std::vector<RunFolder> made(8);
    std::vector<std::thread> threads;
    for (RunFolder& one : made) {
      threads.emplace_back([&] {
        base::Result<RunFolder> result = RunFolder::make(config, {});
        if (result) one = std::move(result).value();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::count_if(made.begin(), made.end(), [](const RunFolder& one) { return !one.path().empty(); }), 1);
  }
}

TEST(RunFolder, IsWhereThePathLeadsWithoutItsDetours) {
  const Folder folder;
  const std::string out = (folder.path() / "x" / ".." / ".." / folder.path().filename() / "run").string();
  const auto outcome = run(small_into(out, {{"device", "meta"}}), {});
  ASSERT_TRUE(outcome.ok()) << outcome.error();
  EXPECT_TRUE(fs::exists(fs::path(folder.run()) / "run.json"));
  EXPECT_FALSE(fs::exists(folder.path() / "x"));
}

TEST(RunFolder, GivesItsIdToEveryFile) {
  const Folder folder;
  const auto outcome = run(small_into(folder.run(), {{"device", "meta"}}), {});
  ASSERT_TRUE(outcome.ok()) << outcome.error();
  const std::string id = outcome.value().info.id;
  EXPECT_EQ(id.size(), 32u);
  for (const char* name : {"run.json", "rank0.json", "rank1.json"}) {
    EXPECT_NE(content_of(fs::path(folder.run()) / name).find("\"" + id + "\""), std::string::npos) << name;
  }
}

// A journal of three results, and where each chunk of it ends.
TEST(Journal, IsReadUpToItsLastWholeChunkWhereverItIsCut) {
  const Folder folder;
  {
    Journal journal = std::move(Journal::begin(folder.path().string(), "id", 3, 4)).value();
    RankOutcome head;
    head.device = "a device";
    journal.head(head, "loopback");
    for (int step = 0; step < 3; ++step) journal.result({step, 5.0 - step, NAN, 1e-3}, 100 + step);
  }
  const std::string path = folder / "rank3.partial";
  const std::string whole = content_of(path);
  EXPECT_EQ(journals(folder.path().string()), std::vector<std::string>{path});
  std::size_t most = 0;
  for (std::size_t cut = 8; cut <= whole.size(); ++cut) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, cut);
    const auto remains = read_journal(path);
    ASSERT_TRUE(remains.ok()) << cut;
    const std::size_t results = remains.value().outcome.results.size();
    EXPECT_GE(results, most) << cut;
    most = results;
    for (std::size_t step = 0; step < results; ++step) EXPECT_EQ(remains.value().outcome.results[step].loss, 5.0 - static_cast<double>(step));
  }
  EXPECT_EQ(most, 3u);
  EXPECT_EQ(read_journal(path).value().rank, 3);

  // A byte that is another ends it there: nothing wrong is read.
  for (std::size_t at = 8; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    const auto remains = read_journal(path);
    ASSERT_TRUE(remains.ok()) << at;
    for (const train::StepResult& result : remains.value().outcome.results) EXPECT_EQ(result.loss, 5.0 - static_cast<double>(result.step)) << at;
  }
}

}  // namespace
}  // namespace shardbook::launch
