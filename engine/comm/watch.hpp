// comm/watch: has a collective hung, and who is to blame?
//
// A thread of each rank looks every now and then at how long the oldest call has waited, says what the rank has called by
// the end of its last steps, and hears whether ranks of a group differ in that (world::Claim). Where a call has waited
// too long, or ranks differ, every rank is asked for its flight (flight.hpp), they are judged (check/flight.hpp), and the
// run fails with that sentence; where each rank is goes to stderr. A rank that is blocked is freed as after any failure,
// by Backend::abort.
//
// Invariants
//   - This thread calls neither CUDA nor NCCL, so it goes on when those block. What asks them is a second thread,
//     `Poll`, that may get stuck: then nothing seems to end, which is the truth.
//   - The rank's own thread does nothing for it but write in its log: no lock, no memory, no message.
//   - A rank that is slow is not a rank that hangs: nothing is said before the time is over. Nor is a process that was
//     stopped as a whole and goes on: time in which this thread did not look does not count.
//
// Follows PyTorch (pytorch/pytorch @0007e752, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp: ncclCommWatchdog polls the
// events of calls, heartbeatMonitor watches the watchdog, which may be stuck in CUDA), with the difference that ranks
// compare at once instead of leaving files.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/comm/flight.hpp"

namespace shardbook::comm {

// Calls `act` every `interval` on a thread of its own, until it goes. Not while `act` is stuck, which its owner ends first.
class Poll {
 public:
  Poll(std::chrono::milliseconds interval, std::function<void()> act);
  ~Poll();
  Poll(const Poll&) = delete;
  Poll& operator=(const Poll&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

class Watch {
 public:
  // `timeout` of zero: waits are not timed, and claims are still watched. World and flight outlive this.
  Watch(world::World& world, Flight& flight, std::chrono::milliseconds timeout);
  ~Watch();

 private:
  void look();
  base::Nanoseconds waited() const;
  void settle(const world::Dispute& dispute);
  void fail(const check::Verdict& verdict);

  world::World& world_;
  Flight& flight_;
  const std::chrono::milliseconds timeout_;
  // Of the thread that looks.
  bool told_ = false;
  std::int64_t claimed_ = -1;                            // the last step whose claims were sent
  base::Nanoseconds looked_ = 0, looks_since_ = 0;       // last, and without a gap
  Poll poll_;
};

}  // namespace shardbook::comm
