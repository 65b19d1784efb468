// Ranks that hang are judged by what they say: who is to blame is named, with both lines, and nobody who only waits.
#include <gtest/gtest.h>

#include <functional>

#include "engine/check/flight.hpp"

namespace shardbook::check {
namespace {

using base::DType;
using program::OpKind;

constexpr base::Nanoseconds second = 1'000'000'000;

// Ranks whose calls are made by hand. A call's line is its number, and 100 times its rank.
struct Ranks {
  std::vector<FlightAccount> accounts;

  explicit Ranks(int count, const std::vector<std::pair<std::string, std::vector<base::Rank>>>& groups = {}) {
    std::vector<base::Rank> all;
    for (int rank = 0; rank < count; ++rank) all.push_back(rank);
    for (int rank = 0; rank < count; ++rank) {
      FlightAccount& account = accounts.emplace_back();
      account.rank = rank;
      account.name = base::text("rank ", rank, " (pid ", 100 + rank, ")");
      account.step = 3;
      account.quiet = 12 * second;
      if (groups.empty()) account.pages.push_back({"tp", all, 0, {}, {}});
      for (const auto& [axis, ranks] : groups) {
        if (std::count(ranks.begin(), ranks.end(), rank) > 0) account.pages.push_back({axis, ranks, 0, {}, {}});
      }
    }
  }
  FlightPage& page(int rank, const std::string& axis = "tp") {
    for (FlightPage& page : accounts[static_cast<std::size_t>(rank)].pages) {
      if (page.axis == axis) return page;
    }
    throw base::Failure("no such page");
  }
  FlightCall& call(int rank, OpKind kind = OpKind::all_reduce, base::Bytes bytes = 64, CallState state = CallState::ended, const std::string& axis = "tp", int peer = -1) {
    FlightPage& page = this->page(rank, axis);
    FlightCall call;
    call.kind = kind;
    call.bytes = bytes;
    call.state = state;
    call.peer = peer;
    call.name = program::name_of(kind);
    call.step = 3;
    call.file = "engine/x.cpp";
    call.waited = state == CallState::ended ? 0 : 10 * second;
    if (kind == OpKind::send || kind == OpKind::recv) {
      auto at = std::find_if(page.pairs.begin(), page.pairs.end(), [&](const PairCount& pair) { return pair.peer == peer; });
      if (at == page.pairs.end()) at = page.pairs.insert(at, {peer, 0, 0});
      call.number = kind == OpKind::send ? at->sent++ : at->received++;
    } else {
      call.number = page.collectives++;
    }
    call.line = static_cast<std::uint32_t>(100 * rank + static_cast<int>(page.calls.size()));
    page.calls.push_back(call);
    return page.calls.back();
  }
  // On all ranks of the axis.
  void all(OpKind kind, base::Bytes bytes = 64, CallState state = CallState::ended, const std::string& axis = "tp") {
    for (std::size_t rank = 0; rank < accounts.size(); ++rank) {
      for (const FlightPage& page : std::vector<FlightPage>(accounts[rank].pages)) {
        if (page.axis == axis) call(static_cast<int>(rank), kind, bytes, state, axis);
      }
    }
  }
  Verdict verdict() const { return verdict_of(accounts); }
};

void expect_words(const std::string& said, const std::vector<std::string>& words) {
  for (const std::string& one : words) EXPECT_NE(said.find(one), std::string::npos) << one << "\nin: " << said;
}

constexpr CallState waits = CallState::issued;

TEST(Flight, OfRanksThatWaitForNothingBlamesNobody) {
  Ranks ranks(3);
  EXPECT_EQ(ranks.verdict().blame, Blame::nobody);
  ranks.all(OpKind::all_gather);
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.blame, Blame::nobody);
  EXPECT_EQ(verdict.sentence, "");
  EXPECT_EQ(std::count(verdict.side_by_side.begin(), verdict.side_by_side.end(), '\n'), 3);
}

TEST(Flight, NamesWhoHasNotCalledIt) {
  Ranks ranks(3);
  ranks.all(OpKind::all_gather);
  ranks.call(0, OpKind::all_reduce, 64, waits);
  ranks.call(2, OpKind::all_reduce, 64, waits);
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.blame, Blame::missing);
  EXPECT_EQ(verdict.ranks, std::vector<base::Rank>{1});
  expect_words(verdict.sentence, {"all_reduce of 64 bytes f32 (step 3, ", "engine/x.cpp:1)", "call 2 over tp (ranks 0, 1, 2), has not ended in 10.0 s on rank 0 (pid 100)",
                                  "rank 1 (pid 101) has not called it", "its last over tp was all_gather", "which has ended", "for 12.0 s it has called no collective", "is in step 3"});
}

