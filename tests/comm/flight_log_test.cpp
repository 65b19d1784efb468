// What each rank keeps of its calls: whole while it is written, small, and the same for the same calls.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <numeric>
#include <thread>
#include <tuple>

#include "engine/comm/watch.hpp"
#include "engine/device/host/host_device.hpp"
#include "tests/program/allocations.hpp"

namespace shardbook::tests {
namespace {

using namespace std::chrono_literals;
using base::DType;
using program::OpKind;

struct Logged {
  comm::Flight flight;
  comm::FlightLog& log = flight.add({"tp", {0, 1}, 0, 0});
  device::HostDevice device{{DType::f32, DType::f32}, 0, 0};
  device::Stream& stream = device.create_stream("comm");
  void call(std::uint64_t ticket, base::Bytes bytes = 64) {
    log.called(ticket, stream, program::OpDesc("all_reduce", program::OpKind::all_reduce, DType::f32).collective_of({0, 0, bytes, -1}), 0, {});
  }
};

TEST(FlightLog, KeepsTheLastCallsAndCountsAll) {
  Logged one;
  const std::uint64_t calls = 3 * comm::FlightLog::kept;
  for (std::uint64_t ticket = 0; ticket < calls; ++ticket) one.call(ticket), one.log.issued(ticket), one.log.ended(ticket);
  const check::FlightPage page = one.log.page(0, comm::FlightLog::kept);
  EXPECT_EQ(page.collectives, calls);
  ASSERT_EQ(page.calls.size(), comm::FlightLog::kept);
  EXPECT_EQ(page.calls.front().number, calls - comm::FlightLog::kept);
  EXPECT_EQ(page.calls.back().number, calls - 1);
  EXPECT_EQ(one.log.waits_since(), 0);
}

TEST(FlightLog, OfCallsThatEndOutOfOrderTheOldestOneWaits) {
  Logged one;
  for (std::uint64_t ticket = 0; ticket < 4; ++ticket) one.call(ticket), one.log.issued(ticket);
  one.log.ended(2);
  EXPECT_EQ(one.log.under_way().first, 0u);
  one.log.ended_through(1);
  EXPECT_EQ(one.log.under_way().first, 3u);
  EXPECT_EQ(one.log.under_way().last, 4u);
  EXPECT_GT(one.log.waits_since(), 0);
  one.log.ended(3);
  EXPECT_EQ(one.log.waits_since(), 0);
}

TEST(FlightLog, ShowsTheOldestThatHasNotEndedThoughManyCameLater) {
  Logged one;
  for (std::uint64_t ticket = 0; ticket < 400; ++ticket) one.call(ticket), one.log.issued(ticket);
  one.log.ended_through(99);
  const check::FlightPage page = one.log.page(0, 32);
  ASSERT_EQ(page.calls.size(), 32u);
  EXPECT_EQ(page.calls.front().number, 92u);
  EXPECT_EQ(page.calls[8].state, check::CallState::issued);
}

TEST(FlightLog, ClaimsTheSameForTheSameCallsAndOtherwiseNot) {
  Logged one, same, other, fewer;
  for (std::uint64_t ticket = 0; ticket < 3; ++ticket) one.call(ticket), same.call(ticket), other.call(ticket, ticket == 1 ? 32 : 64);
  for (std::uint64_t ticket = 0; ticket < 2; ++ticket) fewer.call(ticket);
  comm::FlightLog& dp = one.flight.add({"dp", {0, 1}, 0, 0});
  for (Logged* each : {&one, &same, &other, &fewer}) each->flight.step_issued(0);
  const auto claimed = [](const comm::FlightLog& log) { return log.claims(0).at(0); };
  EXPECT_EQ(claimed(one.log).value, claimed(same.log).value);
  EXPECT_EQ(claimed(one.log).what, claimed(other.log).what);
  EXPECT_NE(claimed(one.log).value, claimed(other.log).value);
  EXPECT_NE(claimed(one.log).value, claimed(fewer.log).value);
  EXPECT_NE(claimed(dp).what, claimed(one.log).what);
}

// Two ranks of a pair: what one calls for the other, under claims of one name.
struct LoggedPair {
  comm::Flight flights[2];
  comm::FlightLog* logs[2] = {&flights[0].add({"tp", {0, 1}, 0, 0}), &flights[1].add({"tp", {0, 1}, 1, 0})};
  device::HostDevice device{{DType::f32, DType::f32}, 0, 0};
  device::Stream& stream = device.create_stream("comm");
  std::uint64_t tickets[2] = {0, 0};

