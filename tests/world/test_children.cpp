// tests/world: ranks as real processes, started by ourselves and as launchers start them.
#include <gtest/gtest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "engine/world/process_state.hpp"
#include "engine/world/spawn.hpp"
#include "engine/world/wire.hpp"
#include "tests/support/own_ports.hpp"
#include "tests/world/roles.hpp"

namespace shardbook::world::test {

namespace {

using namespace std::chrono_literals;
using VariableList = std::vector<std::pair<std::string, std::string>>;

// A file that a process writes and the test reads.
class Capture {
 public:
  Capture() : file_(std::tmpfile()) {}
  ~Capture() { std::fclose(file_); }
  int fd() const { return fileno(file_); }
  std::string text() const {
    std::string content(1 << 16, '\0');
    content.resize(pread(fd(), content.data(), content.size(), 0));
    return content;
  }

 private:
  std::FILE* file_;
};

struct Outcome {
  SpawnOutcome spawn;
  std::string output;
  std::string error;
  double seconds = 0;
};

Outcome spawn(const std::string& role, int size, SpawnOptions options = {}) {
  Capture output, error;
  options.output_fd = output.fd();
  options.error_fd = error.fd();
  Stopwatch watch;
  auto outcome = spawn_processes(own_program(), {"rank", role}, size, options);
  EXPECT_TRUE(outcome.ok()) << outcome.error();
  return {outcome.value(), output.text(), error.text(), watch.seconds()};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A child with exactly these variables besides the parent's; stdout and stderr go to `out`.
pid_t start_child(const std::string& role, const VariableList& variables, int out) {
  const std::string program = own_program();
  const pid_t pid = fork();
  if (pid == 0) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    dup2(out, 1);
    dup2(out, 2);
    execl(program.c_str(), program.c_str(), "rank", role.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  return pid;
}

int exit_code(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST(Spawn, RanksMeetAndOutputIsRankZerosWithPrefixedErrors) {
  const Outcome run = spawn("gather", 3);
  EXPECT_EQ(run.spawn.exit_code, 0) << run.error;
  EXPECT_EQ(run.spawn.first_cause, "");
  EXPECT_EQ(run.output, "gathered 0@0.0 1@0.1 2@0.2\n");
  EXPECT_TRUE(contains("\n" + run.error, "\npresent\n")) << run.error;
  EXPECT_TRUE(contains(run.error, "[rank 1] present\n")) << run.error;
  EXPECT_TRUE(contains(run.error, "[rank 2] present\n")) << run.error;
}

TEST(Spawn, GroupsOfProcessesPretendToBeNodes) {
  SpawnOptions options;
  options.node_sizes = {2, 1};
  const Outcome run = spawn("gather", 3, options);
  EXPECT_EQ(run.output, "gathered 0@0.0 1@0.1 2@1.0\n") << run.error;
}

TEST(Spawn, NodesHaveTheirOwnDevices) {
  Capture output;
  SpawnOptions options;
  options.node_sizes = {1, 1};
  options.visible_devices = {"0,1", "2,3"};
  options.error_fd = output.fd();
  const auto outcome = spawn_processes(
      "/bin/sh", {"-c", "echo node $SHARDBOOK_NODE of $NCCL_HOSTID sees $CUDA_VISIBLE_DEVICES >&2"}, 2, options);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(contains(output.text(), "-node0 sees 0,1")) << output.text();
  EXPECT_TRUE(contains(output.text(), "-node1 sees 2,3")) << output.text();
}

TEST(Spawn, ARankThatThrowsEndsAllWithItsCause) {
  const Outcome run = spawn("throw", 4);
  EXPECT_EQ(run.spawn.exit_code, 1);
  EXPECT_TRUE(contains(run.spawn.first_cause, "rank 3 (pid ")) << run.spawn.first_cause;
  EXPECT_TRUE(contains(run.spawn.first_cause, "): layer 7 overflowed")) << run.spawn.first_cause;
  EXPECT_TRUE(contains(run.error, "[rank 1] rank 3 (pid ")) << run.error;
  EXPECT_LT(run.seconds, 5);
}

TEST(Spawn, AKilledRankEndsAllWithItsCause) {
  const Outcome run = spawn("kill", 4);
  EXPECT_EQ(run.spawn.exit_code, 128 + SIGKILL);
  EXPECT_TRUE(contains(run.spawn.first_cause, "rank 3 (pid ")) << run.spawn.first_cause;
  EXPECT_TRUE(contains(run.spawn.first_cause, "ended without a word (killed?); rank 3 (pid ")) << run.spawn.first_cause;
  EXPECT_TRUE(contains(run.spawn.first_cause, "was killed by signal 9 (Killed)")) << run.spawn.first_cause;
  EXPECT_LT(run.seconds, 5);
}

TEST(Spawn, AKilledRankZeroEndsAllThoughItServed) {
  const Outcome run = spawn("kill_first", 3);
  EXPECT_EQ(run.spawn.exit_code, 128 + SIGKILL);
  EXPECT_TRUE(contains(run.spawn.first_cause, "rank 0 (pid ")) << run.spawn.first_cause;
  EXPECT_TRUE(contains(run.spawn.first_cause, "which serves the control connections, ended without a word"))
      << run.spawn.first_cause;
  EXPECT_LT(run.seconds, 5);
}

TEST(Spawn, RanksThatWaitForADeadOneAreKilledAfterTheGrace) {
  Capture error;
  SpawnOptions options;
  options.error_fd = error.fd();
  options.grace = 1s;
  Stopwatch watch;
  const std::string dies_before_it_connects = "if [ $SHARDBOOK_RANK = 0 ]; then kill -9 $$; fi; exec \"$0\" rank gather";
  const auto outcome = spawn_processes("/bin/sh", {"-c", dies_before_it_connects, own_program()}, 3, options);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.value().exit_code, 128 + SIGKILL);
  EXPECT_TRUE(contains(outcome.value().first_cause, "rank 0 (pid ")) << outcome.value().first_cause;
  EXPECT_TRUE(contains(outcome.value().first_cause, "was killed by signal 9")) << outcome.value().first_cause;
  EXPECT_LT(watch.seconds(), 5);
}

TEST(Spawn, AStoppedRankIsNoticedByItsSilence) {
  SpawnOptions options;
  options.environment = {{"SHARDBOOK_HEARTBEAT_TIMEOUT_S", "1"}};
  options.grace = 1s;
  const Outcome run = spawn("freeze", 3, options);
  EXPECT_NE(run.spawn.exit_code, 0);
  EXPECT_TRUE(contains(run.spawn.first_cause, "rank 2 (pid ")) << run.spawn.first_cause;
  EXPECT_TRUE(contains(run.spawn.first_cause, "has been silent for 1.")) << run.spawn.first_cause;
  EXPECT_LT(run.seconds, 8);
}

TEST(Spawn, ARankThatStaysStoppedIsKilledAfterItsTime) {
  SpawnOptions options;
  options.longest_stop = 300ms;
  const Outcome run = spawn("freeze", 3, options);
  EXPECT_NE(run.spawn.exit_code, 0);
  EXPECT_TRUE(contains(run.spawn.first_cause, "rank 2 (pid ")) << run.spawn.first_cause;
  EXPECT_TRUE(contains(run.spawn.first_cause, "was stopped, and killed when it did not go on")) << run.spawn.first_cause;
  EXPECT_LT(run.seconds, 5);
}

TEST(ProcessState, TellsARunningProcessFromAStoppedAndAnEndedOne) {
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  const auto becomes = [child](ProcessState expected) {
    for (int tries = 0; tries < 500 && state_of_process(child) != expected; ++tries) std::this_thread::sleep_for(10ms);
    return state_of_process(child) == expected;
  };
  EXPECT_TRUE(becomes(ProcessState::running));
  kill(child, SIGSTOP);
  EXPECT_TRUE(becomes(ProcessState::stopped));
  kill(child, SIGCONT);
  EXPECT_TRUE(becomes(ProcessState::running));
  kill(child, SIGKILL);
  EXPECT_TRUE(becomes(ProcessState::ended)) << "a zombie";
  waitpid(child, nullptr, 0);
  EXPECT_EQ(state_of_process(child), ProcessState::ended) << "gone";
}

TEST(Spawn, RanksThatNothingCanWakeEndThemselves) {
  const Outcome run = spawn("stuck", 3);
  EXPECT_EQ(run.spawn.exit_code, 1);
  EXPECT_TRUE(contains(run.spawn.first_cause, "): nobody hears this")) << run.spawn.first_cause;
  EXPECT_TRUE(contains(run.error, "Rank 1 did not end within 4000 ms")) << run.error;
  EXPECT_LT(run.seconds, 9);
}

TEST(Spawn, ARankThatNeverArrivesIsNamed) {
  SpawnOptions options;
  options.environment = {{"SHARDBOOK_CONNECT_TIMEOUT_S", "3"}};
  const Outcome run = spawn("absent", 3, options);
  EXPECT_EQ(run.spawn.exit_code, 1);
  EXPECT_TRUE(contains(run.spawn.first_cause, "rank 1 of 3 did not arrive at ")) << run.spawn.first_cause;
}

TEST(Spawn, WhatCannotRunIsOneSentence) {
  EXPECT_EQ(spawn_processes("/nowhere/shardbook", {}, 2).error(), "cannot run /nowhere/shardbook: No such file or directory");
  SpawnOptions options;
  options.node_sizes = {2, 2};
  EXPECT_EQ(spawn_processes(own_program(), {}, 3, options).error(), "the nodes hold 4 ranks together, but 3 are asked for");
}

TEST(Spawn, TooFewFilesAreOneSentence) {
  // The undefined-behaviour sanitizer looks at each type of exception once, through a pipe: here, where one can be made.
  try {
    throw base::Failure("looked at");
  } catch (const std::exception& failure) {
    ASSERT_STREQ(failure.what(), "looked at");
  }
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  close(next);
  // For the port that ranks call and one pipe
  const rlimit few{static_cast<rlim_t>(next) + 3, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  const auto outcome = spawn_processes(own_program(), {"rank", "steps"}, 2);
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error(), "cannot start 2 ranks: no pipe can be made (Too many open files): raise the limit of open files (ulimit -n)");
}

TEST(Spawn, CtrlCIsPassedOnAndAllStopAfterTheSameStep) {
  // The parent is a process of its own here, because the signal goes to it.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Capture output, error;
    const pid_t parent = fork();
    if (parent == 0) {
      SpawnOptions options;
      options.output_fd = output.fd();
      options.error_fd = error.fd();
      const auto outcome = spawn_processes(own_program(), {"rank", "steps"}, 3, options);
      _exit(outcome.ok() ? outcome.value().exit_code : 99);
    }
    for (int tries = 0; tries < 200 && !contains(output.text(), "stepping"); ++tries) std::this_thread::sleep_for(50ms);
    kill(parent, signal);
    kill(parent, signal);
    EXPECT_EQ(exit_code(parent), 0) << error.text();
    EXPECT_EQ(output.text(), "stepping\nall stopped after the same step\n") << error.text();
  }
}

// A process that starts two ranks of this role and ends as they do, with 3 where they were asked to stop. What they write comes
// out of `reader`. Negative: there is no pipe or no process.
pid_t start_into_pipe(const std::string& role, const Capture& error, int* reader) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t parent = fork();
  if (parent == 0) {
    close(ends[0]);
    SpawnOptions options;
    options.output_fd = ends[1];
    options.error_fd = error.fd();
    options.stopped_code = 3;
    const auto outcome = spawn_processes(own_program(), {"rank", role}, 2, options);
    _exit(outcome.ok() ? outcome.value().exit_code : 99);
  }
  close(ends[1]);
  *reader = ends[0];
  return parent;
}

TEST(Spawn, AnOutputThatNobodyReadsStopsTheRunAsCtrlCDoes) {
  Capture error;
  int reader = -1;
  const pid_t parent = start_into_pipe("chatter", error, &reader);
  ASSERT_GE(parent, 0);
  char byte;
  EXPECT_EQ(read(reader, &byte, 1), 1);
  close(reader);
  EXPECT_EQ(exit_code(parent), 3) << error.text();
}

TEST(Spawn, ARunWhoseOutputIsNotTakenStopsWhenItIsAskedTo) {
  Capture error;
  int reader = -1;
  const pid_t parent = start_into_pipe("flood", error, &reader);
  ASSERT_GE(parent, 0);
  // Nobody reads, as `less` does not whose page is full: soon no pipe takes more.
  int held = -1;
  for (int before = -2; held != before || held < 65536; std::this_thread::sleep_for(200ms)) {
    before = held;
    ASSERT_EQ(ioctl(reader, FIONREAD, &held), 0);
  }
  Stopwatch watch;
  kill(parent, SIGTERM);
  EXPECT_EQ(exit_code(parent), 3) << error.text();
  EXPECT_LT(watch.seconds(), 30) << "its ranks stop, and their last words wait three seconds for a reader";
  close(reader);
}

TEST(Spawn, RankZeroThatHoldsAllIsNotKilledForAnothersEnd) {
  SpawnOptions options;
  options.grace = 300ms;
  const Outcome run = spawn("hold", 2, options);
  EXPECT_EQ(run.spawn.exit_code, 128 + SIGKILL);
  EXPECT_TRUE(contains(run.output, "all is written")) << run.error;
}

TEST(Spawn, ChildrenDoNotOutliveAKilledParent) {
  Capture output;
  const pid_t parent = fork();
  if (parent == 0) {
    SpawnOptions options;
    options.output_fd = output.fd();
    (void)spawn_processes("/bin/sh", {"-c", "echo $$; exec sleep 1000"}, 1, options);
    _exit(99);
  }
  for (int tries = 0; tries < 200 && output.text().empty(); ++tries) std::this_thread::sleep_for(20ms);
  const pid_t child = std::atoi(output.text().c_str());
  ASSERT_GT(child, 1);
  kill(parent, SIGKILL);
  EXPECT_EQ(exit_code(parent), 128 + SIGKILL);
  // Gone, or a zombie that nobody has fetched yet.
  const auto is_gone = [child] {
    std::ifstream file(base::text("/proc/", child, "/stat"));
    std::string line;
    return !std::getline(file, line) || line[line.rfind(')') + 2] == 'Z';
  };
  for (int tries = 0; tries < 100 && !is_gone(); ++tries) std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(is_gone());
}

// --- As launchers start us -----------------------------------------------------------------------

TEST(StartedBy, TorchrunWhoseStoreHoldsMasterPort) {
  auto store = listen_on(tests::own_port(), 1);
  ASSERT_TRUE(store.ok());
  Capture out;
  std::vector<pid_t> children;
  for (int rank = 0; rank < 2; ++rank) {
    children.push_back(start_child("gather",
                                   {{"RANK", std::to_string(rank)}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", std::to_string(rank)},
                                    {"LOCAL_WORLD_SIZE", "2"}, {"GROUP_RANK", "0"}, {"MASTER_ADDR", host_name()},
                                    {"MASTER_PORT", std::to_string(store.value().port)}},
                                   out.fd()));
  }
  for (const pid_t child : children) EXPECT_EQ(exit_code(child), 0) << out.text();
  EXPECT_TRUE(contains(out.text(), "gathered 0@0.0 1@0.1")) << out.text();
  close(store.value().fd);
}

TEST(StartedBy, MpirunOnOneHost) {
  Capture out;
  std::vector<pid_t> children;
  for (int rank = 0; rank < 2; ++rank) {
    children.push_back(start_child("gather",
                                   {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)}, {"OMPI_COMM_WORLD_SIZE", "2"},
                                    {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank)}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                    {"PMIX_NAMESPACE", base::text("test-", getpid())}},
                                   out.fd()));
  }
  for (const pid_t child : children) EXPECT_EQ(exit_code(child), 0) << out.text();
  EXPECT_TRUE(contains(out.text(), "gathered 0@0.0 1@0.1")) << out.text();
}

