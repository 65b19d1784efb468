// tests/world: the control plane over TCP. Here each rank is a thread of the test with a connection
// of its own, so that sanitizers see both ends; test_children.cpp has real processes.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>

#include "engine/world/processes.hpp"
#include "engine/world/wire.hpp"
#include "tests/support/own_ports.hpp"
#include "tests/support/run_id.hpp"
#include "tests/world/roles.hpp"

namespace shardbook::world::test {

namespace {

using namespace std::chrono_literals;

// Rank `rank` of a run whose ports begin at `port`.
Launch launch_of(base::Rank rank, int size, int port, const std::string& run_id = tests::own_run_id()) {
  Launch launch;
  launch.launcher = Launcher::shardbook;
  launch.place = Place{rank, size, rank, size, 0};
  launch.port = port;
  launch.port_candidates = 16;
  launch.run_id = run_id;
  launch.secret = "the tests' own secret";
  return launch;
}

struct TestRun {
  int size = 3;
  int port = tests::own_port();
  std::string run_id = tests::own_run_id();
  ProcessOptions options;
  std::vector<base::Rank> absent;
};

// What run_process said on each rank; "" is success.
std::vector<std::string> run_all(const TestRun& run, const RankMain& main) {
  std::vector<std::string> said(run.size);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < run.size; ++rank) {
    if (std::count(run.absent.begin(), run.absent.end(), rank) > 0) continue;
    ranks.emplace_back([&, rank] {
      const auto status = run_process(launch_of(rank, run.size, run.port, run.run_id), main, run.options);
      if (!status.ok()) said[rank] = status.error();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return said;
}

const std::vector<std::string> all_well(3, "");

}  // namespace

// Whose tests run beside each other, each in a process, meet nobody at their ports.
TEST(OwnPorts, AreNobodyElses) {
  tests::OwnPorts mine, other;
  std::set<int> all;
  for (int run = 0; run < 4; ++run) {
    all.insert(mine.next());
    all.insert(other.next());
  }
  ASSERT_EQ(all.size(), 8u);
  int last = 0;
  for (const int port : all) {
    EXPECT_GE(port, last + tests::OwnPorts::at_once);
    last = port;
  }
}

TEST(Processes, GatherBroadcastAndAwaitEachOther) {
  std::atomic<int> arrived{0};
  const auto said = run_all({}, [&](World& world) {
    EXPECT_FALSE(world.shares_memory());
    EXPECT_EQ(world.node(), 0);
    ++arrived;
    world.barrier();
    EXPECT_EQ(arrived.load(), 3);
    for (int round = 0; round < 20; ++round) {
      const auto all = world.all_gather(std::string(world.rank(), 'x') + std::to_string(round));
      ASSERT_EQ(all.size(), 3u);
      for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(all[rank], std::string(rank, 'x') + std::to_string(round));
      EXPECT_EQ(world.broadcast(std::to_string(world.rank()), round % 3), std::to_string(round % 3));
    }
  });
  EXPECT_EQ(said, all_well);
}

TEST(Processes, MessagesLargerThanAnySocketBufferArriveWhole) {
  const auto said = run_all({}, [](World& world) {
    std::string mine(8 << 20, static_cast<char>('a' + world.rank()));
    mine.back() = '!';
    const auto all = world.all_gather(mine);
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(all[rank].size(), mine.size());
      EXPECT_EQ(all[rank].front(), static_cast<char>('a' + rank));
      EXPECT_EQ(all[rank].back(), '!');
    }
  });
  EXPECT_EQ(said, all_well);
}

TEST(Processes, AThrowIsTheSameFirstCauseOnAllRanks) {
  Stopwatch watch;
  const auto said = run_all({}, [](World& world) {
    world.barrier();
    if (world.rank() == 2) throw std::runtime_error("no memory for layer 7");
    world.barrier();
  });
  const std::string expected =
      base::text("rank 2 (pid ", getpid(), " on ", host_name(), "): no memory for layer 7");
  EXPECT_EQ(said, std::vector<std::string>(3, expected));
  EXPECT_LT(watch.seconds(), 3);
}

TEST(Processes, DifferentCallsAndEarlyReturnsAreFailures) {
  const auto mismatch = run_all({}, [](World& world) {
    world.rank() == 0 ? world.barrier() : (void)world.all_gather("x");
  });
  // Which of them comes first is the scheduler's choice.
  EXPECT_TRUE(mismatch[0].find("called all_gather while rank 0 waits in barrier") != std::string::npos ||
              mismatch[0].find(" waits in all_gather") != std::string::npos) << mismatch[0];
  EXPECT_NE(mismatch[0].find("all ranks must make the same calls"), std::string::npos) << mismatch[0];
  EXPECT_EQ(mismatch[0], mismatch[1]);
  const auto early = run_all({}, [](World& world) {
    if (world.rank() != 1) world.barrier();
  });
  EXPECT_NE(early[2].find("rank 1"), std::string::npos);
  EXPECT_NE(early[2].find("returned while rank"), std::string::npos);
  EXPECT_EQ(early[0], early[1]);
}

TEST(Processes, NameTheRanksThatDidNotArrive) {
  TestRun run;
  run.size = 6;
  run.absent = {1, 3, 4};
  run.options.connect_timeout = 3s;   // longer than the others take on a busy machine
  const auto said = run_all(run, [](World& world) { world.barrier(); });
  EXPECT_NE(said[0].find("ranks 1, 3-4 of 6 did not arrive at "), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("within 3.0 s"), std::string::npos) << said[0];
  EXPECT_EQ(said[0], said[2]);
  EXPECT_EQ(said[0], said[5]);
}

TEST(Processes, SayWhereTheyLookedWhenRankZeroDidNotArrive) {
  TestRun run;
  run.size = 2;
  run.absent = {0};
  run.options.connect_timeout = 100ms;
  const auto said = run_all(run, [](World& world) { world.barrier(); });
  EXPECT_NE(said[1].find(base::text("rank 1 found no control server of this run at 127.0.0.1, ports ", run.port)),
            std::string::npos) << said[1];
  EXPECT_NE(said[1].find("Connection refused"), std::string::npos) << said[1];
}

TEST(Processes, TwoRunsThatShareTheirPortsFindTheirOwnRanks) {
  TestRun first, second;
  second.port = first.port;
  second.run_id += ", another";
  std::vector<std::string> said_first, said_second;
  const auto same_run = [](const std::string& id) {
    return [id](World& world) {
      for (const std::string& other : world.all_gather(id)) EXPECT_EQ(other, id);
    };
  };
  std::thread one([&] { said_first = run_all(first, same_run("first")); });
  std::thread two([&] { said_second = run_all(second, same_run("second")); });
  one.join();
  two.join();
  EXPECT_EQ(said_first, all_well);
  EXPECT_EQ(said_second, all_well);
}

TEST(Processes, AStrangerOnTheFirstPortIsPassedBy) {
  TestRun run;
  auto stranger = listen_on(run.port, 1);
  ASSERT_TRUE(stranger.ok());
  const auto said = run_all(run, [](World& world) { world.barrier(); });
  EXPECT_EQ(said, all_well);
  close(stranger.value().fd);
}

TEST(Processes, StrangersBytesAtTheServerDisturbNobody) {
  TestRun run;
  const auto said = run_all(run, [&](World& world) {
    if (world.rank() == 1) {
      // Noise, a length beyond all bounds, a hello that ends early, and silence.
      const std::string whole = encode(Hello{run.run_id, 1, 2, 1, 2, 0, getpid(), "host", std::string(32, 'r'), "clock", "pids"});
      ASSERT_TRUE(decode_hello(whole));
      const std::string hello = whole.substr(0, whole.size() / 2);
      ASSERT_LT(hello.size(), 256u);
      const std::string torn_hello = std::string{static_cast<char>(hello.size()), 0, 0, 0, 0} + hello;
      for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(5, '\xff'), torn_hello,
                                       std::string()}) {
        auto fd = connect_to("127.0.0.1", run.port, 1000);
        ASSERT_TRUE(fd.ok());
        ::send(fd.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        std::this_thread::sleep_for(60ms);
        close(fd.value());
      }
    }
    world.barrier();
  });
  EXPECT_EQ(said, all_well);
}

TEST(Processes, APortThatIsTakenIsOneSentence) {
  auto taken = listen_on(0, 1);
  ASSERT_TRUE(taken.ok());
  Launch launch = launch_of(0, 2, taken.value().port);
  launch.port_candidates = 1;
  const auto status = run_process(launch, [](World&) {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error(), base::text("the control server of rank 0 cannot listen on port ", taken.value().port,
                                       " (Address already in use); set SHARDBOOK_PORT to a free port on all ranks"));
  close(taken.value().fd);
}

TEST(Processes, TwoRanksOfOneNumberAreRefused) {
  TestRun run;
  run.options.connect_timeout = 2s;
  std::string twin;
  const auto said = run_all(run, [&](World& world) {
    world.barrier();
    if (world.rank() == 1) {
      const auto status = run_process(launch_of(1, 3, run.port), [](World&) {}, run.options);
      twin = status.ok() ? "" : status.error();
    }
    world.barrier();
  });
  EXPECT_EQ(said, all_well);
  EXPECT_NE(twin.find("rank 0 refused rank 1: rank 1 (pid "), std::string::npos) << twin;
}

TEST(Processes, TwoRanksOfOneGpuAreRefused) {
  const int port = tests::own_port();
  std::vector<std::string> said(2);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      Launch launch = launch_of(rank, 2, port);
      launch.place.local_rank = 0;
      const auto status = run_process(launch, [](World& world) { world.barrier(); });
      said[rank] = status.ok() ? "" : status.error();
    });
  }
  for (auto& rank : ranks) rank.join();
  EXPECT_NE(said[0].find("both say local rank 0 of node 0"), std::string::npos) << said[0];
  EXPECT_EQ(said[0], said[1]);
}