  void call(int rank, OpKind kind, base::Bytes bytes, DType type = DType::f32) {
    logs[rank]->called(tickets[rank]++, stream, program::OpDesc(program::name_of(kind), kind, type).collective_of({0, 0, bytes, 1 - rank}), 0, {});
  }
  void all_to_all(int rank, std::vector<std::int64_t> send, std::vector<std::int64_t> receive) {
    logs[rank]->called(tickets[rank]++, stream, program::OpDesc("all_to_all", OpKind::all_to_all, DType::f32).collective_of({0, 0, 4 * (send[0] + send[1]), -1}), 0,
                       {send.data(), receive.data()});
  }
  bool claim_alike(std::int64_t step) {
    for (comm::Flight& flight : flights) flight.step_issued(step);
    std::map<std::uint64_t, std::uint64_t> first;
    for (const world::Claim& claim : logs[0]->claims(step)) first[claim.what] = claim.value;
    std::size_t alike = 0;
    for (const world::Claim& claim : logs[1]->claims(step)) alike += first.contains(claim.what) && first.at(claim.what) == claim.value;
    return alike == first.size() && alike == logs[1]->claims(step).size();
  }
};

TEST(FlightLog, ClaimsSendsBesideTheirReceives) {
  constexpr std::int64_t every = comm::FlightLog::claimed_every;
  LoggedPair pair;
  for (int i = 0; i < 5; ++i) pair.call(0, OpKind::send, 64 + i), pair.call(1, OpKind::recv, 64 + i), pair.call(1, OpKind::send, 8), pair.call(0, OpKind::recv, 8);
  EXPECT_EQ(pair.logs[0]->claims(0).size(), 0u);
  EXPECT_TRUE(pair.claim_alike(0));
  EXPECT_EQ(pair.logs[0]->claims(0).size(), 3u);
  for (const auto& [sent, received, type] : std::vector<std::tuple<base::Bytes, base::Bytes, DType>>{{64, 32, DType::f32}, {64, 64, DType::i32}, {64, 0, DType::f32}}) {
    LoggedPair other;
    other.call(0, OpKind::send, 16), other.call(1, OpKind::recv, 16);
    EXPECT_TRUE(other.claim_alike(0));
    other.call(0, OpKind::send, sent);
    if (received > 0) other.call(1, OpKind::recv, received, type);
    EXPECT_FALSE(other.claim_alike(every)) << received;
  }
}

TEST(FlightLog, ClaimsThePartsOfAllToAlls) {
  LoggedPair pair;
  pair.all_to_all(0, {1, 2}, {1, 3}), pair.all_to_all(1, {3, 4}, {2, 4});
  EXPECT_TRUE(pair.claim_alike(0));
  const check::FlightPage page = pair.logs[0]->page(0, 8);
  EXPECT_EQ(page.calls.at(0).sends, (std::vector<base::Bytes>{4, 8}));
  EXPECT_EQ(page.calls.at(0).receives, (std::vector<base::Bytes>{4, 12}));
  pair.all_to_all(0, {1, 2}, {1, 3}), pair.all_to_all(1, {3, 4}, {1, 4});
  EXPECT_FALSE(pair.claim_alike(comm::FlightLog::claimed_every));
}

TEST(FlightLog, KeepsThePartsOfTheLastAllToAlls) {
  LoggedPair pair;
  const std::int64_t calls = 2 * comm::FlightLog::parts_kept;
  for (std::int64_t i = 0; i < calls; ++i) pair.all_to_all(0, {0, i}, {0, i});
  const check::FlightPage page = pair.logs[0]->page(0, comm::FlightLog::kept);
  ASSERT_EQ(static_cast<std::int64_t>(page.calls.size()), calls);
  EXPECT_TRUE(page.calls.front().sends.empty());
  EXPECT_EQ(page.calls.back().sends, (std::vector<base::Bytes>{0, 4 * (calls - 1)}));
}

// An account stays small, however many ranks an all-to-all has.
TEST(FlightLog, SaysOfManyPartsNoMoreThanAMessageMayHave) {
  comm::Flight flight;
  std::vector<base::Rank> ranks(1024);
  std::iota(ranks.begin(), ranks.end(), 0);
  comm::FlightLog& log = flight.add({"ep", ranks, 0, 0});
  device::HostDevice device{{DType::f32, DType::f32}, 0, 0};
  device::Stream& stream = device.create_stream("comm");
  const std::vector<std::int64_t> each(ranks.size(), 1);
  for (std::uint64_t ticket = 0; ticket < comm::FlightLog::parts_kept; ++ticket) {
    log.called(ticket, stream, program::OpDesc("all_to_all", OpKind::all_to_all, DType::f32).collective_of({0, 0, 4096, -1}), 0, {each.data(), each.data()});
  }
  EXPECT_LT(flight.account(1024).size(), 64u << 10);
  const std::string of_few = flight.account(8);
  EXPECT_LT(of_few.size(), 256u << 10);
  const auto read = comm::read_account(of_few);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->pages.at(0).calls.front().sends.size(), ranks.size());
  EXPECT_TRUE(read->pages.at(0).calls.back().sends.empty());
}

// Of a graph, too, whose launches call them again.
TEST(FlightLog, OfAGraphCallsThePartsOfItsAllToAlls) {
  LoggedPair pair;
  pair.logs[0]->capture_begins();
  pair.all_to_all(0, {1, 2}, {1, 3}), pair.call(0, OpKind::send, 64);
  const comm::FlightLog::Captured captured = pair.logs[0]->capture_ends();
  for (int launch = 0; launch < 3; ++launch) {
    if (launch > 0) pair.logs[0]->called_again(pair.tickets[0], captured, launch), pair.tickets[0] += captured.size();
    pair.all_to_all(1, {3, 4}, {2, 4}), pair.call(1, OpKind::recv, 64);
  }
  EXPECT_TRUE(pair.claim_alike(0));
  EXPECT_EQ(pair.logs[0]->page(0, 8).calls.at(4).receives, (std::vector<base::Bytes>{4, 12}));
}

TEST(Flight, HandsOutEachClaimOnceAndForgetsThoseThatNobodyTookInTime) {
  constexpr std::int64_t every = comm::FlightLog::claimed_every, kept = comm::FlightLog::claims_kept;
  Logged one;
  const auto steps_after = [&](std::int64_t step) {
    std::vector<std::int64_t> steps;
    for (const comm::Flight::Claims& claims : one.flight.claims_after(step)) steps.push_back(claims.step);
    return steps;
  };
  EXPECT_TRUE(steps_after(-1).empty());
  for (std::int64_t step = 0; step <= 2 * every; ++step) one.flight.step_issued(step);
  EXPECT_EQ(steps_after(-1), (std::vector<std::int64_t>{0, every, 2 * every}));
  EXPECT_EQ(steps_after(every), (std::vector<std::int64_t>{2 * every}));
  EXPECT_TRUE(steps_after(2 * every).empty());
  for (std::int64_t step = 2 * every; step <= 1000 * every; ++step) one.flight.step_issued(step);
  const std::vector<std::int64_t> last = steps_after(2 * every);
  EXPECT_EQ(static_cast<std::int64_t>(last.size()), kept);
  EXPECT_EQ(last.front(), (1000 - kept + 1) * every);
  EXPECT_EQ(last.back(), 1000 * every);
}

// One thread calls as fast as it can, another ends what was issued, a third reads: what it reads is whole, and of this
// log. Under the thread sanitizer this is what shows a race.
TEST(FlightLog, IsReadWholeWhileItIsWritten) {
  Logged one;
  std::atomic<bool> over = false;
  std::uint64_t pages = 0, calls_seen = 0;
  std::thread ends([&] {
    while (!over) {
      const auto [first, last] = one.log.under_way();
      if (last > first) one.log.ended(last - 1), one.log.ended_through(last - 1);
    }
  });
  std::thread reads([&] {
    while (!over) {
      const base::Nanoseconds now = program::host_now();
      const check::FlightPage page = one.log.page(now, comm::FlightLog::kept);
      ASSERT_GE(one.flight.longest_wait(now), 0);
      std::uint64_t number = page.calls.empty() ? 0 : page.calls.front().number;
      for (const check::FlightCall& call : page.calls) {
        ASSERT_EQ(call.number, number++);
        ASSERT_EQ(call.bytes, static_cast<base::Bytes>(call.number * 3));   // both of one call, or neither
        ASSERT_EQ(call.kind, program::OpKind::all_reduce);
        ASSERT_LT(call.number, page.collectives);
      }
      (void)one.flight.claims_after(-1);
      ++pages, calls_seen += page.calls.size();
    }
  });
  std::uint64_t ticket = 0;
  for (const auto until = std::chrono::steady_clock::now() + 1s; std::chrono::steady_clock::now() < until; ++ticket) {
    one.call(ticket, static_cast<base::Bytes>(ticket * 3));
    one.log.issued(ticket);
    if (ticket % 8 == 0) one.flight.step_issued(static_cast<std::int64_t>(ticket / 8));
    if (ticket % 64 == 0) std::this_thread::yield();
  }
  over = true;
  ends.join(), reads.join();
  one.log.ended_through(ticket - 1);
  EXPECT_EQ(one.log.waits_since(), 0);
  EXPECT_GT(pages, 0u);
  EXPECT_GT(calls_seen, 0u) << "nothing was read whole, and this test shows nothing";
}

TEST(FlightLog, TakesNoMemoryInAStep) {
  Logged one;
  one.flight.add({"dp", {0, 1}, 0, 0});
  const std::size_t before = program::allocation_count();
  for (std::uint64_t ticket = 0; ticket < 2 * comm::FlightLog::kept; ++ticket) {
    one.call(ticket);
    one.log.issued(ticket);
    one.flight.step_issued(static_cast<std::int64_t>(ticket));
  }
  EXPECT_EQ(program::allocation_count(), before);
  (void)one.flight.account(2);
  EXPECT_GT(program::allocation_count(), before) << "nothing is counted, and this test shows nothing";
}

// What a graph holds is called with each launch, and its hash is that of a rank whose host calls it.
TEST(FlightLog, OfAGraphCallsWhatItHoldsWithEachLaunch) {
  Logged graph, host;
  graph.log.capture_begins();
  for (std::uint64_t ticket = 0; ticket < 3; ++ticket) graph.call(ticket, 64 + static_cast<base::Bytes>(ticket));
  EXPECT_EQ(graph.log.under_way().last, 0u) << "nothing of it runs before the launch";
  const comm::FlightLog::Captured held = graph.log.capture_ends();
  EXPECT_EQ(held.size(), 3u);
  graph.log.issued(2), graph.log.ended_through(2);
  graph.log.called_again(3, held, 8);
  EXPECT_EQ(graph.log.under_way().last, 3u);
  graph.log.issued(5), graph.log.ended_through(3);
  for (std::uint64_t ticket = 0; ticket < 6; ++ticket) host.call(ticket, 64 + static_cast<base::Bytes>(ticket % 3)), host.log.issued(ticket);
  EXPECT_EQ(graph.log.claims_now()[0].value, host.log.claims_now()[0].value);

  const check::FlightPage page = graph.log.page(program::host_now(), 16);
  ASSERT_EQ(page.calls.size(), 6u);
  EXPECT_EQ(page.collectives, 6u);
  for (std::size_t at = 0; at < 6; ++at) {
    EXPECT_EQ(page.calls[at].number, at);
    EXPECT_EQ(page.calls[at].bytes, 64 + static_cast<base::Bytes>(at % 3));
    EXPECT_EQ(page.calls[at].step, at < 3 ? -1 : 8) << "as which step the graph was launched";
    EXPECT_EQ(page.calls[at].in_graph, at % 3 + 1);
    EXPECT_EQ(page.calls[at].graph_calls, 3u);
    EXPECT_EQ(page.calls[at].state, at < 4 ? check::CallState::ended : check::CallState::issued);
  }
  // Another rank that has launched the step before alone is who has not come.
  host.log.ended_through(5);
  check::FlightAccount waits{0, "rank 0", "", 8, 0, {page}}, behind{1, "rank 1", "", 7, 0, {page}};
  behind.pages[0].calls.resize(3);
  behind.pages[0].collectives = 3;
  const check::Verdict verdict = check::verdict_of({waits, behind});
  EXPECT_EQ(verdict.ranks, std::vector<base::Rank>{1});
  EXPECT_NE(verdict.sentence.find("step 8"), std::string::npos) << verdict.sentence;
  EXPECT_NE(verdict.sentence.find("2 of the 3 calls of a graph"), std::string::npos) << verdict.sentence;
}

TEST(FlightLog, TellsTwoCommunicatorsOfOneGroupApart) {
  Logged one;
  EXPECT_EQ(one.flight.add({"tp", {0, 1}, 0, 0}).axis(), "tp 2");
  EXPECT_EQ(one.flight.add({"tp", {0, 1}, 0, 0}).axis(), "tp 3");
}

TEST(Account, IsReadAsItWasWrittenAndDamagedNotAtAll) {
  Logged one;
  one.flight.add({"dp", {0, 2, 4}, 0, 0});
  for (std::uint64_t ticket = 0; ticket < 5; ++ticket) one.call(ticket, 64 + static_cast<base::Bytes>(ticket));
  one.log.issued(0), one.log.ended(0);
  const std::string bytes = one.flight.account(2);
  const std::optional<check::FlightAccount> read = comm::read_account(bytes);
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->pages.size(), 2u);
  EXPECT_EQ(read->pages[1].ranks, (std::vector<base::Rank>{0, 2, 4}));
  ASSERT_EQ(read->pages[0].calls.size(), 5u);
  EXPECT_EQ(read->pages[0].calls[0].state, check::CallState::ended);
  EXPECT_EQ(read->pages[0].calls[4].bytes, 68);
  EXPECT_NE(read->pages[0].calls[4].file.find("flight_log_test.cpp"), std::string::npos);
  // Cut anywhere, it is refused; a byte changed, it is refused or read, and can be judged.
  for (std::size_t length = 0; length < bytes.size(); ++length) EXPECT_FALSE(comm::read_account(bytes.substr(0, length)).has_value()) << length;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    (void)comm::judge({{"rank 0", "", damaged}, {"rank 1", "", bytes}});
  }
}

}  // namespace
}  // namespace shardbook::tests
