// Ranks of the host as processes: the numbers are those of threads, and whatever ends one of them ends all soon, is
// named once, and leaves a run that opens, and nothing else.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "engine/base/json.hpp"
#include "engine/launch/journal.hpp"
#include "engine/launch/launch.hpp"
#include "engine/launch/recover.hpp"
#include "engine/timeline/reader.hpp"
#include "engine/world/spawn.hpp"
#include "engine/world/wire.hpp"
#include "tests/launch/faulty_rank.hpp"
#include "tests/support/own_ports.hpp"
#include "tests/support/process_ranks.hpp"
#include "tests/support/run_id.hpp"
#include "tests/support/small_run.hpp"

namespace shardbook::launch {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using tests::Asked;
using tests::Folder;

config::RunConfig small_square(const Asked& asked) {
  return tests::config_of(tests::with({{"device", "host"}, {"layers", "2"}, {"width", "16"}, {"heads", "2"}, {"sequence", "8"}, {"sequences", "4"}, {"tp", "2"}, {"fsdp", "2"}}, asked));
}

std::string banners_of(const timeline::Timeline& timeline) {
  std::string all;
  for (const std::string& banner : timeline.banners) all += banner + "\n";
  return all;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Losses, norms and programs as run.json has them.
std::string numbers_of(const std::string& folder) {
  const base::Result<timeline::RunInfo> info = timeline::read_run_info((fs::path(folder) / "run.json").string());
  if (!info) return info.error();
  const nlohmann::json& results = info.value().results;
  return base::text(base::json_text(results.at("losses")), base::json_text(results.at("gradient_norms")), base::json_text(results.at("program_hashes")), base::json_text(results.at("step_ns")));
}

TEST(ProcessRanks, ComputeTheSameBitsAndIssueTheSameProgramsAsThreads) {
  for (const Asked& also : {Asked{}, Asked{{"host-dtype", "f64"}, {"micro-batches", "2"}}, Asked{{"dp", "2"}, {"tp", "1"}, {"drain-seed", "7"}}}) {
    const Folder folder;
    Asked threads{{"steps", "4"}, {"launch", "threads"}, {"out", folder / "threads"}};
    Asked processes{{"steps", "4"}, {"launch", "processes"}, {"out", folder / "processes"}};
    threads.insert(threads.end(), also.begin(), also.end());
    processes.insert(processes.end(), also.begin(), also.end());
    const base::Result<Outcome> as_threads = run(small_square(threads), {}), as_processes = run(small_square(processes), {});
    ASSERT_TRUE(as_threads) << as_threads.error();
    ASSERT_TRUE(as_processes) << as_processes.error();
    EXPECT_EQ(as_processes.value().role, Role::parent);
    EXPECT_EQ(numbers_of(folder / "threads"), numbers_of(folder / "processes"));
    EXPECT_EQ(count(numbers_of(folder / "threads"), "rank"), 0u);
    const auto read = timeline::read(folder / "processes");
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(read.value().ranks.size(), 4u);
    EXPECT_EQ(banners_of(read.value()), "");
  }
}

// --- Faults --------------------------------------------------------------------------------------

struct Planted {
  std::string what, where;
  base::Rank rank;
};

class Faults : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

// Runs with a fault in step 3, when steps 1 and 2 have been traced.
void expect_named_end(const Planted& fault) {
  const Folder folder;
  const std::set<std::string> segments = tests::named_segments();
  ::setenv(test::fault_variable, base::text(fault.rank, " 3 ", fault.where, " ", fault.what).c_str(), 1);
  // Only a stopped rank is found by waiting: longer than a rank takes to its fault where the cores are shared.
  const char* timeout = fault.what == "stopped" ? "2" : "60";
  const config::RunConfig config = small_square({{"steps", "1000"}, {"trace-steps", "1:3"}, {"launch", "processes"}, {"comm-timeout", timeout}, {"out", folder.run()}});
  const auto begin = std::chrono::steady_clock::now();
  const base::Result<Outcome> outcome = run(config, {});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ::unsetenv(test::fault_variable);

  // The first cause, once
  ASSERT_FALSE(outcome.ok());
  const std::string& error = outcome.error();
  const std::string who = base::text("rank ", fault.rank, " (pid ");
  if (fault.what == "stopped") {
    EXPECT_EQ(count(error, ", which is stopped ("), 1u) << error;
    EXPECT_NE(error.find(" for " + who), std::string::npos) << error;
    EXPECT_NE(error.find("; engine/"), std::string::npos) << "the call site, in: " << error;
    const std::size_t waited = error.find(": waited ");
    ASSERT_NE(waited, std::string::npos) << error;
    const double seconds_waited = std::atof(error.c_str() + waited + std::string(": waited ").size());
    EXPECT_GE(seconds_waited, 2) << error;
    EXPECT_LT(seconds_waited, 4) << error;
  } else {
    EXPECT_EQ(error.find(who), 0u) << error;
    const std::string words = fault.what == "killed" ? "was killed by signal 9 (Killed)" : fault.what == "exits" ? "ended with exit code 0"
                              : fault.what == "throws" ? "): the planted fault" : "): there was too little memory (std::bad_alloc)";
    EXPECT_EQ(count(error, words), 1u) << error;
  }
  EXPECT_LT(seconds, test::soon_s) << error;

  // What was recorded opens, with that sentence
  EXPECT_NE(error.find("; what was recorded by then is in " + folder.run()), std::string::npos) << error;
  const auto read = timeline::read(folder.run());
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read.value().steps.size(), 8u) << "two steps of four ranks";
  EXPECT_NE(banners_of(read.value()).find(error.substr(0, error.find("; what was recorded"))), std::string::npos) << banners_of(read.value());

  // Nothing else is left
  EXPECT_EQ(tests::children_left(), "");
  EXPECT_EQ(tests::named_segments(), segments);
  EXPECT_EQ(journals(folder.run()), std::vector<std::string>{});
}

TEST_P(Faults, EndAllRanksAndAreNamedOnceInARunThatOpens) {
  const auto [what, where] = GetParam();
  expect_named_end({what, where, 3});
}

INSTANTIATE_TEST_SUITE_P(OfProcesses, Faults,
                         testing::Combine(testing::Values("killed", "stopped", "throws", "exits", "memory"),
                                          testing::Values("forward", "backward", "reduction", "optimizer")),
                         [](const auto& one) { return std::get<0>(one.param) + "_in_" + std::get<1>(one.param); });

TEST(FaultOfRankZero, WhichServesTheOthersIsNamedToo) {
  for (const char* what : {"killed", "stopped", "throws", "exits"}) {
    SCOPED_TRACE(what);
    expect_named_end({what, "backward", 0});
  }
}

// A run whose ranks have nothing recorded yet leaves no folder.
TEST(FaultOfSetup, ARankThatIsStoppedIsKilledAndNamed) {
  const Folder folder;
  ::setenv(test::fault_variable, "2 0 setup stopped", 1);
  const base::Result<Outcome> outcome = run(small_square({{"launch", "processes"}, {"comm-timeout", "0.6"}, {"out", folder.run()}}), {});
  ::unsetenv(test::fault_variable);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().find("rank 2 (pid "), 0u) << outcome.error();
  EXPECT_NE(outcome.error().find("was stopped, and killed when it did not go on"), std::string::npos) << outcome.error();
  EXPECT_FALSE(fs::exists(folder.run()));
  EXPECT_EQ(tests::children_left(), "");
}

