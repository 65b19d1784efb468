// What goes wrong between ranks that communicate: each fault, in each collective, ends all ranks soon, and is named by
// what was done, by whom, at which line. Ranks are processes here, and threads where that is possible.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/comm/words.hpp"
#include "tests/support/process_ranks.hpp"

namespace shardbook::tests {
namespace {

using namespace std::chrono_literals;
using base::DType;
using program::MemoryKind;
using program::OpKind;

constexpr double soon_s = 5;

// One rank and its group, with memory for any call.
struct Desk {
  HostRank& rank;
  std::unique_ptr<comm::Communicator> group;
  device::Stream& stream;
  tensor::Tensor small, large, small_integers, large_integers;

  explicit Desk(HostRank& of) : rank(of), group(of.backend.communicator(of.device, of.everyone("all"))), stream(of.device.create_stream("comm")) {
    const auto make = [&](DType type, std::int64_t elements) { return tensor::allocate(of.device, {elements}, type, MemoryKind::workspace, "memory"); };
    small = make(DType::f32, 8);
    large = make(DType::f32, 16 * ranks);
    small_integers = make(DType::i32, 8);
    large_integers = make(DType::i32, 16 * ranks);
  }
  int me() const { return rank.world.rank(); }

  // One call of this kind. Sends go from rank 0 to rank 1.
  void call(OpKind kind, std::int64_t elements = 8, DType type = DType::f32) const {
    const tensor::Tensor& one = type == DType::f32 ? small : small_integers;
    const tensor::Tensor& all = type == DType::f32 ? large : large_integers;
    const tensor::Tensor part = one.slice(0, {elements}), whole = all.slice(0, {elements * ranks});
    switch (kind) {
      case OpKind::all_reduce: return group->all_reduce(stream, part, part);
      case OpKind::all_gather: return group->all_gather(stream, part, whole);
      case OpKind::reduce_scatter: return group->reduce_scatter(stream, whole, part);
      case OpKind::broadcast: return group->broadcast(stream, part, part, 0);
      case OpKind::all_to_all: return group->all_to_all(stream, whole, all, std::vector<std::int64_t>(ranks, elements), std::vector<std::int64_t>(ranks, elements));
      case OpKind::shift: return group->shift(stream, part, all.slice(0, {elements}), 1);
      case OpKind::send:
        if (me() == 0) group->send(stream, part, 1);
        if (me() == 1) group->receive(stream, part, 0);
        return;
      default: FAIL() << program::name_of(kind);
    }
  }
};

enum class Fault { missing_rank, order_swapped, size_wrong, dtype_wrong };

// The last rank of each kind of call is the odd one.
void make_fault(Fault fault, OpKind kind, const Desk& desk) {
  const bool odd = desk.me() == (kind == OpKind::send ? 1 : ranks - 1);
  switch (fault) {
    case Fault::missing_rank:
      if (odd) return;
      desk.call(kind);
      break;
    case Fault::order_swapped: {
      // Of a pair: the one who should receive sends first, too.
      const OpKind other = kind == OpKind::all_reduce ? OpKind::broadcast : OpKind::all_reduce;
      if (kind == OpKind::send) {
        if (desk.me() < 2) desk.group->send(desk.stream, desk.small, 1 - desk.me());
        if (desk.me() < 2) desk.group->receive(desk.stream, desk.small, 1 - desk.me());
        break;
      }
      if (odd) desk.call(other);
      desk.call(kind);
      if (!odd) desk.call(other);
      break;
    }
    case Fault::size_wrong: desk.call(kind, odd ? 4 : 8); break;
    case Fault::dtype_wrong: desk.call(kind, 8, odd ? DType::i32 : DType::f32); break;
  }
  desk.rank.device.synchronize();
}

std::vector<std::string> words_of(Fault fault, OpKind kind) {
  const std::string name = program::name_of(kind), site = "tests/comm/faults_test.cpp:";
  const bool pair = kind == OpKind::send;
  // An all-to-all is told by all that a rank sends.
  const std::string whole = kind == OpKind::all_to_all ? " 0 (24 " : " 0 (8 ";
  switch (fault) {
    case Fault::missing_rank: return {"a deadlock", base::text("rank 0 in ", name, " 0 over all for rank ", pair ? 1 : 2), site};
    case Fault::order_swapped:
      if (pair) return {"a deadlock", "rank 0 in send 0 over all for rank 1 (8 f32", "rank 1 in send 0 over all for rank 0 (8 f32", site};
      return {"ranks disagree over all (ranks 0, 1, 2): rank 0 calls " + name + " 0 (", site, "where rank 2 calls ", ": another kind"};
    case Fault::size_wrong:
      if (kind == OpKind::all_to_all) return {"ranks disagree over all (ranks 0, 1, 2): rank 0 sends 8 elements to rank 2 in all_to_all 0", "which expects 4"};
      return {"ranks disagree over all (ranks 0, 1, 2): rank 0 calls " + name + " 0 (8 f32", site, pair ? "where rank 1 calls recv 0 (4 f32" : "where rank 2 calls " + name + " 0 (4 f32", ": another size"};
    case Fault::dtype_wrong:
      return {"ranks disagree over all (ranks 0, 1, 2): rank 0 calls " + name + whole + "f32", site, pair ? "where rank 1 calls recv 0 (8 i32" : "where rank 2 calls " + name + whole + "i32", ": another type"};
  }
  return {};
}

class Faults : public testing::TestWithParam<std::tuple<Fault, OpKind>> {};

TEST_P(Faults, OfProcessesEndAllSoonAndAreNamed) {
  const auto [fault, kind] = GetParam();
  const std::set<std::string> segments = named_segments();
  const ProcessEnds ends = on_process_ranks(ranks, [&](HostRank& rank) { make_fault(fault, kind, Desk(rank)); });
  expect_words(ends.error, words_of(fault, kind));
  for (const std::string& said : ends.said) EXPECT_EQ(said, ends.error) << "one cause for all";
  EXPECT_LT(ends.seconds, soon_s);
  EXPECT_EQ(children_left(), "");
  EXPECT_EQ(named_segments(), segments);
}

TEST_P(Faults, OfThreadsAreNamedByTheSameWords) {
  const auto [fault, kind] = GetParam();
  expect_words(on_host_ranks(ranks, [&](HostRank& rank) { make_fault(fault, kind, Desk(rank)); }), words_of(fault, kind));
}

INSTANTIATE_TEST_SUITE_P(OfEachCollective, Faults,
                         testing::Combine(testing::Values(Fault::missing_rank, Fault::order_swapped, Fault::size_wrong, Fault::dtype_wrong),
                                          testing::Values(OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter, OpKind::broadcast,
                                                          OpKind::all_to_all, OpKind::send, OpKind::shift)));

TEST(Shift, ByAnotherDistanceIsNamedWithBoth) {
  const auto body = [](HostRank& rank) {
    const Desk desk(rank);
    desk.group->shift(desk.stream, desk.small, desk.large.slice(0, {8}), desk.me() == 2 ? 2 : 1);
    rank.device.synchronize();
  };
  const std::vector<std::string> words = {"ranks disagree over all (ranks 0, 1, 2): rank 0 calls shift 0 (8 f32 by 1", "where rank 2 calls shift 0 (8 f32 by 2", ": another distance"};
  expect_words(on_host_ranks(ranks, body), words);
  expect_words(on_process_ranks(ranks, body).error, words);
}

TEST(StoppedRank, IsNamedByWhoWaitsForItAndSoIsTheCall) {
  // Each in turn, rank 0 too, which serves the control connections.
  for (int stopped = 0; stopped < ranks; ++stopped) {
    const ProcessEnds ends = on_process_ranks(ranks, [&](HostRank& rank) {
      const Desk desk(rank);
      desk.call(OpKind::all_reduce);
      rank.device.synchronize();
      if (desk.me() == stopped) ::raise(SIGSTOP);
      desk.call(OpKind::all_gather);
      rank.device.synchronize();
    }, {500ms});
    for (int other = 0; other < ranks; ++other) {
      if (other == stopped) continue;
      expect_words(ends.said[static_cast<std::size_t>(other)], {" in all_gather 1 over all for rank " + std::to_string(stopped) + " (pid ", "which is stopped", "tests/comm/faults_test.cpp:"});
    }
    EXPECT_LT(ends.seconds, soon_s);
  }
}

TEST(Patience, BlamesWhoDoesNotComeAndNotWhoWaitsForItToo) {
  // Rank 0 waits for 1, which waits for 2, which does something else.
  const auto body = [](HostRank& rank) {
    mesh::Group first{"first", {0, 1}, rank.world.rank(), 0}, second{"second", {1, 2}, rank.world.rank() - 1, 0}, third{"first", {2}, 0, 1}, fourth{"second", {0}, 0, 1};
    const int me = rank.world.rank();
    device::Stream& stream = rank.device.create_stream("comm");
    const tensor::Tensor memory = tensor::allocate(rank.device, {8}, DType::f32, MemoryKind::workspace, "memory");
    const auto one = rank.backend.communicator(rank.device, me < 2 ? first : third), two = rank.backend.communicator(rank.device, me > 0 ? second : fourth);
    if (me == 2) {
      const auto until = std::chrono::steady_clock::now() + 3s;
      while (std::chrono::steady_clock::now() < until && !rank.world.failed()) std::this_thread::sleep_for(5ms);
      rank.world.throw_if_failed();
    }
    if (me > 0) two->all_reduce(stream, memory, memory);
    if (me < 2) one->all_reduce(stream, memory, memory);
    rank.device.synchronize();
  };
  const ProcessEnds ends = on_process_ranks(ranks, body, {400ms});
  expect_words(ends.error, {"rank 1 (pid ", "in all_reduce 0 over second for rank 2 (pid ", "which does not come", "--comm-timeout 0.4"});
}

TEST(Patience, LeavesAMomentToWhoMayWaitForOneThatIsStopped) {
  // Rank 0 waits for 1, which is busy and so seems not to wait; rank 2 is stopped, and nobody has come to wait for it.
  const ProcessEnds ends = on_process_ranks(ranks, [](HostRank& rank) {
    const int me = rank.world.rank();
    const mesh::Group pair{"pair", {0, 1}, me, 0}, alone{"pair", {2}, 0, 1};
    device::Stream& stream = rank.device.create_stream("comm");
    const tensor::Tensor memory = tensor::allocate(rank.device, {8}, DType::f32, MemoryKind::workspace, "memory");
    const auto group = rank.backend.communicator(rank.device, me < 2 ? pair : alone);
    if (me == 2) ::raise(SIGSTOP);
    const auto until = std::chrono::steady_clock::now() + 4s;
    while (me == 1 && std::chrono::steady_clock::now() < until && !rank.world.failed()) std::this_thread::sleep_for(5ms);
    rank.world.throw_if_failed();
    if (me < 2) group->all_reduce(stream, memory, memory);
    rank.device.synchronize();
  }, {400ms});
  expect_words(ends.error, {"rank 0 (pid ", "for rank 1 (pid ", "which does not come", "; rank 2 (pid ", " is stopped"});
  // 0.4 s, and the half that is left to others
  const std::size_t at = ends.error.find("waited ");
  ASSERT_NE(at, std::string::npos) << ends.error;
  EXPECT_GE(std::stod(ends.error.substr(at + 7)), 0.9) << ends.error;
}

TEST(Patience, OfZeroWaitsForEverAndALongOneForASlowRank) {
  for (const comm::Patience patience : {comm::Patience{}, comm::Patience{5000ms}}) {
    EXPECT_EQ(on_process_ranks(2, [](HostRank& rank) {
      const tensor::Tensor memory = tensor::allocate(rank.device, {8}, DType::f32, MemoryKind::workspace, "memory");
      const auto group = rank.backend.communicator(rank.device, rank.everyone("all"));
      if (rank.world.rank() == 1) std::this_thread::sleep_for(300ms);
      group->all_reduce(rank.device.create_stream("comm"), memory, memory);
      rank.device.synchronize();
    }, patience).error, "");
  }
}

TEST(KilledRank, EndsThoseThatWaitForItAndLeavesNothing) {
  const std::set<std::string> segments = named_segments();
  for (int killed = 0; killed < ranks; ++killed) {
    const ProcessEnds ends = on_process_ranks(ranks, [&](HostRank& rank) {
      const Desk desk(rank);
      if (desk.me() == killed) ::raise(SIGKILL);
      desk.call(OpKind::reduce_scatter);
      rank.device.synchronize();
    });
    expect_words(ends.error, {base::text("rank ", killed, " (pid "), "ended without a word (killed?)"});
    EXPECT_TRUE(WIFSIGNALED(ends.status[static_cast<std::size_t>(killed)]));
    EXPECT_LT(ends.seconds, soon_s);
  }
  EXPECT_EQ(children_left(), "");
  EXPECT_EQ(named_segments(), segments);
}

}  // namespace
}  // namespace shardbook::tests
