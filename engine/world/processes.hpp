// world/processes: the ranks are processes, on one host or many.
//
// Idea: rank 0 hosts a control server (control_server.hpp) on a thread; every rank, rank 0
// included, holds one TCP connection to it and one thread that serves it. A connection that closes
// without goodbye, a report of failure, or a silence longer than the heartbeat allows is the first
// cause, which the server pushes to all.
//
// Invariant: collectives never wait in the kernel for the peer; the service thread reads, the
// caller sleeps on a condition that failure also wakes.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "engine/base/result.hpp"
#include "engine/world/launchers.hpp"
#include "engine/world/world.hpp"

namespace shardbook::world {

struct ProcessOptions {
  // All ranks must have arrived within this time (SHARDBOOK_CONNECT_TIMEOUT_S).
  std::chrono::milliseconds connect_timeout{60000};
  // A rank that was silent so long has failed (SHARDBOOK_HEARTBEAT_TIMEOUT_S); beats are sent four
  // times as often. Time in which the listener itself did not run is not counted.
  std::chrono::milliseconds heartbeat_timeout{15000};
  // A process that still runs so long after the first failure ends itself with exit code 1 and the
  // cause on stderr, because it may be stuck in a call that nothing can wake. Zero: never.
  std::chrono::milliseconds patience_after_failure{4000};
  // Ranks whose kernel is the same read the same steady clock, so measure_clock needs no ping-pong
  // for them. False: measure all the same.
  bool trust_shared_clock = true;
};

// The defaults above with the variables named there. An error names the variable.
base::Result<ProcessOptions> process_options(const Environment& environment);

// What is said of a rank whose connection closes without goodbye.
inline constexpr std::string_view silent_end = "ended without a word";

// Tells the process that started this rank what went wrong, as its first cause if it is the first to be told.
void tell_parent(const std::string& cause);
// Rank 0 tells the process that started it (spawn.hpp) that it holds all that is needed, and is not to be killed
// should another rank end badly. Without such a parent nothing happens.
void hold_parent();
// The line by which it does, where a first cause would stand.
inline constexpr std::string_view hold_line = "+\n";

// Joins the run that `launch` names, runs `main` as its rank, and leaves when all ranks have left
// or failed. Every process of the run calls it once. An error is the first cause, the same sentence
// on all ranks: "rank 3 (pid 4711 on gpu07): ...", or what kept the ranks from meeting, such as
// "ranks 3, 5-7 of 8 did not arrive ... within 60 s". With launcher `none` it is one rank alone,
// without any socket.
base::Status run_process(const Launch& launch, const RankMain& main,
                         const ProcessOptions& options = {});

}  // namespace shardbook::world
