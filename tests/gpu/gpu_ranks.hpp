// tests/gpu: ranks are processes with a GPU each, as in training.
//
// A test that wants several ranks starts its own program again, once a rank and for this one test, and the body
// runs there. Threads of one process would do, were it not for NCCL: communicators that are split from non-blocking
// ones by several threads of a process damage its heap now and then (NVIDIA/nccl issue 1605, open; seen with NCCL
// 2.28.3 in 2 of 60 runs of these tests).
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "engine/world/processes.hpp"
#include "engine/world/spawn.hpp"

namespace shardbook::gpu_test {

// In the test's own process: starts the ranks, and the error is the first cause ("rank 1 ...: out of coffee"), or that
// a rank ended badly, as it does where an expectation failed; what it expected is on stderr then. In a rank: runs
// `main` and does not return.
inline base::Status on_gpus(int ranks, const world::RankMain& main) {
  const base::Result<world::Launch> launch = world::from_environment(world::process_environment());
  if (!launch) return launch.as_error();
  if (launch.value().launcher == world::Launcher::shardbook) {
    // The output of all but rank 0 is dropped, but not what they say on stderr.
    std::fflush(stdout);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    const base::Status ran = world::run_process(launch.value(), main);
    std::fflush(stdout);
    std::_Exit(ran.ok() && !testing::Test::HasFailure() ? 0 : 1);
  }
  // A rank runs its one test, whichever part of all of them this process was asked for
  unsetenv("GTEST_TOTAL_SHARDS");
  unsetenv("GTEST_SHARD_INDEX");
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string only_this = base::text("--gtest_filter=", test.test_suite_name(), ".", test.name());
  const base::Result<world::SpawnOutcome> ended = world::spawn_processes(world::own_program(), {only_this, "--gtest_brief=1"}, ranks);
  if (!ended) return ended.as_error();
  if (ended.value().exit_code != 0) return base::Error{ended.value().first_cause};
  return base::Done{};
}

}  // namespace shardbook::gpu_test
