// world/world: how do ranks find, await and abort each other?
//
// Idea: the ranks of one run share a small control plane, apart from the collectives that move
// tensors. It carries only what is short and rare: communicator ids, hashes, clock readings, the
// agreement on a last step, and above all the first cause when something fails. A rank is a thread
// (threads.hpp) or a process with one TCP connection to rank 0 (processes.hpp); users of World see
// no difference.
//
// Invariants:
//   - all ranks make the same collective calls of World in the same order; a different call, or a
//     rank that leaves while another waits for it, fails the run and names both ranks;
//   - when one rank fails, every blocked or later call of every rank throws base::Failure with the
//     one first cause, within seconds;
//   - in a run without failures, World starts no traffic between two calls but heartbeats, and claims where its owner makes some.
//
// Follows the ideas of torch.distributed's TCPStore and torchrun's agent, with the difference that
// failure is pushed to all ranks instead of found by time-outs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/base/result.hpp"
#include "engine/base/types.hpp"

namespace shardbook::world {

// Where a rank stands. A node is a host, or a group of processes that pretends to be one
// (SHARDBOOK_NODE); ranks of a node have local_rank 0 .. local_size-1.
struct Place {
  base::Rank rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int node = 0;
};

// The clock that all of this measures: std::chrono::steady_clock, in nanoseconds.
base::Nanoseconds now();

// clock of rank 0 = own now() + offset, within ± error, when the own clock showed `at`. All 0 for threads, for rank 0,
// and for ranks that read its very clock, which therefore never part from it.
struct ClockOffset {
  base::Nanoseconds offset = 0;
  base::Nanoseconds error = 0;
  base::Nanoseconds at = 0;
};

// The first cause, once there is one. Any thread may call anything here.
class FailureNotice {
 public:
  // Cheap enough for a spin loop.
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  // The first cause; empty while nothing failed.
  std::string cause() const;
  // The first call wins and runs the hooks; later ones do nothing.
  void publish(const std::string& cause);

 private:
  friend class FailureHook;
  std::atomic<bool> failed_{false};
  mutable std::mutex cause_mutex_;
  std::string cause_;
  std::mutex hooks_mutex_;
  std::uint64_t next_hook_ = 0;
  bool hooks_ran_ = false;
  std::vector<std::pair<std::uint64_t, std::function<void()>>> hooks_;
};

// Runs `act` once when the run fails (at once if it has failed already), on whichever thread
// learned of it; never after the hook's destruction. `act` wakes waiters or aborts a communicator;
// it must not block, nor make or destroy hooks.
class [[nodiscard]] FailureHook {
 public:
  FailureHook() = default;
  FailureHook(FailureNotice& notice, std::function<void()> act);
  ~FailureHook();
  FailureHook(FailureHook&& other) noexcept;
  FailureHook& operator=(FailureHook&& other) noexcept;

 private:
  FailureNotice* notice_ = nullptr;
  std::uint64_t id_ = 0;
};

// What ranks that belong together must have alike, by the end of the same step: `what` names it, `of` ranks claim it.
struct Claim {
  std::uint64_t what = 0;
  int of = 1;
  std::uint64_t value = 0;
};
// The first claims that differ: one < other.
struct Dispute {
  std::int64_t step = 0;
  std::uint64_t what = 0;
  base::Rank one = 0, other = 0;
};

// What a rank says of itself.
struct Account {
  std::string name;      // "rank 3 (pid 4711 on gpu07)"
  std::string absent;    // why it says nothing: "is stopped", "has returned", "does not answer"; "" where it does
  std::string said;
};

// One rank's view of the run. Collective calls (marked) come from one thread a rank; failed(),
// cause(), fail() and on_failure() may come from any thread.
class World {
 public:
  virtual ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const Place& place() const { return place_; }
  base::Rank rank() const { return place_.rank; }
  int size() const { return place_.size; }
  int local_rank() const { return place_.local_rank; }
  int local_size() const { return place_.local_size; }
  int node() const { return place_.node; }

