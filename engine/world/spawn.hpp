// world/spawn: starting the ranks ourselves, as processes of this host.
//
// Idea: the parent binds the control port and hands the socket to rank 0, so no port is guessed;
// runs the program once a rank with SHARDBOOK_* variables; passes output and signals; and when one
// child ends badly, gives the others a few seconds to hear of it before it kills them.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::world {

struct SpawnOptions {
  // Variables set in every child, besides the parent's own.
  std::vector<std::pair<std::string, std::string>> environment;
  // Ranks of each pretended node, first to last; empty: one node with all. The sum is the number of
  // ranks. Node k gets SHARDBOOK_NODE=k and NCCL_HOSTID=<run>-node<k>, so that NCCL too sees hosts.
  std::vector<int> node_sizes;
  // CUDA_VISIBLE_DEVICES of each node ("0,1,2,3"); empty: left as it is.
  std::vector<std::string> visible_devices;
  // From the first bad end to SIGKILL for whoever still runs.
  std::chrono::milliseconds grace{6000};
  // A rank that is stopped (SIGSTOP) for so long is killed: that is its end, and a bad one. Zero: never.
  std::chrono::milliseconds longest_stop{0};
  // A rank that ends with this code was asked to stop: no failure. 0: there is none.
  int stopped_code = 0;
  // Where the forwarded output goes (file descriptors of this process).
  int output_fd = 1;
  int error_fd = 2;
};

struct SpawnOutcome {
  // 0 if all ranks ended with 0, stopped_code if some ended with that; else the exit code of the first cause's rank (128 + n: signal n).
  int exit_code = 0;
  // "" if all went well; else the first cause, as the ranks reported it or as waitpid saw it.
  std::string first_cause;
};

// Runs `program args...` as `size` ranks and waits for all. Rank 0's stdout and stderr pass
// through; of the others stdout is dropped and stderr comes line by line behind "[rank N] ". SIGINT, SIGTERM and SIGHUP
// are passed on to every child, once each, also while nobody takes what is written; an output that nobody reads any more stops them like SIGTERM. An error means that nothing ran (program not
// found, sizes that do not add up, no port).
base::Result<SpawnOutcome> spawn_processes(const std::string& program,
                                           const std::vector<std::string>& args, int size,
                                           const SpawnOptions& options = {});

// The path of the running program, for spawning itself.
std::string own_program();

}  // namespace shardbook::world
