// Ranks of the host that all wait for each other are found out at once, and each is named.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/support/host_ranks.hpp"

namespace shardbook::tests {
namespace {

using base::DType;
using program::MemoryKind;

tensor::Tensor make(HostRank& rank, const std::string& name) {
  return tensor::allocate(rank.device, {64}, DType::f32, MemoryKind::workspace, name);
}

std::string error_of(int ranks, const std::function<void(HostRank&, comm::Communicator&, device::Stream&)>& body, std::uint64_t seed = 0) {
  return on_host_ranks(ranks, [&](HostRank& rank) {
    device::Stream& stream = rank.device.create_stream("comm");
    const auto group = rank.backend.communicator_or_alone(rank.device, rank.everyone("pp"));
    body(rank, *group, stream);
    rank.device.synchronize();
  }, seed);
}

void expect_deadlock(const std::string& error, const std::vector<std::string>& words) {
  EXPECT_NE(error.find("a deadlock"), std::string::npos) << error;
  for (const std::string& one : words) EXPECT_NE(error.find(one), std::string::npos) << one << " in: " << error;
}

// Each collective has a place by its number, and the next round there waits for this one. Until 2026-11-25 sends took numbers of
// collectives, whose places nobody came to: such ranks waited from the sixteenth call on, and were told of a deadlock of nobody.
TEST(Deadlock, IsNoneWhereAGroupSendsBetweenItsCollectives) {
  EXPECT_EQ(error_of(3, [](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
    const tensor::Tensor sum = make(rank, "sum"), pair = make(rank, "pair");
    for (int step = 0; step < 40; ++step) {
      group.all_reduce(stream, sum, sum);
      if (rank.world.rank() == 0) group.send(stream, pair, 1);
      if (rank.world.rank() == 1) group.receive(stream, pair, 0);
      group.all_reduce(stream, sum, sum);
      rank.device.synchronize();
    }
  }), "");
}

TEST(Deadlock, OfTwoSendsThatAwaitTheirReceivesIsNamed) {
  expect_deadlock(error_of(2, [](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
    const tensor::Tensor in = make(rank, "in"), out = make(rank, "out");
    group.send(stream, in, 1 - rank.world.rank());
    group.receive(stream, out, 1 - rank.world.rank());
  }), {"rank 0 in send 0 over pp for rank 1", "rank 1 in send 0 over pp for rank 0"});
}

TEST(Deadlock, OfARingThatAllSendFirstIsNamedWhateverTheOrderOfTheQueues) {
  for (const std::uint64_t seed : {0, 1, 7, 42}) {
    expect_deadlock(error_of(4, [](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
      const tensor::Tensor in = make(rank, "in"), out = make(rank, "out");
      group.send(stream, in, (rank.world.rank() + 1) % 4);
      group.receive(stream, out, (rank.world.rank() + 3) % 4);
    }, seed), {"rank 0 in send 0 over pp for rank 1", "rank 3 in send 0 over pp for rank 0"});
  }
}

TEST(Deadlock, OfARingWithStreamsForBothDirectionsIsNone) {
  for (const std::uint64_t seed : {0, 1, 7, 42}) {
    EXPECT_EQ(error_of(4, [](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
      device::Stream& other = rank.device.create_stream("receives");
      const tensor::Tensor in = make(rank, "in"), out = make(rank, "out");
      for (int round = 0; round < 20; ++round) {
        group.send(stream, in, (rank.world.rank() + 1) % 4);
        group.receive(other, out, (rank.world.rank() + 3) % 4);
      }
    }, seed), "");
  }
}

TEST(Deadlock, OfARankThatHasReturnedIsNamed) {
  expect_deadlock(error_of(3, [](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
    const tensor::Tensor in = make(rank, "in");
    if (rank.world.rank() != 1) group.all_reduce(stream, in, in);
  }), {"rank 0 in all_reduce 0 over pp for rank 1", "rank 2 in all_reduce 0 over pp for rank 1"});
}

TEST(Deadlock, IsNotTheCauseWhereARankFailed) {
  const std::string error = error_of(3, [](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
    const tensor::Tensor in = make(rank, "in");
    if (rank.world.rank() == 1) throw base::Failure("layer 7 overflowed");
    group.all_reduce(stream, in, in);
  });
  EXPECT_EQ(error, "rank 1: layer 7 overflowed");
}

TEST(Deadlock, IsNotSeenWhereARankIsOnlySlow) {
  EXPECT_EQ(error_of(3, [](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
    const tensor::Tensor in = make(rank, "in");
    if (rank.world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    group.all_reduce(stream, in, in);
  }), "");
}

TEST(AllToAll, KeepsTheSplitsOfCallsThatHaveNotRunOnly) {
  EXPECT_EQ(error_of(2, [](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
    const tensor::Tensor in = make(rank, "in"), out = make(rank, "out");
    for (std::int64_t call = 0; call < 50; ++call) {
      group.all_to_all(stream, in, out, {call % 32, call % 32}, {call % 32, call % 32});
      if (call % 10 != 9) continue;
      EXPECT_EQ(group.splits_kept(), 10u);
      rank.device.synchronize();
      EXPECT_EQ(group.splits_kept(), 0u);
    }
  }), "");
}

}  // namespace
}  // namespace shardbook::tests