TEST(Flight, NamesAllWhoHaveNotCalledIt) {
  Ranks ranks(4);
  ranks.call(3, OpKind::broadcast, 8, waits);
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.ranks, (std::vector<base::Rank>{0, 1, 2}));
  expect_words(verdict.sentence, {"rank 0 (pid 100), rank 1 (pid 101), rank 2 (pid 102) have not called it", "it has called nothing over tp"});
}

TEST(Flight, NamesARankThatSaysNothingBeforeAllElse) {
  for (const char* why : {"is stopped", "does not answer", "has returned"}) {
    Ranks ranks(3);
    ranks.call(0, OpKind::all_reduce, 64, waits);
    ranks.call(2, OpKind::all_reduce, 128, waits);   // another size, too
    ranks.accounts[1].absent = why;
    ranks.accounts[1].pages.clear();
    const Verdict verdict = ranks.verdict();
    EXPECT_EQ(verdict.blame, Blame::absent);
    EXPECT_EQ(verdict.ranks, std::vector<base::Rank>{1});
    expect_words(verdict.sentence, {base::text("rank 1 (pid 101) ", why), "all_reduce of 64 bytes", "has not ended in 10.0 s"});
    expect_words(verdict.side_by_side, {base::text("rank 1 (pid 101) ", why)});
  }
}

struct Planted {
  const char* name;
  std::function<void(Ranks&)> plant;   // rank 1 does something else than the others
  Difference difference;
  std::vector<std::string> words;
};

std::vector<Planted> planted() {
  const auto usual = [](Ranks& ranks, int rank) {
    ranks.call(rank, OpKind::all_gather, 64, waits);
    ranks.call(rank, OpKind::reduce_scatter, 32, waits);
    ranks.call(rank, OpKind::all_reduce, 16, waits);
    ranks.call(rank, OpKind::all_gather, 8, waits);
  };
  const auto others = [usual](Ranks& ranks) { usual(ranks, 0), usual(ranks, 2); };
  return {
      {"Kind", [=](Ranks& ranks) { others(ranks), ranks.call(1, OpKind::broadcast, 64, waits, "tp", 0); }, Difference::kind, {"calls another collective where rank 0 calls all_gather of 64", "rank 1 calls broadcast of 64 bytes f32"}},
      {"Size", [=](Ranks& ranks) { others(ranks), ranks.call(1, OpKind::all_gather, 128, waits); }, Difference::bytes, {"with another size where rank 0 calls all_gather of 64 bytes", "rank 1 calls all_gather of 128 bytes"}},
      {"Type", [=](Ranks& ranks) { others(ranks), ranks.call(1, OpKind::all_gather, 64, waits).dtype = DType::bf16; }, Difference::dtype, {"another type", "64 bytes f32", "64 bytes bf16"}},
      {"LeftOut", [=](Ranks& ranks) {
         others(ranks);
         ranks.call(1, OpKind::reduce_scatter, 32, waits), ranks.call(1, OpKind::all_reduce, 16, waits), ranks.call(1, OpKind::all_gather, 8, waits);
       }, Difference::missing, {"leaves out what rank 0 calls all_gather of 64", "rank 1 calls reduce_scatter of 32"}},
      {"OneMore", [=](Ranks& ranks) { others(ranks), ranks.call(1, OpKind::all_reduce, 4, waits), usual(ranks, 1); }, Difference::extra, {"has a call more before what rank 0 calls all_gather of 64", "rank 1 calls all_reduce of 4"}},
      {"Swapped", [=](Ranks& ranks) {
         others(ranks);
         ranks.call(1, OpKind::reduce_scatter, 32, waits), ranks.call(1, OpKind::all_gather, 64, waits), ranks.call(1, OpKind::all_reduce, 16, waits), ranks.call(1, OpKind::all_gather, 8, waits);
       }, Difference::swapped, {"calls in another order what rank 0 calls all_gather of 64", "rank 1 calls reduce_scatter of 32"}},
  };
}

