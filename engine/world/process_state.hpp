// world/process_state: does a process of this host run?
//
// A rank that is stopped (SIGSTOP, a debugger) or has ended can be told from one that is only busy, and the sooner
// the others know, the sooner they end.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace shardbook::world {

enum class ProcessState : std::uint8_t {
  running,   // also where it sleeps, or nobody can tell
  stopped,
  ended,     // gone, or a zombie that its parent has not fetched yet
};

// As /proc says it. REQUIRES: the process is of this host and of this process' container.
ProcessState state_of_process(pid_t pid);

}  // namespace shardbook::world
