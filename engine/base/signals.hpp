// base/signals: Ctrl-C ends what is under way, where that can be left.
//
// Idea: SIGINT, SIGTERM and SIGHUP (a terminal or an ssh that is gone) set a flag. A run looks at it at the end of a step
// (World::step_ended), so that all ranks end alike; a check of an exercise while it waits for its child. A second signal later than a second after the first ends the process at once with code 128 + n
// (earlier ones are the same Ctrl-C, delivered by the terminal and again by a launcher). An output that nobody reads
// any more (SIGPIPE: `| head`) sets the flag too, once.
#pragma once

namespace shardbook::base {

// While it lives, those signals are requests to stop; the former handlers return with the end of the last one. Guards may stand
// in each other (a check of notes makes runs) and in several threads: the first clears the flag, and so does the end of the
// last, so that a request to one is one to all.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
};

// The signal that asked for the stop, or 0. Cheap; any thread.
int stop_signal() noexcept;

}  // namespace shardbook::base
