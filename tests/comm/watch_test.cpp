// A collective that hangs is named by its ranks, which compare what they have called; and so is a difference that hangs
// nothing. On the host, whose own way to find these out is left out here: it is what ranks with GPUs rely on.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "engine/comm/watch.hpp"
#include "tests/comm/words.hpp"
#include "tests/support/process_ranks.hpp"

namespace shardbook::tests {
namespace {

using namespace std::chrono_literals;
using base::DType;
using program::MemoryKind;
using program::OpKind;

constexpr double soon_seen_s = 6;

// One rank under watch, with memory for its calls.
struct Watched {
  HostRank& rank;
  std::unique_ptr<comm::Communicator> group;
  device::Stream& stream;
  tensor::Tensor memory;
  comm::Watch watch;

  explicit Watched(HostRank& of, std::chrono::milliseconds timeout = 400ms)
      : rank(of), group(of.backend.communicator(of.device, of.everyone("all"))), stream(of.device.create_stream("comm")),
        memory(tensor::allocate(of.device, {64}, DType::f32, MemoryKind::workspace, "memory")), watch(of.world, of.backend.flight(), timeout) {}
  void reduce(std::int64_t elements = 8) { group->all_reduce(stream, memory.slice(0, {elements}), memory.slice(0, {elements})); }
  // Until somebody fails.
  void do_something_else() {
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (std::chrono::steady_clock::now() < until && !rank.world.failed()) std::this_thread::sleep_for(5ms);
    rank.world.throw_if_failed();
  }
};

// The number behind these words; -1 where they do not stand.
double number_behind(const std::string& said, const std::string& words) {
  const std::size_t at = said.find(words);
  return at == std::string::npos ? -1 : std::atof(said.c_str() + at + words.size());
}

void come_late(HostRank& rank) {
  Watched one(rank, 1s);
  one.reduce();
  rank.device.synchronize();
  if (rank.world.rank() == 1) return one.do_something_else();
  one.reduce();
  rank.device.synchronize();
}

TEST(Watch, OfProcessesNamesWhoHasNotCalledIt) {
  const ProcessEnds ends = on_process_ranks(ranks, come_late);
  expect_words(ends.error, {"all_reduce of 32 bytes f32", "tests/comm/watch_test.cpp:", "call 2 over all (ranks 0, 1, 2), has not ended in ", "rank 1 (pid ", "has not called it",
                            "its last over all was all_reduce", "which has ended"});
  for (const std::string& said : ends.said) EXPECT_EQ(said, ends.error) << "one cause for all";
  EXPECT_GE(number_behind(ends.error, "has not ended in "), 1);
  EXPECT_LT(number_behind(ends.error, "has not ended in "), 2.5);
  EXPECT_LT(ends.seconds, soon_seen_s);
  EXPECT_EQ(children_left(), "");
}

TEST(Watch, OfThreadsNamesWhoHasNotCalledIt) {
  const std::string said = on_host_ranks(ranks, come_late);
  expect_words(said, {"call 2 over all (ranks 0, 1, 2), has not ended in ", "rank 1 has not called it"});
  EXPECT_GE(number_behind(said, "has not ended in "), 1);
  EXPECT_LT(number_behind(said, "has not ended in "), 2.5);
}

TEST(Watch, OfProcessesNamesWhoIsStopped) {
  for (const int stopped : {1, 2}) {
    const ProcessEnds ends = on_process_ranks(ranks, [&](HostRank& rank) {
      Watched one(rank);
      if (rank.world.rank() == stopped) ::raise(SIGSTOP);
      one.reduce();
      rank.device.synchronize();
    });
    expect_words(ends.said[0], {base::text("rank ", stopped, " (pid "), " is stopped: all_reduce of 32 bytes f32"});
    EXPECT_LT(ends.seconds, soon_seen_s);
  }
}

TEST(Watch, SaysNothingOfARankThatIsSlow) {
  EXPECT_EQ(on_process_ranks(ranks, [](HostRank& rank) {
    Watched one(rank, 2s);
    for (int step = 0; step < 5; ++step) {
      if (rank.world.rank() == 1) std::this_thread::sleep_for(200ms);
      one.reduce();
      rank.device.synchronize();
      rank.backend.flight().step_issued(step * comm::FlightLog::claimed_every);
    }
    rank.world.barrier();
  }).error, "");
}

// All-to-alls of other sizes may meet and end; here the splits fit, and rank 1 has called one collective more than it says
// together with the others. Nothing hangs: two calls of one group's members alone cannot, so it is planted in the log.
void differ_and_go_on(HostRank& rank) {
  Watched one(rank, 0ms);
  for (int step = 0; step < 1000; ++step) {
    one.reduce(8);
    rank.device.synchronize();
    if (step == 3 && rank.world.rank() == 1) {
      program::OpDesc desc("broadcast", program::OpKind::broadcast, DType::f32);
      rank.backend.flight().logs()[0]->called(4, one.stream, desc.collective_of({0, 0, 32, 0}), 0, {});
      rank.backend.flight().step_issued(step * comm::FlightLog::claimed_every);
      return one.do_something_else();
    }
    if (step == 3) {
      one.reduce(8);
      rank.backend.flight().step_issued(step * comm::FlightLog::claimed_every);
      return one.do_something_else();
    }
    rank.backend.flight().step_issued(step * comm::FlightLog::claimed_every);
  }
}

TEST(Watch, NamesADifferenceThoughNothingHangs) {
  const ProcessEnds ends = on_process_ranks(2, differ_and_go_on);
  for (const std::string& error : {ends.error, on_host_ranks(2, differ_and_go_on)}) {
    expect_words(error, {"over all (ranks 0, 1), call 5: rank 1", "calls another collective where rank 0 calls all_reduce of 32 bytes", "rank 1 calls broadcast of 32 bytes", "watch_test.cpp:"});
  }
  EXPECT_LT(ends.seconds, soon_seen_s);
}

// A receive that is left out hangs nothing where what was sent lies in a buffer of the way, and the next send meets the next
// receive: each call has its partner, but of another step.
void leave_a_receive_out(HostRank& rank) {
  Watched one(rank, 0ms);
  std::uint64_t ticket = 0;
  for (int step = 0; step < 3; ++step) {
    rank.device.begin_step(step * comm::FlightLog::claimed_every, false);
    program::OpDesc desc(rank.world.rank() == 0 ? "send" : "receive", rank.world.rank() == 0 ? OpKind::send : OpKind::recv, DType::f32);
    if (step != 1 || rank.world.rank() == 0) rank.backend.flight().logs()[0]->called(ticket++, one.stream, desc.collective_of({0, 0, 32, 1 - rank.world.rank()}), 0, {});
    rank.device.end_step();
    rank.backend.flight().step_issued(step * comm::FlightLog::claimed_every);
  }
  one.do_something_else();
}

TEST(Watch, NamesAReceiveThatWasLeftOutThoughNothingHangs) {
  const ProcessEnds ends = on_process_ranks(2, leave_a_receive_out);
  expect_words(ends.error, {"over all (ranks 0, 1), call 2: rank 1", "leaves out what rank 0 calls send of 32 bytes f32 (step 16", "rank 1 calls receive of 32 bytes f32 (step 32"});
  EXPECT_LT(ends.seconds, soon_seen_s);
}

// At the end of a run they compare once more, so that no run in which ranks called different things ends well.
void differ_and_end(HostRank& rank) {
  Watched one(rank, 0ms);
  one.reduce(8);
  rank.device.synchronize();
  comm::compare_flights(rank.world, rank.backend.flight());
  if (rank.world.rank() == 1) {
    program::OpDesc desc("reduce_scatter", program::OpKind::reduce_scatter, DType::f32);
    rank.backend.flight().logs()[0]->called(1, one.stream, desc.collective_of({0, 0, 32, -1}), 0, {});
  } else {
    one.reduce(8);
  }
  comm::compare_flights(rank.world, rank.backend.flight());
  ADD_FAILURE() << "it should have thrown";
}

TEST(Watch, ComparesAtTheEnd) {
  for (const std::string& error : {on_process_ranks(2, differ_and_end).error, on_host_ranks(2, differ_and_end)}) {
    expect_words(error, {"over all (ranks 0, 1), call 2: rank 1 calls another collective where rank 0 calls all_reduce of 32 bytes", "rank 1 calls reduce_scatter of 32 bytes"});
  }
}

}  // namespace
}  // namespace shardbook::tests