class PlantedDifference : public testing::TestWithParam<std::size_t> {};

TEST_P(PlantedDifference, IsNamedWithBothLinesWhereverTheRanksStand) {
  const Planted one = planted()[GetParam()];
  for (const int before : {0, 1, 30}) {
    Ranks ranks(3);
    for (int i = 0; i < before; ++i) ranks.all(OpKind::all_reduce, 1000 + i);
    one.plant(ranks);
    const Verdict verdict = ranks.verdict();
    EXPECT_EQ(verdict.blame, Blame::differs) << verdict.sentence;
    EXPECT_EQ(verdict.ranks, std::vector<base::Rank>{1});
    ASSERT_TRUE(verdict.difference.has_value());
    EXPECT_EQ(*verdict.difference, one.difference) << verdict.sentence;
    expect_words(verdict.sentence, {base::text("call ", before + 1, ": rank 1 (pid 101) ")});
    expect_words(verdict.sentence, one.words);
    expect_words(verdict.sentence, {base::text("engine/x.cpp:", before, ")"), base::text("engine/x.cpp:", 100 + before, ")")});
  }
}
INSTANTIATE_TEST_SUITE_P(Each, PlantedDifference, testing::Range<std::size_t>(0, planted().size()), [](const auto& one) { return planted()[one.param].name; });

TEST(Flight, NamesADifferenceThatHasEnded) {
  Ranks ranks(2);
  ranks.all(OpKind::all_gather);
  ranks.call(0, OpKind::all_reduce, 64), ranks.call(1, OpKind::all_reduce, 32);
  ranks.all(OpKind::all_gather);
  EXPECT_EQ(ranks.verdict().difference, Difference::bytes);
}

TEST(Flight, NamesARootThatDiffers) {
  Ranks ranks(3);
  for (int rank = 0; rank < 3; ++rank) ranks.call(rank, OpKind::broadcast, 64, waits, "tp", rank == 2 ? 1 : 0);
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.difference, Difference::root);
  EXPECT_EQ(verdict.ranks, std::vector<base::Rank>{2});
}

TEST(Flight, NamesAReductionThatDiffers) {
  Ranks ranks(3);
  ranks.all(OpKind::all_reduce, 64, waits);
  ranks.page(1).calls.back().reduction = 1;
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.blame, Blame::differs);
  EXPECT_EQ(verdict.ranks, std::vector<base::Rank>{1});
  expect_words(verdict.sentence, {"rank 1 calls it with another reduction where rank 0 calls all_reduce of 64 bytes"});
}

TEST(Flight, AllToAllsMayDifferInSize) {
  Ranks ranks(2);
  FlightCall& one = ranks.call(0, OpKind::all_to_all, 64);
  FlightCall& other = ranks.call(1, OpKind::all_to_all, 32);
  EXPECT_EQ(ranks.verdict().blame, Blame::nobody);
  one.sends = {16, 48}, one.receives = {16, 8};
  other.sends = {8, 24}, other.receives = {48, 24};
  EXPECT_EQ(ranks.verdict().blame, Blame::nobody);
}

