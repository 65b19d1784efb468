// tests/world: ranks as threads.
#include <gtest/gtest.h>

#include <csignal>
#include <new>
#include <set>
#include <system_error>
#include <thread>

#include "engine/base/signals.hpp"
#include "engine/world/cause.hpp"
#include "engine/world/threads.hpp"
#include "tests/world/roles.hpp"

namespace shardbook::world::test {

using namespace std::chrono_literals;

TEST(Threads, WithoutMemoryOrThreadsSayWhatToDo) {
  const auto status = run_threads(2, [](World& world) {
    if (world.rank() == 1) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    world.barrier();
  });
  EXPECT_EQ(status.error(), "rank 1: no thread can be made (Resource temporarily unavailable): raise the limit of processes (ulimit -u) or of memory (ulimit -v)");
  EXPECT_EQ(cause_of(std::bad_alloc()), "there was too little memory (std::bad_alloc): raise the limit (ulimit -v, -d), or make the run smaller");
  EXPECT_EQ(cause_of(base::Failure("layer 7 overflowed")), "layer 7 overflowed");
}

TEST(Threads, GatherWhatEachRankPassedInTheOrderOfRanks) {
  const auto status = run_threads(5, [](World& world) {
    for (int round = 0; round < 100; ++round) {
      const auto all = world.all_gather(std::string(world.rank(), 'x') + std::to_string(round));
      ASSERT_EQ(all.size(), 5u);
      for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(all[rank], std::string(rank, 'x') + std::to_string(round));
    }
  });
  EXPECT_TRUE(status.ok());
}

TEST(Threads, BroadcastFromEveryRoot) {
  const auto status = run_threads(3, [](World& world) {
    for (int root = 0; root < 3; ++root) {
      EXPECT_EQ(world.broadcast(std::to_string(world.rank()), root), std::to_string(root));
    }
  });
  EXPECT_TRUE(status.ok());
}

TEST(Threads, BarrierReleasesNobodyBeforeTheLastHasCome) {
  std::atomic<int> arrived{0};
  const auto status = run_threads(4, [&](World& world) {
    std::this_thread::sleep_for(5ms * world.rank());
    ++arrived;
    world.barrier();
    EXPECT_EQ(arrived.load(), 4);
  });
  EXPECT_TRUE(status.ok());
}

TEST(Threads, KnowTheirPlaceAndShareOneClock) {
  const auto status = run_threads(2, [](World& world) {
    EXPECT_EQ(world.local_rank(), world.rank());
    EXPECT_EQ(world.local_size(), 2);
    EXPECT_EQ(world.node(), 0);
    EXPECT_TRUE(world.shares_memory());
    const ClockOffset offset = world.measure_clock();
    EXPECT_EQ(offset.offset, 0);
    EXPECT_EQ(offset.error, 0);
  });
  EXPECT_TRUE(status.ok());
}

TEST(Threads, AnExceptionInOneRankEndsAllWithItsCause) {
  Stopwatch watch;
  std::atomic<int> told{0};
  const auto status = run_threads(4, [&](World& world) {
    if (world.rank() == 2) throw std::runtime_error("no memory for layer 7");
    try {
      world.barrier();
    } catch (const base::Failure& failure) {
      EXPECT_STREQ(failure.what(), "rank 2: no memory for layer 7");
      ++told;
      throw;
    }
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error(), "rank 2: no memory for layer 7");
  EXPECT_EQ(told.load(), 3);
  EXPECT_LT(watch.seconds(), 2);
}

TEST(Threads, ARankThatPollsSeesTheFailureToo) {
  const auto status = run_threads(2, [](World& world) {
    if (world.rank() == 1) throw std::runtime_error("first");
    while (!world.failed()) std::this_thread::yield();
    EXPECT_EQ(world.cause(), "rank 1: first");
    EXPECT_THROW(world.throw_if_failed(), base::Failure);
  });
  EXPECT_EQ(status.error(), "rank 1: first");
}

TEST(Threads, AFailureRunsEachLivingHookOnce) {
  std::atomic<int> ready{0};
  std::atomic<int> living{0};
  std::atomic<int> ended{0};
  std::atomic<int> late{0};
  const auto status = run_threads(2, [&](World& world) {
    FailureHook kept = world.on_failure([&] { ++living; });
    { FailureHook gone = world.on_failure([&] { ++ended; }); }
    ++ready;
    while (ready.load() < 2) std::this_thread::yield();
    if (world.rank() == 0) world.fail("asked to");
    while (living.load() < 2) std::this_thread::yield();
    FailureHook after = world.on_failure([&] { ++late; });
  });
  EXPECT_EQ(status.error(), "rank 0: asked to");
  EXPECT_EQ(living.load(), 2);
  EXPECT_EQ(ended.load(), 0);
  EXPECT_EQ(late.load(), 2);
}

// Which of two ranks comes first is the scheduler's choice: either sentence is right.
void expect_either(const base::Status& status, const std::string& one, const std::string& other) {
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(status.error() == one || status.error() == other) << status.error();
}

TEST(Threads, DifferentCallsAreAFailureThatNamesBoth) {
  const auto status = run_threads(2, [](World& world) {
    world.rank() == 0 ? world.barrier() : (void)world.broadcast("x", 1);
  });
  const std::string rule = "; all ranks must make the same calls in the same order";
  expect_either(status, "rank 1: called broadcast from rank 1 while rank 0 waits in barrier" + rule,
                "rank 0: called barrier while rank 1 waits in broadcast from rank 1" + rule);
}

TEST(Threads, ARankThatReturnsEarlyDoesNotLeaveTheOthersWaiting) {
  for (const auto delay : {0ms, 20ms}) {
    const auto status = run_threads(2, [&](World& world) {
      if (world.rank() == 1) return;
      std::this_thread::sleep_for(delay);
      world.barrier();
    });
    expect_either(status, "rank 1: returned while rank 0 waits in barrier",
                  "rank 0: called barrier after another rank had returned");
  }
}

TEST(ThreadsDeathTest, ARankThatNothingCanWakeEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT((void)run_threads(2,
                                [](World& world) {
                                  if (world.rank() == 1) throw std::runtime_error("gone");
                                  std::this_thread::sleep_for(10min);
                                },
                                {100ms}),
              testing::ExitedWithCode(1), "rank 1: gone. Ranks 0 did not end within 100 ms");
}

TEST(Threads, StopAfterTheSameStepWhoeverAsksAndHoweverFarApartTheyAre) {
  std::mutex mutex;
  std::set<std::int64_t> last_steps;
  const auto status = run_threads(4, [&](World& world) {
    std::int64_t step = 0;
    while (!world.step_ended(step)) {
      if (world.rank() == 3 && step == 5) world.request_stop();
      std::this_thread::sleep_for(world.rank() == 0 ? 100us : 1000us);
      ++step;
    }
    std::lock_guard lock(mutex);
    last_steps.insert(step);
  });
  ASSERT_TRUE(status.ok()) << status.error();
  EXPECT_EQ(last_steps.size(), 1u);
  EXPECT_GE(*last_steps.begin(), 6);
}

TEST(Threads, StopAtTheNextStepEndOnSigint) {
  base::SignalGuard guard;
  std::mutex mutex;
  std::set<std::int64_t> last_steps;
  const auto status = run_threads(2, [&](World& world) {
    std::int64_t step = 0;
    for (;; ++step) {
      world.barrier();
      if (step == 3 && world.rank() == 1) raise(SIGINT);
      world.barrier();
      if (world.step_ended(step)) break;
    }
    std::lock_guard lock(mutex);
    last_steps.insert(step);
  });
  ASSERT_TRUE(status.ok()) << status.error();
  EXPECT_EQ(base::stop_signal(), SIGINT);
  EXPECT_EQ(last_steps, (std::set<std::int64_t>{3}));
}

TEST(Signals, AreClearedWithTheGuard) {
  {
    base::SignalGuard guard;
    raise(SIGTERM);
    EXPECT_EQ(base::stop_signal(), SIGTERM);
  }
  EXPECT_EQ(base::stop_signal(), 0);
}

}  // namespace shardbook::world::test
