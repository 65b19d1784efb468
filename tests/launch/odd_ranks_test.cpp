// What is no fault of a rank disturbs nobody: being slow, a clock that is set. A disk that is full is a fault of the run,
// and ends as the others do.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "engine/base/json.hpp"
#include "engine/checkpoint/folder.hpp"
#include "engine/launch/launch.hpp"
#include "engine/timeline/reader.hpp"
#include "tests/launch/faulty_rank.hpp"
#include "tests/support/process_ranks.hpp"
#include "tests/support/small_run.hpp"

namespace shardbook::launch {
namespace {

namespace fs = std::filesystem;
using tests::Asked;
using tests::Folder;

constexpr std::chrono::seconds soon{8};   // with ranks on two busy processors

config::RunConfig small_pair(const Asked& asked) {
  return tests::config_of(tests::with({{"device", "host"}, {"layers", "2"}, {"width", "16"}, {"heads", "2"}, {"sequence", "8"}, {"sequences", "4"}, {"data", "synthetic"},
                                       {"fsdp", "2"}, {"steps", "6"}, {"launch", "processes"}}, asked));
}

base::Result<Outcome> run_with(const std::string& fault, const config::RunConfig& config) {
  ::setenv(test::fault_variable, fault.c_str(), 1);
  base::Result<Outcome> outcome = run(config, {});
  ::unsetenv(test::fault_variable);
  return outcome;
}

// Losses and norms as run.json has them; the error where there is none.
std::string losses_and_norms_of(const std::string& folder) {
  const base::Result<timeline::RunInfo> info = timeline::read_run_info((fs::path(folder) / "run.json").string());
  return info ? base::json_text(info.value().results.at("losses")) + base::json_text(info.value().results.at("gradient_norms")) : info.error();
}

std::string undisturbed(const Folder& folder) {
  const base::Result<Outcome> outcome = run(small_pair({{"out", folder / "undisturbed"}}), {});
  EXPECT_TRUE(outcome) << outcome.error();
  return losses_and_norms_of(folder / "undisturbed");
}

TEST(SlowRank, IsWaitedForWhereverItIsAndNobodyIsNamed) {
  const Folder folder;
  const std::string numbers = undisturbed(folder);
  for (const std::string where : {"forward", "backward", "reduction", "optimizer"}) {
    const auto begin = std::chrono::steady_clock::now();
    const base::Result<Outcome> outcome = run_with("1 3 " + where + " slow", small_pair({{"comm-timeout", "5"}, {"out", folder / where}}));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1)) << "it was not slow";
    ASSERT_TRUE(outcome) << where << ": " << outcome.error();
    EXPECT_EQ(losses_and_norms_of(folder / where), numbers) << where;
  }
}

// A day: what waited by that clock would give up at once, or never; what measured by it would find a day, or less than nothing.
TEST(ClockThatIsSet, OfAnyRankDisturbsNothing) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have a clock_gettime of their own";
#endif
  const Folder folder;
  const std::string numbers = undisturbed(folder);
  for (const char* what : {"day_later", "day_earlier"}) {
    for (int rank = 0; rank < 2; ++rank) {
      const std::string fault = base::text(rank, " 3 backward ", what), out = folder / base::text(what, rank);
      SCOPED_TRACE(fault);
      const auto begin = std::chrono::steady_clock::now();
      const base::Result<Outcome> outcome = run_with(fault, small_pair({{"comm-timeout", "5"}, {"clock", "wall"}, {"trace-steps", "2:6"}, {"checkpoint", out + ".saved"}, {"save-every", "2"}, {"out", out}}));
      const auto took = std::chrono::steady_clock::now() - begin;
      ASSERT_TRUE(outcome) << outcome.error();
      EXPECT_EQ(losses_and_norms_of(out), numbers);
      const auto read = timeline::read(out);
      ASSERT_TRUE(read) << read.error();
      EXPECT_EQ(read.value().banners, std::vector<std::string>{});
      ASSERT_EQ(read.value().steps.size(), 8u) << "four steps of two ranks";
      for (const timeline::Step& step : read.value().steps) {
        EXPECT_GT(step.end - step.start, 0) << step.number;
        EXPECT_LT(step.end - step.start, std::chrono::nanoseconds(took).count()) << step.number;
      }
    }
  }
}

// --- Full disks ------------------------------------------------------------------------------------

TEST(FullDisk, OfARankThatWritesACheckpointEndsAllIsNamedAndTheRunOpens) {
  for (const int rank : {0, 1}) {
    const Folder folder;
    const auto begin = std::chrono::steady_clock::now();
    const base::Result<Outcome> outcome = run_with(base::text(rank, " 3 forward full_disk"), small_pair({{"steps", "1000"}, {"trace-steps", "1:3"}, {"comm-timeout", "5"},
                                                                                                   {"checkpoint", folder / "saved"}, {"save-every", "2"}, {"out", folder.run()}}));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, soon);
    ASSERT_FALSE(outcome.ok());
    const std::string& error = outcome.error();
    EXPECT_EQ(error.find(base::text("rank ", rank, " (pid ")), 0u) << error;
    EXPECT_NE(error.find("): the checkpoint of step 4 was not saved: cannot write " + folder / "saved"), std::string::npos) << error;
    EXPECT_NE(error.find("File too large; those before it in "), std::string::npos) << error;
    EXPECT_EQ(tests::children_left(), "");
    const auto read = timeline::read(folder.run());
    ASSERT_TRUE(read) << read.error() << "\n" << error;
    EXPECT_EQ(read.value().steps.size(), 4u) << "two steps of two ranks";
    EXPECT_EQ(checkpoint::steps_in(folder / "saved"), std::vector<std::int64_t>{2});
  }
}

TEST(FullDisk, OfRankZeroThatWritesTheRunIsSaidAndTheRecordsStay) {
  const Folder folder;
  const auto begin = std::chrono::steady_clock::now();
  const base::Result<Outcome> outcome = run_with("0 5 forward full_disk", small_pair({{"trace-steps", "1:3"}, {"comm-timeout", "5"}, {"out", folder.run()}}));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, soon);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().find("File too large"), std::string::npos) << outcome.error();
  EXPECT_NE(outcome.error().find(folder.run()), std::string::npos) << outcome.error();
  EXPECT_EQ(tests::children_left(), "");
  const auto read = timeline::read(folder.run());
  ASSERT_TRUE(read) << read.error() << "\n" << outcome.error();
  EXPECT_EQ(read.value().steps.size(), 4u) << "two steps of two ranks";
}

}  // namespace
}  // namespace shardbook::launch
