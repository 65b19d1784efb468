// Ranks whose end comes while a checkpoint is written, and ranks that have too little memory: none hangs, each is named,
// and what bears a checkpoint's name is whole.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/checkpoint/folder.hpp"
#include "engine/kernels/gemm.hpp"
#include "engine/launch/launch.hpp"
#include "engine/world/spawn.hpp"
#include "tests/checkpoint/runs.hpp"
#include "tests/launch/faulty_rank.hpp"
#include "tests/support/process_ranks.hpp"

namespace shardbook::launch {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using tests::Asked;
using tests::Folder;

class FaultWhileSaving : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(FaultWhileSaving, IsNamedAndTheRunGoesOnFromAWholeCheckpoint) {
  const auto [what, rank] = GetParam();
  const Folder folder;
  const std::string saved = folder / "saved";
  // One rate of learning, however many steps there are to be
  const Asked form{{"layers", "1"}, {"tp", "2"}, {"fsdp", "2"}, {"hidden-dropout", "0.1"}, {"lr", "0.001"}, {"min-lr", "0.001"}, {"warmup-steps", "0"}};
  const Asked saving{{"checkpoint", saved}, {"save-every", "2"}, {"keep-checkpoints", "0"}, {"out", folder / "run"}};
  ::setenv(test::fault_variable, base::text(rank, " 0 saving ", what).c_str(), 1);
  const auto begin = std::chrono::steady_clock::now();
  const base::Result<Outcome> outcome = run(tests::small(tests::with(tests::with(form, saving), {{"steps", "1000"}, {"launch", "processes"}, {"comm-timeout", "2"}})), {});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ::unsetenv(test::fault_variable);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().find(base::text("rank ", rank, " (pid ")), std::string::npos) << outcome.error();
  EXPECT_NE(outcome.error().find(what == "killed" ? "was killed by signal 9 (Killed)" : what == "exits" ? "ended with exit code 0" : "stopped"), std::string::npos) << outcome.error();
  EXPECT_LT(seconds, test::soon_s) << outcome.error();
  EXPECT_EQ(tests::children_left(), "");

  // Whatever bears a name is whole, and the numbers from there on are those of a run that nobody ended.
  const std::vector<std::int64_t> steps = checkpoint::steps_in(saved);
  ASSERT_FALSE(steps.empty());
  for (const std::int64_t step : steps) EXPECT_EQ(tests::damage_of(checkpoint::path_of_step(saved, step)), "");
  const std::int64_t newest = checkpoint::find(saved).value().manifest.step;
  const Asked whole = tests::with(form, {{"steps", std::to_string(newest + 3)}});
  const Asked later = tests::with(whole, {{"resume", saved}});
  tests::expect_goes_on(tests::numbers_of(tests::small(later)), tests::numbers_of(tests::small(whole)), newest);
}

INSTANTIATE_TEST_SUITE_P(OfProcesses, FaultWhileSaving, testing::Combine(testing::Values("killed", "stopped", "exits"), testing::Values(0, 3)),
                         [](const auto& one) { return base::text(std::get<0>(one.param), "_rank_", std::get<1>(one.param)); });

// --- Little memory ---------------------------------------------------------------------------------

struct Ended {
  int status = 0;
  double seconds = 0;
  std::string said;
};

// This program as one that trains by a config, with so many MiB to spare.
Ended train_with(int spare, const std::string& config_file) {
  std::FILE* out = std::tmpfile();
  const std::string program = world::own_program();
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("OPENBLAS_NUM_THREADS", "1", 1);
    ::setenv(test::spare_variable, std::to_string(spare).c_str(), 1);
    ::dup2(::fileno(out), 2);
    ::execl(program.c_str(), program.c_str(), "train", "--config", config_file.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  Ended ended;
  const auto patience = begin + 30s;
  while (::waitpid(child, &ended.status, WNOHANG) != child) {
    if (std::chrono::steady_clock::now() > patience) ::kill(child, SIGKILL);
    std::this_thread::sleep_for(5ms);
  }
  ended.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ended.said.resize(1 << 16);
  ended.said.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::pread(::fileno(out), ended.said.data(), ended.said.size(), 0))));
  std::fclose(out);
  return ended;
}

// OpenBLAS asks for its buffers until it gets them: four ranks without room for four would multiply for ever.
TEST(LittleMemory, IsRefusedInASentenceBeforeOpenBlasAsksForEver) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more memory than the limit";
#endif
  if (!std::string(kernels::gemm_twin()).starts_with("OpenBLAS")) GTEST_SKIP() << kernels::gemm_twin() << " needs no buffers";
  const Folder folder;
  const auto config_of = [&](const char* launch) {
    const std::string file = folder / launch;
    std::ofstream(file) << config::to_json(tests::small({{"layers", "1"}, {"fsdp", "4"}, {"steps", "2"}, {"launch", launch}}));
    ::setenv(test::out_variable, (folder / (std::string("run_") + launch)).c_str(), 1);
    return file;
  };
  const Ended threads = train_with(300, config_of("threads"));
  EXPECT_TRUE(WIFEXITED(threads.status) && WEXITSTATUS(threads.status) == 1) << threads.status << threads.said;
  EXPECT_NE(threads.said.find("OpenBLAS needs a buffer of 128 MiB for each rank of this process, 4 in all"), std::string::npos) << threads.said;
  EXPECT_FALSE(fs::exists(folder / "run_threads"));

  // Each of its own ranks may have as much, and needs one; the first that has no room is named.
  const Ended processes = train_with(100, config_of("processes"));
  EXPECT_TRUE(WIFEXITED(processes.status) && WEXITSTATUS(processes.status) == 1) << processes.status << processes.said;
  EXPECT_NE(processes.said.find("OpenBLAS needs a buffer of 128 MiB for each rank of this process, 1 in all"), std::string::npos) << processes.said;

  // With enough of it the same run ends well.
  const Ended enough = train_with(2000, config_of("threads"));
  ::unsetenv(test::out_variable);
  EXPECT_TRUE(WIFEXITED(enough.status) && WEXITSTATUS(enough.status) == 0) << enough.status << enough.said;
}

}  // namespace
}  // namespace shardbook::launch