TEST(Flight, NamesAnAllToAllWhosePartsDoNotFit) {
  for (const CallState state : {waits, CallState::ended}) {
    for (const base::Rank odd : {1, 2}) {
      Ranks ranks(3);
      ranks.all(OpKind::all_to_all, 48);
      for (int rank = 0; rank < 3; ++rank) {
        const base::Bytes each = rank == odd ? 8 : 16;
        FlightCall& call = ranks.call(rank, OpKind::all_to_all, 3 * each, state);
        call.sends = call.receives = {each, each, each};
      }
      const Verdict verdict = ranks.verdict();
      EXPECT_EQ(verdict.blame, Blame::differs) << verdict.sentence;
      EXPECT_EQ(verdict.ranks, std::vector<base::Rank>{odd});
      EXPECT_EQ(verdict.difference, Difference::bytes);
      expect_words(verdict.sentence, {base::text("call 2: rank ", odd, " (pid"), "with another size where rank 0 calls all_to_all of 48 bytes", base::text("rank ", odd, " calls all_to_all of 24 bytes"),
                                      base::text("rank 0 sends 16 bytes to rank ", odd, ", which expects 8")});
    }
  }
}

// The half of an all-gather goes through though the other rank waits for the rest: what comes then is of the next step, and
// no call too many.
TEST(Flight, TakesNoCallOfTheNextStepForTheOneThatDiffers) {
  Ranks ranks(2);
  ranks.all(OpKind::reduce_scatter);
  ranks.call(0, OpKind::all_gather, 64, waits);
  ranks.call(1, OpKind::all_gather, 32), ranks.call(1, OpKind::all_gather, 64, waits).step = 4;
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.difference, Difference::bytes) << verdict.sentence;
  expect_words(verdict.sentence, {"call 2: rank 1", "another size where rank 0 calls all_gather of 64 bytes", "rank 1 calls all_gather of 32 bytes"});
}

TEST(Flight, NamesACallThatWasLeftOutBeforeOneThatIsAlike) {
  Ranks ranks(2);
  ranks.all(OpKind::reduce_scatter);
  ranks.call(0, OpKind::all_gather, 64), ranks.call(0, OpKind::all_gather, 64, waits).step = 4;
  ranks.call(1, OpKind::all_gather, 64).step = 4, ranks.call(1, OpKind::reduce_scatter, 64, waits).step = 4;
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.difference, Difference::missing) << verdict.sentence;
  expect_words(verdict.sentence, {"call 2: rank 1", "leaves out what rank 0 calls all_gather of 64 bytes f32 (step 3", "rank 1 calls all_gather of 64 bytes f32 (step 4"});
}

TEST(Flight, NamesAReceiveThatWasLeftOut) {
  Ranks ranks(2);
  for (const int step : {3, 4, 5}) {
    ranks.call(0, OpKind::send, 64, CallState::ended, "tp", 1).step = step;
    if (step != 4) ranks.call(1, OpKind::recv, 64, CallState::ended, "tp", 0).step = step;
  }
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.difference, Difference::missing) << verdict.sentence;
  expect_words(verdict.sentence, {"call 2: rank 1", "leaves out what rank 0 calls send of 64 bytes f32 (step 4"});
}

TEST(Flight, WhoIsOnlyBehindHasDoneNothingElse) {
  // Rank 1's host is slow: the call is the next it would make.
  Ranks ranks(2);
  ranks.all(OpKind::all_gather);
  ranks.call(0, OpKind::all_reduce, 64, waits), ranks.call(0, OpKind::all_gather, 64, waits), ranks.call(0, OpKind::all_reduce, 32, waits);
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.blame, Blame::missing);
  EXPECT_EQ(verdict.ranks, std::vector<base::Rank>{1});
}

TEST(Flight, ComparesFromWhereAllRanksStillKnow) {
  // Rank 0 keeps its last 4 calls of 20, rank 1 its last 2 of 19; call 19 differs in size.
  Ranks ranks(2);
  for (int i = 0; i < 18; ++i) ranks.all(OpKind::all_reduce, 1000 + i);
  ranks.call(0, OpKind::all_gather, 64, waits), ranks.call(0, OpKind::all_gather, 64, waits), ranks.call(1, OpKind::all_gather, 32, waits);
  auto& first = ranks.page(0).calls;
  first.erase(first.begin(), first.end() - 4);
  auto& second = ranks.page(1).calls;
  second.erase(second.begin(), second.end() - 2);
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.difference, Difference::bytes);
  expect_words(verdict.sentence, {"call 19: "});
}

