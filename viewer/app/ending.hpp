// app/ending: Ctrl-C, or a terminal that closes, ends the program as closing its window does.
//
// Idea: SIGINT, SIGTERM and SIGHUP set a flag that the loops of frames look at, so that what was unpacked is removed
// and what was noted is saved. A second signal ends the program at once.
#pragma once

#include <array>
#include <csignal>

namespace shardbook::app {

// While it lives, the signals set the flag. One at a time in a process.
class EndingGuard {
 public:
  EndingGuard();
  ~EndingGuard();
  EndingGuard(const EndingGuard&) = delete;
  EndingGuard& operator=(const EndingGuard&) = delete;

 private:
  std::array<struct sigaction, 3> former_{};
};

// The signal that asked for the end, or 0.
int ending_signal() noexcept;

}  // namespace shardbook::app
