// world/signals: Ctrl-C ends a run at the end of a step, the same on all ranks.
//
// Idea: SIGINT, SIGTERM and SIGHUP (a terminal or an ssh that is gone) set a flag; World::step_ended turns it into
// request_stop. A second signal later than a second after the first ends the process at once with code 128 + n
// (earlier ones are the same Ctrl-C, delivered by the terminal and again by a launcher). An output that nobody reads
// any more (SIGPIPE: `| head`) sets the flag too, once.
#pragma once

#include <array>
#include <csignal>

namespace shardbook::world {

// While it lives, those signals are requests to stop. One at a time in a process; the former
// handlers return with its end, and the flag is cleared.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  std::array<struct sigaction, 4> former_{};
};

// The signal that asked for the stop, or 0. Cheap; any thread.
int stop_signal() noexcept;

}  // namespace shardbook::world
