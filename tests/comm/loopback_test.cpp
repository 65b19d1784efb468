// Collectives between ranks of the host, threads or processes: exact on integers, whatever order the queues drain in.
#include <gtest/gtest.h>

#include "tests/support/host_ranks.hpp"
#include "tests/support/process_ranks.hpp"

namespace shardbook::tests {
namespace {

using base::DType;
using program::MemoryKind;

constexpr int elements = 3000;  // more than one run of the reduction

double given(int rank, std::int64_t at) { return small_integer(static_cast<std::uint64_t>(rank * 1000003 + at)); }

tensor::Tensor make(HostRank& rank, std::int64_t size, const std::string& name) {
  return tensor::allocate(rank.device, {size}, DType::f32, MemoryKind::workspace, name);
}

enum class As { threads, processes };

class Collectives : public testing::TestWithParam<std::tuple<int, std::uint64_t, As>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  void run(const std::function<void(HostRank&, comm::Communicator&, device::Stream&)>& body) {
    const auto with_group = [&](HostRank& rank) {
      device::Stream& stream = rank.device.create_stream("comm");
      const auto group = rank.backend.communicator_or_alone(rank.device, rank.everyone("all"));
      body(rank, *group, stream);
    };
    const auto [ignored, seed, as] = GetParam();
    EXPECT_EQ(as == As::threads ? on_host_ranks(ranks(), with_group, seed) : on_process_ranks(ranks(), with_group, {}, seed).error, "");
  }
};

TEST_P(Collectives, AllReduceGivesEveryRankTheSum) {
  run([&](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
    const tensor::Tensor in = make(rank, elements, "in"), out = make(rank, elements, "out");
    for (int at = 0; at < elements; ++at) set(in, at, given(rank.world.rank(), at));
    group.all_reduce(stream, in, out);
    group.all_reduce(stream, in, in);
    rank.device.synchronize();
    for (int at = 0; at < elements; ++at) {
      double sum = 0;
      for (int other = 0; other < ranks(); ++other) sum += given(other, at);
      ASSERT_EQ(get(out, at), sum);
      ASSERT_EQ(get(in, at), sum);
    }
  });
}

TEST_P(Collectives, AllReduceOfMaximaTakesTheLargest) {
  run([&](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
    const tensor::Tensor in = make(rank, elements, "in");
    for (int at = 0; at < elements; ++at) set(in, at, given(rank.world.rank(), at));
    group.all_reduce(stream, in, in, comm::Reduction::max);
    rank.device.synchronize();
    for (int at = 0; at < elements; ++at) {
      double largest = given(0, at);
      for (int other = 1; other < ranks(); ++other) largest = std::max(largest, given(other, at));
      ASSERT_EQ(get(in, at), largest);
    }
  });
}

TEST_P(Collectives, AllGatherThenReduceScatterGivesEachShardTimesTheRanks) {
  run([&](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
    const tensor::Tensor shard = make(rank, elements, "shard"), full = make(rank, elements * ranks(), "full");
    for (int at = 0; at < elements; ++at) set(shard, at, given(rank.world.rank(), at));
    group.all_gather(stream, shard, full);
    rank.device.synchronize();
    for (std::int64_t at = 0; at < full.elements(); ++at) {
      ASSERT_EQ(get(full, at), given(static_cast<int>(at / elements), at % elements));
    }
    group.reduce_scatter(stream, full, full.slice(rank.world.rank() * elements, {elements}));  // in its own place
    rank.device.synchronize();
    for (int at = 0; at < elements; ++at) {
      ASSERT_EQ(get(full, rank.world.rank() * elements + at), ranks() * given(rank.world.rank(), at));
    }
  });
}

TEST_P(Collectives, BroadcastGivesEveryRankTheRootsNumbers) {
  run([&](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
    const int root = ranks() - 1;
    const tensor::Tensor in = make(rank, elements, "in"), out = make(rank, elements, "out");
    for (int at = 0; at < elements; ++at) set(in, at, given(rank.world.rank(), at));
    group.broadcast(stream, in, out, root);
    rank.device.synchronize();
    for (int at = 0; at < elements; ++at) ASSERT_EQ(get(out, at), given(root, at));
  });
}

TEST_P(Collectives, AllToAllBringsUnequalPartsToTheirPlaces) {
  run([&](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
    // Rank a sends a + 2·b + 1 elements to rank b.
    const int me = rank.world.rank();
    std::vector<std::int64_t> send, receive;
    std::int64_t sent = 0, received = 0;
    for (int other = 0; other < ranks(); ++other) {
      send.push_back(me + 2 * other + 1);
      receive.push_back(other + 2 * me + 1);
      sent += send.back();
      received += receive.back();
    }
    const tensor::Tensor in = make(rank, sent, "in"), out = make(rank, received, "out");
    for (std::int64_t at = 0; at < sent; ++at) set(in, at, given(me, at));
    group.all_to_all(stream, in, out, send, receive);
    rank.device.synchronize();
    std::int64_t at = 0;
    for (int other = 0; other < ranks(); ++other) {
      std::int64_t from = 0;
      for (int before = 0; before < me; ++before) from += other + 2 * before + 1;
      for (std::int64_t element = 0; element < receive[static_cast<std::size_t>(other)]; ++element) {
        ASSERT_EQ(get(out, at++), given(other, from + element));
      }
    }
  });
}

TEST_P(Collectives, AllToAllTakesWhatItsSplitsSayAndNoMoreThanThereIs) {
  run([&](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
    const std::vector<std::int64_t> each(static_cast<std::size_t>(ranks()), 10);
    const tensor::Tensor in = make(rank, 640 * ranks(), "in"), out = make(rank, 10 * ranks(), "out"), behind = make(rank, 640 * ranks(), "behind");
    for (std::int64_t at = 0; at < in.elements(); ++at) set(in, at, given(rank.world.rank(), at)), set(behind, at, -1);
    std::vector<std::int64_t> more = each;
    more.back() += 1;
    EXPECT_THROW(group.all_to_all(stream, in, out, each, more), base::Failure) << "more than `out` holds";
    EXPECT_THROW(group.all_to_all(stream, out, in, more, each), base::Failure) << "more than `in` holds";
    group.all_to_all(stream, in, out, each, each);
    rank.device.synchronize();
    for (int other = 0; other < ranks(); ++other) {
      for (int at = 0; at < 10; ++at) ASSERT_EQ(get(out, 10 * other + at), given(other, 10 * rank.world.rank() + at));
    }
    for (std::int64_t at = 0; at < behind.elements(); ++at) ASSERT_EQ(get(behind, at), -1) << "memory behind `out` is as it was";
  });
}

// Of one rank it is a copy. Each rank sends and receives at once on one stream, so no order of theirs can make it hang.
TEST_P(Collectives, AShiftBringsEachRankWhatTheOneSoManyPlacesBeforeItSends) {
  run([&](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
    const int me = rank.world.rank();
    const tensor::Tensor in = make(rank, elements, "in"), all = make(rank, elements * ranks(), "all");
    for (int at = 0; at < elements; ++at) set(in, at, given(me, at));
    const auto place = [&](int of) { return all.slice(of * elements, {elements}); };
    if (ranks() == 1) group.shift(stream, in, place(0), 1);
    for (int by = 1; by < ranks(); ++by) group.shift(stream, in, place((me + ranks() - by) % ranks()), by);
    rank.device.synchronize();
    for (int of = 0; of < ranks(); ++of) {
      if (of == me && ranks() > 1) continue;
      for (int at = 0; at < elements; ++at) ASSERT_EQ(get(all, of * elements + at), given(of, at)) << "from rank " << of;
    }
  });
}

TEST_P(Collectives, ARingOfSendsAndReceivesOnTwoStreamsPassesNumbersOn) {
  if (ranks() == 1) GTEST_SKIP() << "a ring needs two";
  run([&](HostRank& rank, comm::Communicator& group, device::Stream& stream) {
    device::Stream& other = rank.device.create_stream("other");
    const int me = rank.world.rank(), next = (me + 1) % ranks(), previous = (me + ranks() - 1) % ranks();
    const tensor::Tensor in = make(rank, elements, "in"), out = make(rank, elements, "out");
    for (int at = 0; at < elements; ++at) set(in, at, given(me, at));
    group.send(stream, in, next);
    group.receive(other, out, previous);
    rank.device.synchronize();
    for (int at = 0; at < elements; ++at) ASSERT_EQ(get(out, at), given(previous, at));
  });
}

INSTANTIATE_TEST_SUITE_P(RanksAndDrainOrders, Collectives, testing::Combine(testing::Values(1, 2, 3, 4), testing::Values(0, 1, 17), testing::Values(As::threads)));
INSTANTIATE_TEST_SUITE_P(RanksThatAreProcesses, Collectives, testing::Combine(testing::Values(1, 2, 3), testing::Values(0, 17), testing::Values(As::processes)));

TEST(Loopback, RanksThatCallDifferentCollectivesFailWithBothNamed) {
  const std::string error = on_host_ranks(2, [](HostRank& rank) {
    device::Stream& stream = rank.device.create_stream("comm");
    const auto group = rank.backend.communicator(rank.device, rank.everyone("all"));
    const tensor::Tensor a = make(rank, 8, "a"), b = make(rank, 16, "b");
    if (rank.world.rank() == 0) group->all_reduce(stream, a, a);
    else group->all_gather(stream, a, b);
    rank.device.synchronize();
  });
  EXPECT_NE(error.find("ranks disagree"), std::string::npos) << error;
}

TEST(Loopback, ARankThatLeavesEndsThoseThatWaitForIt) {
  const auto begin = program::host_now();
  const std::string error = on_host_ranks(3, [](HostRank& rank) {
    device::Stream& stream = rank.device.create_stream("comm");
    const auto group = rank.backend.communicator(rank.device, rank.everyone("all"));
    const tensor::Tensor a = make(rank, 8, "a");
    if (rank.world.rank() == 1) throw base::Failure("the planted fault");
    group->all_reduce(stream, a, a);
    rank.device.synchronize();
  });
  EXPECT_NE(error.find("the planted fault"), std::string::npos) << error;
  EXPECT_NE(error.find("rank 1"), std::string::npos) << error;
  EXPECT_LT(program::host_now() - begin, 10'000'000'000) << "within 10 s";
}

TEST(Loopback, CollectivesOfTwoGroupsOnTwoStreamsDoNotHoldEachOtherUp) {
  // Ranks issue to the two streams in opposite order: only blocking queues would hang.
  const std::string error = on_host_ranks(2, [](HostRank& rank) {
    device::Stream& first = rank.device.create_stream("first");
    device::Stream& second = rank.device.create_stream("second");
    const auto one = rank.backend.communicator(rank.device, rank.everyone("one"));
    const auto two = rank.backend.communicator(rank.device, rank.everyone("two"));
    const tensor::Tensor a = make(rank, 8, "a"), b = make(rank, 8, "b");
    for (int round = 0; round < 10; ++round) {
      if (rank.world.rank() == 0) {
        one->all_reduce(first, a, a);
        two->all_reduce(second, b, b);
      } else {
        two->all_reduce(second, b, b);
        one->all_reduce(first, a, a);
      }
    }
    rank.device.synchronize();
  }, 5);
  EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace shardbook::tests