// A child that starts ranks which train for ever; returns when all have come some steps far.
pid_t train_in_child(const std::string& out) {
  const config::RunConfig config = small_square({{"steps", "1000000"}, {"trace-steps", "1:3"}, {"launch", "processes"}, {"out", out}});
  const pid_t child = ::fork();
  if (child == 0) {
    const base::Result<Outcome> outcome = run(config, {});
    ::_exit(!outcome ? 1 : outcome.value().stopped_early ? 3 : 0);
  }
  const auto steps = [&] {
    const auto remains = read_journal((fs::path(out) / "rank3.partial").string());
    return remains ? remains.value().outcome.results.size() : 0;
  };
  for (int tries = 0; tries < 1000 && steps() < 6; ++tries) std::this_thread::sleep_for(20ms);
  EXPECT_GE(steps(), 6u);
  return child;
}

TEST(Signals, CtrlCEndsAllRanksAfterTheSameStepAndTheRunIsWhole) {
  const Folder folder;
  const pid_t child = train_in_child(folder.run());
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  const auto read = timeline::read(folder.run());
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read.value().steps.size(), 8u);
  EXPECT_EQ(read.value().ranks.size(), 4u);
}

TEST(Signals, AKilledParentTakesItsRanksAlongAndTheRunCanBeRecovered) {
  const Folder folder;
  const pid_t child = train_in_child(folder.run());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  // What a rank holds locked is free when it is gone.
  base::Result<Outcome> outcome = base::Error{"not tried"};
  for (int tries = 0; tries < 250 && !outcome; ++tries) {
    std::this_thread::sleep_for(20ms);
    outcome = recover(folder.run());
  }
  ASSERT_TRUE(outcome) << outcome.error();
  EXPECT_GE(outcome.value().results.size(), 6u);
  EXPECT_EQ(timeline::read(folder.run()).value().steps.size(), 8u);
}