  // The collective calls; what follows is for implementations and messages.
  enum class Call : std::uint8_t { barrier, broadcast, all_gather, gather };
  // "broadcast from rank 2", for messages.
  static std::string name_of(Call call, base::Rank root);
  // What a call returns, given what each rank passed.
  static std::vector<std::string> take_result(Call call, base::Rank root,
                                              std::vector<std::string> contributions);

  // True if all ranks are threads of this process, so that a pointer sent by one is valid in all.
  virtual bool shares_memory() const = 0;

  // Collective. Returns when every rank has called it. Throws base::Failure if the run failed.
  void barrier();
  // Collective. Every rank gets what `root` passed as `bytes`; what the others pass is ignored.
  // For small messages (at most 64 MiB). Throws base::Failure if the run failed.
  std::string broadcast(std::string_view bytes, base::Rank root);
  // Collective. Element r is what rank r passed; lengths may differ. Throws like broadcast.
  std::vector<std::string> all_gather(std::string_view mine);

  // Collective. On rank 0, element r is what rank r passed; on the others nothing. Of any length: it travels in
  // pieces, to rank 0 only. Throws like broadcast.
  std::vector<std::string> gather(std::string_view mine);

  // Collective. Estimates the clock of rank 0 by `rounds` ping-pongs, of which the one with the
  // shortest round trip is believed; error is half that round trip. Ranks take turns.
  virtual ClockOffset measure_clock(int rounds = 200) = 0;

  // Publishes "rank R (where): cause" to all ranks; returns at once. The first cause wins.
  virtual void fail(const std::string& cause) = 0;
  bool failed() const noexcept { return notice_->failed(); }
  std::string cause() const { return notice_->cause(); }
  // Throws base::Failure with the first cause if there is one.
  void throw_if_failed() const;
  FailureHook on_failure(std::function<void()> act);

  // What this rank says of itself when any rank asks. `account` may be called on any thread, must not block, and must
  // not call World. Empty: nothing more; when this returns, the former one is not being called.
  void set_account(std::function<std::string()> account);
  // Asks all ranks; by rank. Returns when all have answered that can, or after `patience`. Any thread but that of an
  // account. Throws base::Failure if the run failed.
  virtual std::vector<Account> ask_all(std::chrono::milliseconds patience) = 0;
  // Claims of a step, each `what` once; all ranks of one claim the same steps. Returns at once, without hearing of the
  // others'. Any thread.
  virtual void claim(std::int64_t step, const std::vector<Claim>& claims) = 0;
  // The first dispute of the run, once there is one. Any thread.
  std::optional<Dispute> dispute() const;

  // Asks all ranks to end at the same step end, soon; returns at once. Any thread.
  virtual void request_stop() = 0;
  // Every rank calls this at the end of each step, counted up by one. True: this is the agreed
  // last step (step_ended said true on every rank, or will). A SIGINT, SIGTERM or SIGHUP seen by a
  // SignalGuard (base/signals.hpp) counts as request_stop. Costs a lock, never a round trip, unless a
  // stop was just asked for.
  virtual bool step_ended(std::int64_t step) = 0;

 protected:
  World(Place place, std::shared_ptr<FailureNotice> notice);
  // Awaits the same call of all ranks. Returns one string a rank (all_gather), only the root's
  // (broadcast), none (barrier), or what rank 0 gets (gather). Throws base::Failure if the run failed.
  virtual std::vector<std::string> exchange(Call call, base::Rank root, std::string_view mine) = 0;
  // What this rank says now; "" where nobody has said what.
  std::string account() const;
  void set_dispute(const Dispute& dispute);

  Place place_;
  std::shared_ptr<FailureNotice> notice_;

 private:
  mutable std::mutex account_mutex_;
  std::function<std::string()> account_;
  std::optional<Dispute> dispute_;
};

// The work of one rank. An exception that leaves it fails the run, its text being the cause.
using RankMain = std::function<void(World&)>;

}  // namespace shardbook::world