TEST(StartedBy, SlurmOverTwoNodes) {
  Capture out;
  std::vector<pid_t> children;
  for (int rank = 0; rank < 3; ++rank) {
    children.push_back(start_child("gather",
                                   {{"SLURM_PROCID", std::to_string(rank)}, {"SLURM_NTASKS", "3"},
                                    {"SLURM_LOCALID", rank == 2 ? "0" : std::to_string(rank)},
                                    {"SLURM_NODEID", rank == 2 ? "1" : "0"}, {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
                                    {"SLURM_STEP_NODELIST", "localhost,elsewhere"}, {"SLURM_JOB_ID", std::to_string(getpid())},
                                    {"SLURM_STEP_ID", "0"}},
                                   out.fd()));
  }
  for (const pid_t child : children) EXPECT_EQ(exit_code(child), 0) << out.text();
  EXPECT_TRUE(contains(out.text(), "gathered 0@0.0 1@0.1 2@1.0")) << out.text();
}

TEST(StartedBy, HalfALauncherIsRefusedInOneSentence) {
  Capture out;
  EXPECT_EQ(exit_code(start_child("gather", {{"RANK", "0"}}, out.fd())), 1);
  EXPECT_EQ(out.text(), "the variables of torchrun do not fit together: it lacks WORLD_SIZE (known by RANK; unset that "
                        "to run alone)\n");
}

}  // namespace shardbook::world::test