TEST(Processes, OffsetsOfOneClockAreWithinTheirOwnError) {
  TestRun run;
  run.options.trust_shared_clock = false;
  const auto said = run_all(run, [](World& world) {
    const ClockOffset offset = world.measure_clock();
    if (world.rank() == 0) {
      EXPECT_EQ(offset.error, 0);
    } else {
      EXPECT_GT(offset.error, 0);
      EXPECT_LT(offset.error, 20'000'000);
      EXPECT_LE(std::abs(offset.offset), offset.error);
    }
  });
  EXPECT_EQ(said, all_well);
}

TEST(Processes, RanksOfOneKernelNeedNoMeasurement) {
  const auto said = run_all({}, [](World& world) {
    const ClockOffset offset = world.measure_clock();
    EXPECT_EQ(offset.offset, 0);
    EXPECT_EQ(offset.error, 0);
  });
  EXPECT_EQ(said, all_well);
}

TEST(Processes, StopAfterTheSameStepHoweverFarApartTheyAre) {
  for (int asking = 0; asking < 3; ++asking) {
    std::mutex mutex;
    std::set<std::int64_t> last_steps;
    const auto said = run_all({}, [&](World& world) {
      std::int64_t step = 100;  // as after a resume
      while (!world.step_ended(step)) {
        if (world.rank() == asking && step == 105) world.request_stop();
        std::this_thread::sleep_for(world.rank() == 0 ? 50us : 1500us);
        ++step;
      }
      std::lock_guard lock(mutex);
      last_steps.insert(step);
    });
    EXPECT_EQ(said, all_well);
    EXPECT_EQ(last_steps.size(), 1u);
    EXPECT_GE(*last_steps.begin(), 106);
  }
}

TEST(Processes, AStopNeverHoldsARankThatAnotherAwaits) {
  // The promise is given by the service thread, so ranks in lock-step cannot deadlock on it.
  for (int round = 0; round < 5; ++round) {
    const auto said = run_all({}, [&](World& world) {
      std::int64_t step = 0;
      do {
        world.barrier();
        if (world.rank() == 1 && step == round) world.request_stop();
        world.barrier();
      } while (!world.step_ended(step) && ++step < 1000);
      EXPECT_LT(step, 1000);
    });
    EXPECT_EQ(said, all_well);
  }
}

TEST(Processes, ARunOfOneRankNeedsNoServer) {
  const auto status = run_process(Launch{}, [](World& world) {
    world.barrier();
    EXPECT_EQ(world.all_gather("x"), std::vector<std::string>{"x"});
    EXPECT_FALSE(world.step_ended(0));
    world.request_stop();
    EXPECT_TRUE(world.step_ended(1));
  });
  EXPECT_TRUE(status.ok());
}

}  // namespace shardbook::world::test