// --- As others start us ----------------------------------------------------------------------------

// Ranks that a launcher started: each has its variables, and nobody of ours is their parent.
std::vector<pid_t> start_as(const std::vector<Asked>& variables, const std::string& config_file, int out) {
  std::vector<pid_t> children;
  const std::string program = world::own_program();
  for (const Asked& own : variables) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    for (const auto& [name, value] : own) ::setenv(name.c_str(), value.c_str(), 1);
    ::dup2(out, 2);
    ::execl(program.c_str(), program.c_str(), "train", "--config", config_file.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  return children;
}

std::vector<Asked> as_torchrun(int ranks) {
  const std::string port = std::to_string(tests::own_port());
  std::vector<Asked> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string own = std::to_string(rank), size = std::to_string(ranks);
    all.push_back({{"RANK", own}, {"WORLD_SIZE", size}, {"LOCAL_RANK", own}, {"LOCAL_WORLD_SIZE", size}, {"GROUP_RANK", "0"}, {"MASTER_ADDR", "127.0.0.1"},
                   {"MASTER_PORT", port}, {"TORCHELASTIC_RUN_ID", tests::own_run_id()}, {"SHARDBOOK_SECRET", "the tests' own secret"}});
  }
  return all;
}

std::vector<Asked> as_mpirun(int ranks) {
  std::vector<Asked> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string own = std::to_string(rank), size = std::to_string(ranks);
    all.push_back({{"OMPI_COMM_WORLD_RANK", own}, {"OMPI_COMM_WORLD_SIZE", size}, {"OMPI_COMM_WORLD_LOCAL_RANK", own}, {"OMPI_COMM_WORLD_LOCAL_SIZE", size},
                   {"PMIX_NAMESPACE", base::text("test-", ::getpid())}, {"SHARDBOOK_SECRET", "the tests' own secret"}});
  }
  return all;
}

struct EndedRanks {
  std::vector<int> status;
  std::string said;
  double seconds = 0;
};

// Nobody here ends a rank before the test gives up.
void await_all(const std::vector<pid_t>& children, EndedRanks& ended) {
  const auto begin = std::chrono::steady_clock::now();
  for (const pid_t child : children) {
    ended.status.push_back(0);
    while (::waitpid(child, &ended.status.back(), WNOHANG) != child) {
      std::this_thread::sleep_for(5ms);
      if (std::chrono::steady_clock::now() - begin < 60s) continue;
      ADD_FAILURE() << "a rank had to be killed";
      ::kill(child, SIGKILL);
    }
  }
  ended.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

EndedRanks train_as(const std::vector<Asked>& variables, const Folder& folder, const Asked& asked) {
  const std::string file = folder / "config.json";
  std::ofstream(file) << config::to_json(small_square(asked));
  ::setenv(test::out_variable, folder.run().c_str(), 1);
  std::FILE* out = std::tmpfile();
  EndedRanks ended;
  await_all(start_as(variables, file, ::fileno(out)), ended);
  ended.said.resize(1 << 16);
  ended.said.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::pread(::fileno(out), ended.said.data(), ended.said.size(), 0))));
  std::fclose(out);
  ::unsetenv(test::out_variable);
  return ended;
}

TEST(StartedBy, TorchrunOrMpirunRanksTrainOnTheHostWithTheNumbersOfThreads) {
  for (const auto& launcher : {as_torchrun(4), as_mpirun(4)}) {
    const Folder folder;
    const EndedRanks ended = train_as(launcher, folder, {{"steps", "3"}, {"launch", "processes"}});
    EXPECT_EQ(ended.status, std::vector<int>(4, 0)) << ended.said;
    const base::Result<Outcome> threads = run(small_square({{"steps", "3"}, {"out", folder / "threads"}}), {});
    ASSERT_TRUE(threads) << threads.error();
    EXPECT_EQ(numbers_of(folder.run()), numbers_of(folder / "threads"));
  }
}

