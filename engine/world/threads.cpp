// world/threads: one hub under one mutex.
//
// Invariant: a result stays in the hub until every rank has fetched it, because the next exchange
// cannot complete without the rank that has not.
#include "engine/world/threads.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "engine/base/signals.hpp"
#include "engine/world/cause.hpp"
#include "engine/world/inquiry.hpp"

namespace shardbook::world {

namespace {

class ThreadWorld;

// What all ranks share.
struct Hub {
  explicit Hub(int ranks)
      : size(ranks), contributions(ranks), running(ranks, true), last_step(ranks, -1), worlds(ranks, nullptr) {}

  const int size;
  const std::shared_ptr<FailureNotice> notice = std::make_shared<FailureNotice>();

  std::mutex mutex;
  std::condition_variable changed;
  // The exchange under way.
  int arrived = 0;
  std::uint64_t exchanges_done = 0;
  std::string call_name;
  base::Rank first_caller = 0;
  std::vector<std::string> contributions;
  std::vector<std::string> result;
  // Who has returned; which step each has ended; after which to stop.
  std::vector<bool> running;
  int left = 0;
  std::vector<std::int64_t> last_step;
  std::optional<std::int64_t> stop_after;
  Claims claims;
  // Who can be asked, under a mutex of its own: an account may take a while.
  std::mutex worlds_mutex;
  std::vector<ThreadWorld*> worlds;

  // REQUIRES: the mutex is free.
  void fail(const std::string& cause) {
    notice->publish(cause);
    { std::lock_guard lock(mutex); }
    changed.notify_all();
  }

  std::string ranks_running() const {
    std::string ranks;
    for (int rank = 0; rank < size; ++rank) {
      if (running[rank]) ranks += base::text(ranks.empty() ? "" : ", ", rank);
    }
    return ranks;
  }
};

class ThreadWorld final : public World {
 public:
  ThreadWorld(Hub& hub, base::Rank rank)
      : World(Place{rank, hub.size, rank, hub.size, 0}, hub.notice), hub_(hub) {
    std::lock_guard lock(hub_.worlds_mutex);
    hub_.worlds[rank] = this;
  }
  ~ThreadWorld() override {
    std::lock_guard lock(hub_.worlds_mutex);
    hub_.worlds[rank()] = nullptr;
  }

  bool shares_memory() const override { return true; }

  ClockOffset measure_clock(int) override {
    barrier();
    return {};
  }

  void fail(const std::string& cause) override {
    hub_.fail(base::text("rank ", rank(), ": ", cause));
  }

  std::vector<Account> ask_all(std::chrono::milliseconds) override {
    throw_if_failed();
    std::lock_guard lock(hub_.worlds_mutex);
    std::vector<Account> all;
    for (int rank = 0; rank < size(); ++rank) {
      const ThreadWorld* world = hub_.worlds[rank];
      all.push_back({base::text("rank ", rank), world == nullptr ? "has returned" : "", world == nullptr ? "" : world->account()});
    }
    return all;
  }

  void claim(std::int64_t step, const std::vector<Claim>& claims) override {
    std::optional<Dispute> found;
    {
      std::lock_guard lock(hub_.mutex);
      for (const Claim& claim : claims) {
        if (const auto dispute = hub_.claims.add(rank(), step, claim); dispute && !found) found = dispute;
      }
    }
    if (!found) return;
    std::lock_guard lock(hub_.worlds_mutex);
    for (ThreadWorld* world : hub_.worlds) {
      if (world != nullptr) world->set_dispute(*found);
    }
  }

  void request_stop() override {
    std::lock_guard lock(hub_.mutex);
    if (hub_.stop_after) return;
    // The step that the foremost rank is in: nobody has ended it yet.
    hub_.stop_after = *std::max_element(hub_.last_step.begin(), hub_.last_step.end()) + 1;
  }

