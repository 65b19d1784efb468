// Ranks for tests: processes with a host device each, over memory that they share. They are forked, so that a test's
// body is a lambda, as it is for threads (host_ranks.hpp).
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/comm/loopback/processes.hpp"
#include "engine/device/host/shared_host_device.hpp"
#include "engine/world/processes.hpp"
#include "engine/world/wire.hpp"
#include "tests/support/host_ranks.hpp"
#include "tests/support/run_id.hpp"

namespace shardbook::tests {

struct ProcessEnds {
  std::string error;                  // what the first rank that said something said; "" if all went well
  std::vector<std::string> said;      // by rank: what run_process came to, or which check of the test failed
  std::vector<int> status;            // by rank, of waitpid
  double seconds = 0;
};

// Shared memory that was left behind would be a file of a name here. (Other tests' folders come and go beside it.)
inline std::set<std::string> named_segments() {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    if (entry.is_regular_file(ignored)) names.insert(entry.path().filename().string());
  }
  return names;
}

// The processes that this one has started and not fetched.
inline std::string children_left() {
  std::ifstream file("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs `body` in `ranks` processes; the whole takes at most `limit`, then what still runs is killed and the error says so.
inline ProcessEnds on_process_ranks(int ranks, const std::function<void(HostRank&)>& body, comm::Patience patience = {},
                                    std::uint64_t drain_seed = 0, std::chrono::seconds limit = std::chrono::seconds(30)) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  base::Result<world::Listener> listener = world::listen_on(0, 1);
  SHARDBOOK_CHECK(listener.ok(), listener.ok() ? "" : listener.error());
  const std::string run_id = own_run_id();   // before there are other processes
  std::vector<pid_t> children;
  std::vector<std::string> files;
  for (int rank = 0; rank < ranks; ++rank) {
    files.push_back((std::filesystem::temp_directory_path() / base::text("shardbook-rank-", ::getpid(), "-", rank)).string());
    children.push_back(::fork());
    if (children.back() != 0) continue;
    world::Launch launch;
    launch.launcher = world::Launcher::torchrun;   // anybody's but ours: there is no parent of ours to report to
    launch.place = {rank, ranks, rank, ranks, 0};
    launch.port = listener.value().port;
    launch.run_id = run_id;
    launch.secret = "the tests' own secret";
    if (rank == 0) launch.listen_fd = listener.value().fd;
    else ::close(listener.value().fd);
    const base::Status ran = world::run_process(launch, [&](world::World& world) {
      device::SharedHostDevice device({base::DType::f32, base::DType::f32}, world.rank(), drain_seed);
      const std::unique_ptr<comm::Backend> backend = comm::make_process_backend(world, device, patience);
      device.set_watch([&world] { world.throw_if_failed(); });
      HostRank host_rank{world, device, *backend};
      body(host_rank);
    });
    const std::string said = !ran ? ran.error() : testing::Test::HasFailure() ? base::text("a check of the test failed on rank ", rank) : "";
    std::ofstream(files.back()) << said;
    std::fflush(nullptr);
    ::_exit(said.empty() ? 0 : 1);
  }
  ::close(listener.value().fd);

  // Await all; what hangs is an error of its own
  ProcessEnds ends;
  ends.status.resize(children.size(), -1);
  std::set<int> running, stopped;
  for (int rank = 0; rank < ranks; ++rank) running.insert(rank);
  while (!running.empty()) {
    const bool over = Clock::now() - begin > limit;
    for (const int rank : std::vector<int>(running.begin(), running.end())) {
      const std::size_t at = static_cast<std::size_t>(rank);
      if (over) ::kill(children[at], SIGKILL);
      if (::waitpid(children[at], &ends.status[at], over ? 0 : WNOHANG | WUNTRACED) != children[at]) continue;
      if (WIFSTOPPED(ends.status[at])) stopped.insert(rank);
      else running.erase(rank), stopped.erase(rank);
    }
    // Who is stopped when all others have ended would be killed by who started them.
    if (running == stopped) {
      for (const int rank : stopped) ::kill(children[static_cast<std::size_t>(rank)], SIGKILL);
    }
    if (over) ends.error = "ranks hang: killed after the test's limit";
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (const std::string& file : files) {
    std::ifstream content(file);
    ends.said.emplace_back(std::istreambuf_iterator<char>(content), std::istreambuf_iterator<char>());
    if (ends.error.empty()) ends.error = ends.said.back();
    std::filesystem::remove(file);
  }
  ends.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return ends;
}

}  // namespace shardbook::tests