TEST(StartedBy, TorchrunAKilledRankIsNamedByAllOthersAndWhatWasRecordedOpens) {
  const Folder folder;
  ::setenv(test::fault_variable, "3 3 backward killed", 1);
  const EndedRanks ended = train_as(as_torchrun(4), folder, {{"steps", "1000"}, {"trace-steps", "1:3"}, {"launch", "processes"}});
  ::unsetenv(test::fault_variable);
  EXPECT_TRUE(WIFSIGNALED(ended.status[3]));
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(WEXITSTATUS(ended.status[static_cast<std::size_t>(rank)]), 1);
  EXPECT_EQ(count(ended.said, "ended without a word (killed?)"), 3u) << ended.said;
  const auto read = timeline::read(folder.run());
  ASSERT_TRUE(read) << read.error() << ended.said;
  EXPECT_EQ(read.value().steps.size(), 8u);
  EXPECT_NE(banners_of(read.value()).find("rank 3 (pid "), std::string::npos) << banners_of(read.value());
}

// Their launcher waits for it, too: the ranks themselves have to end it.
TEST(StartedBy, TorchrunAStoppedRankIsNamedAndEndedAtOnce) {
  const Folder folder;
  ::setenv(test::fault_variable, "3 3 backward stopped", 1);
  const EndedRanks ended = train_as(as_torchrun(4), folder, {{"steps", "1000"}, {"trace-steps", "1:3"}, {"launch", "processes"}, {"comm-timeout", "2"}});
  ::unsetenv(test::fault_variable);
  EXPECT_LT(ended.seconds, test::soon_s) << ended.said;
  EXPECT_TRUE(WIFSIGNALED(ended.status[3]) && WTERMSIG(ended.status[3]) == SIGKILL) << ended.status[3];
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(WEXITSTATUS(ended.status[static_cast<std::size_t>(rank)]), 1);
  EXPECT_EQ(count(ended.said, ", which is stopped ("), 3u) << ended.said;
  const auto read = timeline::read(folder.run());
  ASSERT_TRUE(read) << read.error() << ended.said;
  EXPECT_EQ(read.value().steps.size(), 8u);
  EXPECT_NE(banners_of(read.value()).find(", which is stopped ("), std::string::npos) << banners_of(read.value());
}

// Rank 0 makes the run of what was recorded: without it the journals are left, of which `recover` makes one.
TEST(StartedBy, TorchrunAStoppedRankZeroIsNamedAndEndedAtOnce) {
  const Folder folder;
  ::setenv(test::fault_variable, "0 3 backward stopped", 1);
  ::setenv("SHARDBOOK_HEARTBEAT_TIMEOUT_S", "2", 1);
  const EndedRanks ended = train_as(as_torchrun(4), folder, {{"steps", "1000"}, {"trace-steps", "1:3"}, {"launch", "processes"}, {"comm-timeout", "2"}});
  ::unsetenv(test::fault_variable);
  ::unsetenv("SHARDBOOK_HEARTBEAT_TIMEOUT_S");
  EXPECT_LT(ended.seconds, test::soon_s) << ended.said;
  EXPECT_TRUE(WIFSIGNALED(ended.status[0]) && WTERMSIG(ended.status[0]) == SIGKILL) << ended.status[0];
  for (int rank = 1; rank < 4; ++rank) EXPECT_EQ(WEXITSTATUS(ended.status[static_cast<std::size_t>(rank)]), 1);
  EXPECT_EQ(count(ended.said, "rank 0 (pid "), 3u) << ended.said;
  const base::Result<Outcome> outcome = recover(folder.run());
  ASSERT_TRUE(outcome) << outcome.error();
  EXPECT_EQ(timeline::read(folder.run()).value().steps.size(), 8u);
}

TEST(StartedBy, ALauncherOtherThanTheLayoutNeedsIsRefused) {
  const Folder folder;
  const EndedRanks ended = train_as(as_torchrun(2), folder, {{"steps", "3"}, {"launch", "processes"}});
  EXPECT_EQ(count(ended.said, "torchrun started 2 ranks, and --tp 2 --fsdp 2 needs 4: start as many, or change the layout"), 2u) << ended.said;
  const EndedRanks threads = train_as(as_torchrun(2), folder, {{"steps", "3"}, {"launch", "threads"}});
  EXPECT_EQ(count(threads.said, "torchrun started 2 processes, and --launch threads has all ranks in one"), 2u) << threads.said;
}

TEST(ProcessRanks, AreForDevicesThatCompute) {
  const base::Result<Outcome> outcome = run(small_square({{"device", "meta"}, {"launch", "processes"}}), {});
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().find("--device meta has shapes only"), std::string::npos) << outcome.error();
}

}  // namespace
}  // namespace shardbook::launch