TEST(Flight, OfPagesThatShareNothingAnyMoreSaysWhoIsBehind) {
  Ranks ranks(2);
  for (int i = 0; i < 40; ++i) ranks.call(0, OpKind::all_reduce, 64, i < 10 ? CallState::ended : waits);
  for (int i = 0; i < 10; ++i) ranks.call(1, OpKind::all_reduce, 64);
  auto& first = ranks.page(0).calls;
  first.erase(first.begin(), first.begin() + 30);
  EXPECT_EQ(ranks.verdict().blame, Blame::missing);
}

TEST(Flight, BlamesWhoDoesNotComeAndNotWhoWaitsForItToo) {
  // 0 waits for 1, which waits for 2, which does something else.
  Ranks ranks(3, {{"first", {0, 1}}, {"second", {1, 2}}});
  ranks.call(0, OpKind::all_reduce, 64, waits, "first");
  ranks.call(1, OpKind::all_gather, 64, waits, "second");
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.blame, Blame::missing);
  EXPECT_EQ(verdict.ranks, std::vector<base::Rank>{2});
  expect_words(verdict.sentence, {"all_gather of 64 bytes", "over second (ranks 1, 2)", "rank 2 (pid 102) has not called it"});
}

TEST(Flight, NamesACircle) {
  Ranks ranks(3, {{"a", {0, 1}}, {"b", {1, 2}}, {"c", {0, 2}}});
  ranks.call(0, OpKind::all_reduce, 64, waits, "a");
  ranks.call(1, OpKind::all_reduce, 64, waits, "b");
  ranks.call(2, OpKind::all_reduce, 64, waits, "c");
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.blame, Blame::circle);
  EXPECT_EQ(verdict.ranks.size(), 3u);
  expect_words(verdict.sentence, {"rank 0 waits for rank 1 in all_reduce", "over a (ranks 0, 1)", "rank 1 waits for rank 2", "rank 2 waits for rank 0"});
}

TEST(Flight, NamesTwoRanksThatCallTwoGroupsInAnotherOrder) {
  // The host is in the first call of each, so neither comes to the second.
  Ranks ranks(2, {{"tp", {0, 1}}, {"dp", {0, 1}}});
  ranks.call(0, OpKind::all_reduce, 64, CallState::called, "tp");
  ranks.call(1, OpKind::all_reduce, 64, CallState::called, "dp");
  EXPECT_EQ(ranks.verdict().blame, Blame::circle);
  expect_words(ranks.verdict().side_by_side, {"the host is still in the call"});
}

TEST(Flight, SaysThatACallIsStuckWhichAllHaveMade) {
  Ranks ranks(2);
  ranks.all(OpKind::all_reduce, 64, waits);
  Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.blame, Blame::stuck);
  EXPECT_EQ(verdict.ranks, (std::vector<base::Rank>{0, 1}));
  expect_words(verdict.sentence, {"though all its ranks have called it"});
  ranks.page(1).calls.back().state = CallState::ended;
  verdict = ranks.verdict();
  EXPECT_EQ(verdict.ranks, std::vector<base::Rank>{0});
  expect_words(verdict.sentence, {"it has ended on rank 1"});
}

TEST(Flight, SaysWhatHoldsUpWhoDoesNotCome) {
  // Rank 1 has not called "a", for it waits in "b", which rank 2 has called, too.
  Ranks ranks(3, {{"a", {0, 1}}, {"b", {1, 2}}});
  ranks.call(0, OpKind::all_reduce, 64, waits, "a");
  ranks.call(1, OpKind::all_gather, 64, waits, "b"), ranks.call(2, OpKind::all_gather, 64, waits, "b");
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.blame, Blame::stuck);
  expect_words(verdict.sentence, {"over a (ranks 0, 1)", "rank 1 (pid 101) has not called it, for it waits in all_gather", "over b (ranks 1, 2), which all have called"});
}

TEST(Flight, NamesAReceiverThatDoesNotCome) {
  Ranks ranks(3);
  ranks.call(0, OpKind::send, 64, CallState::ended, "tp", 1), ranks.call(1, OpKind::recv, 64, CallState::ended, "tp", 0);
  ranks.call(0, OpKind::send, 64, waits, "tp", 1);
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.blame, Blame::missing);
  EXPECT_EQ(verdict.ranks, std::vector<base::Rank>{1});
  expect_words(verdict.sentence, {"send of 64 bytes", "call 2 over tp"});
}