  bool step_ended(std::int64_t step) override {
    throw_if_failed();
    if (base::stop_signal() != 0) request_stop();
    std::lock_guard lock(hub_.mutex);
    hub_.last_step[rank()] = step;
    return hub_.stop_after && step >= *hub_.stop_after;
  }

 protected:
  std::vector<std::string> exchange(Call call, base::Rank root, std::string_view mine) override {
    const std::string name = name_of(call, root);
    std::unique_lock lock(hub_.mutex);
    throw_if_failed();

    // Is it the call that the others wait in, and are the others still there?
    if (hub_.arrived == 0) {
      hub_.call_name = name;
      hub_.first_caller = rank();
    }
    std::string mismatch;
    if (hub_.call_name != name) {
      mismatch = base::text("called ", name, " while rank ", hub_.first_caller, " waits in ",
                            hub_.call_name, "; all ranks must make the same calls in the same order");
    } else if (hub_.left > 0) {
      mismatch = base::text("called ", name, " after another rank had returned");
    }
    if (!mismatch.empty()) {
      lock.unlock();
      fail(mismatch);
      throw_if_failed();
    }

    // The last to arrive makes the result; the others sleep until it or a failure comes.
    hub_.contributions[rank()] = mine;
    const std::uint64_t own = hub_.exchanges_done;
    if (++hub_.arrived == hub_.size) {
      hub_.result = take_result(call, root, std::move(hub_.contributions));
      hub_.contributions.assign(hub_.size, {});
      hub_.arrived = 0;
      ++hub_.exchanges_done;
      hub_.changed.notify_all();
    } else {
      hub_.changed.wait(lock, [&] { return hub_.exchanges_done != own || failed(); });
    }
    throw_if_failed();
    return hub_.result;
  }

 private:
  Hub& hub_;
};

// One rank from its first line to its last.
void run_rank(Hub& hub, base::Rank rank, const RankMain& main) {
  ThreadWorld world(hub, rank);
  try {
    main(world);
  } catch (const std::exception& failure) {
    world.fail(cause_of(failure));
  } catch (...) {
    world.fail("threw something that is no std::exception");
  }
  std::string abandoned;
  {
    std::lock_guard lock(hub.mutex);
    hub.running[rank] = false;
    ++hub.left;
    if (hub.arrived > 0) {
      abandoned = base::text("returned while rank ", hub.first_caller, " waits in ", hub.call_name);
    }
  }
  if (!abandoned.empty()) world.fail(abandoned);
  hub.changed.notify_all();
}

}  // namespace

base::Status run_threads(int size, const RankMain& main, const ThreadOptions& options) {
  SHARDBOOK_CHECK(size >= 1, "run_threads with ", size, " ranks");
  Hub hub(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    try {
      threads.emplace_back([&hub, rank, &main] { run_rank(hub, rank, main); });
    } catch (const std::exception& failure) {
      hub.fail(base::text("rank ", rank, ": its thread cannot be started: ", cause_of(failure)));
      std::lock_guard lock(hub.mutex);
      hub.left += size - rank;
      for (int absent = rank; absent < size; ++absent) hub.running[absent] = false;
      break;
    }
  }

  // Wait for all; after a failure not for ever.
  {
    std::unique_lock lock(hub.mutex);
    const auto all_left = [&] { return hub.left == hub.size; };
    hub.changed.wait(lock, [&] { return all_left() || hub.notice->failed(); });
    if (options.patience_after_failure.count() == 0) {
      hub.changed.wait(lock, all_left);
    } else if (!hub.changed.wait_for(lock, options.patience_after_failure, all_left)) {
      std::fprintf(stderr, "%s. Ranks %s did not end within %lld ms after it; ending the process.\n",
                   hub.notice->cause().c_str(), hub.ranks_running().c_str(),
                   static_cast<long long>(options.patience_after_failure.count()));
      std::_Exit(1);
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (hub.notice->failed()) return base::Error{hub.notice->cause()};
  return base::Done{};
}

}  // namespace shardbook::world