TEST(Flight, NamesAPairThatDiffersInSize) {
  Ranks ranks(2);
  ranks.call(0, OpKind::send, 64, waits, "tp", 1), ranks.call(1, OpKind::recv, 32, waits, "tp", 0);
  EXPECT_EQ(ranks.verdict().difference, Difference::bytes);
}

// A communicator runs its calls in the order in which they were called.
TEST(Flight, NamesACallThatIsBehindOneThatWaits) {
  Ranks ranks(2);
  ranks.all(OpKind::all_gather);
  ranks.call(0, OpKind::reduce_scatter, 64, waits), ranks.call(0, OpKind::send, 8, waits, "tp", 1);
  ranks.call(1, OpKind::recv, 8, waits, "tp", 0), ranks.call(1, OpKind::reduce_scatter, 64, waits);
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.blame, Blame::circle) << verdict.sentence;
  EXPECT_EQ(verdict.ranks, (std::vector<base::Rank>{0, 1}));
  expect_words(verdict.sentence, {"a deadlock, for ranks call in another order over tp (ranks 0, 1): rank 0 in reduce_scatter of 64 bytes", "call 2, which rank 1 has called behind recv of 8 bytes",
                                  "rank 1 in recv of 8 bytes", "which rank 0 has called behind reduce_scatter of 64 bytes"});
}

// On two streams they do not wait for each other.
TEST(Flight, OfCallsOnTwoStreamsNoneIsBehindTheOther) {
  Ranks ranks(2);
  for (int rank = 0; rank < 2; ++rank) {
    ranks.call(rank, OpKind::send, 8, waits, "tp", 1 - rank);
    ranks.call(rank, OpKind::recv, 8, waits, "tp", 1 - rank).stream = 1;
  }
  EXPECT_EQ(ranks.verdict().blame, Blame::stuck) << ranks.verdict().sentence;
}

// Three ranks pass something on, each before it takes anything: who only waits is not in the circle.
TEST(Flight, NamesACircleOfPairsAndNotWhoWaitsForIt) {
  Ranks ranks(4);
  for (int rank = 0; rank < 3; ++rank) {
    ranks.call(rank, OpKind::send, 8, waits, "tp", (rank + 1) % 3), ranks.call(rank, OpKind::recv, 8, waits, "tp", (rank + 2) % 3);
    ranks.call(rank, OpKind::all_reduce, 64, waits);
  }
  ranks.call(3, OpKind::all_reduce, 64, waits);
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.blame, Blame::circle) << verdict.sentence;
  EXPECT_EQ(verdict.ranks.size(), 3u);
  EXPECT_EQ(verdict.sentence.find("rank 3 in"), std::string::npos);
}

TEST(Flight, NamesTwoSendsThatAwaitTheirReceives) {
  Ranks ranks(2);
  ranks.call(0, OpKind::send, 64, waits, "tp", 1), ranks.call(1, OpKind::send, 64, waits, "tp", 0);
  EXPECT_EQ(ranks.verdict().blame, Blame::circle);
}

TEST(Flight, PairsOfSomeRanksDoNotShiftTheCollectivesOfAll) {
  Ranks ranks(3);
  ranks.call(0, OpKind::send, 64, CallState::ended, "tp", 1), ranks.call(1, OpKind::recv, 64, CallState::ended, "tp", 0);
  ranks.all(OpKind::all_reduce);
  EXPECT_EQ(ranks.verdict().blame, Blame::nobody) << ranks.verdict().sentence;
}

TEST(Flight, OfManyRanksNamesAFew) {
  Ranks ranks(64);
  ranks.call(0, OpKind::all_reduce, 64, waits);
  const Verdict verdict = ranks.verdict();
  EXPECT_EQ(verdict.ranks.size(), 63u);
  EXPECT_LT(verdict.sentence.size(), 800u) << verdict.sentence;
}

}  // namespace
}  // namespace shardbook::check
