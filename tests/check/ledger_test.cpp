// The collectives of a group, side by side: what is wrong is named with both ranks and both lines.
#include <gtest/gtest.h>

#include <functional>

#include "engine/check/words.hpp"
#include "tests/check/recorded.hpp"

namespace shardbook::tests {
namespace {

using check::Difference;
using check::Divergence;
using program::OpKind;

// Callers that call collectives by hand; the line of a call is its place, 100 times the rank added.
struct Callers {
  explicit Callers(int count) : catalogues(static_cast<std::size_t>(count)), programs(static_cast<std::size_t>(count)) {
    program::GroupInfo all{"dp_shard", {}};
    for (int rank = 0; rank < count; ++rank) all.ranks.push_back(rank);
    for (program::Catalogue& catalogue : catalogues) catalogue.groups.push_back(all);
  }

  Callers& call(int rank, OpKind kind, base::Bytes bytes = 64, base::DType dtype = base::DType::f32, base::Rank peer = -1) {
    std::vector<program::Op>& ops = programs[static_cast<std::size_t>(rank)].ops;
    program::OpDesc desc(program::name_of(kind), kind, dtype);
    desc.collective_of({0, 0, bytes, peer});
    ops.push_back({{}, desc, 0, {"test.cpp", static_cast<std::uint32_t>(100 * rank) + static_cast<std::uint32_t>(ops.size())}});
    return *this;
  }
  Callers& all_call(OpKind kind, base::Bytes bytes = 64) {
    for (int rank = 0; rank < static_cast<int>(programs.size()); ++rank) call(rank, kind, bytes);
    return *this;
  }
  std::vector<Divergence> divergences() const {
    std::vector<check::RankSteps> ranks;
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
      ranks.push_back({static_cast<base::Rank>(rank), &catalogues[rank], {&programs[rank]}});
    }
    return check::divergences(ranks);
  }

  std::vector<program::Catalogue> catalogues;
  std::vector<program::Program> programs;
};

TEST(Ledger, OfRanksThatCallAlikeHasNothingToSay) {
  Callers ranks(3);
  ranks.all_call(OpKind::all_gather).all_call(OpKind::reduce_scatter, 128).all_call(OpKind::all_reduce);
  EXPECT_TRUE(ranks.divergences().empty());
}

TEST(Ledger, NamesTheRankThatStopsAndWhatTheOthersWaitIn) {
  Callers ranks(3);
  ranks.all_call(OpKind::all_gather).all_call(OpKind::all_gather, 128);
  ranks.call(0, OpKind::all_reduce).call(2, OpKind::all_reduce);
  ASSERT_EQ(ranks.divergences().size(), 1u);
  EXPECT_EQ(ranks.divergences()[0].sentence,
            "over dp_shard (ranks 0, 1, 2), call 3: rank 1 stops after 2 calls, the last all_gather of 128 bytes f32 (setup; test.cpp:101), "
            "where rank 0 goes on with all_reduce of 64 bytes f32 (setup; test.cpp:2) and waits for it for ever");
}

TEST(Ledger, NamesARankThatNeverCalls) {
  Callers ranks(2);
  ranks.call(1, OpKind::all_reduce);
  ASSERT_EQ(ranks.divergences().size(), 1u);
  EXPECT_EQ(ranks.divergences()[0].odd, 0);
  EXPECT_EQ(ranks.divergences()[0].difference, Difference::stops);
  ranks.catalogues[0].groups.clear();  // nor has it ever made the group
  ASSERT_EQ(ranks.divergences().size(), 1u);
  EXPECT_EQ(ranks.divergences()[0].odd, 0);
}

TEST(Ledger, CallsUsualWhatMostRanksDo) {
  Callers ranks(4);
  ranks.all_call(OpKind::all_gather);
  ranks.call(0, OpKind::all_reduce).call(1, OpKind::all_gather).call(2, OpKind::all_gather).call(3, OpKind::all_gather);
  ASSERT_EQ(ranks.divergences().size(), 1u);
  EXPECT_EQ(ranks.divergences()[0].usual, 1);
  EXPECT_EQ(ranks.divergences()[0].odd, 0);
}

TEST(Ledger, OfABroadcastAsksForOneRoot) {
  Callers ranks(3);
  for (int rank = 0; rank < 3; ++rank) ranks.call(rank, OpKind::broadcast, 64, base::DType::f32, rank == 2 ? 1 : 0);
  ASSERT_EQ(ranks.divergences().size(), 1u);
  EXPECT_EQ(ranks.divergences()[0].difference, Difference::root);
  EXPECT_EQ(ranks.divergences()[0].odd, 2);
}

TEST(Ledger, LetsAnAllToAllSendAsMuchAsEachRankHas) {
  Callers ranks(2);
  ranks.call(0, OpKind::all_to_all, 64).call(1, OpKind::all_to_all, 96);
  EXPECT_TRUE(ranks.divergences().empty());
}

TEST(Ledger, PutsEachSendBesideItsReceive) {
  // A ring of three: each sends to the next and receives from the one before, in whichever order.
  auto ring = [](base::Bytes of_rank_two) {
    Callers ranks(3);
    for (int rank = 0; rank < 3; ++rank) {
      const base::Bytes bytes = rank == 2 ? of_rank_two : 64;
      const int next = (rank + 1) % 3, last = (rank + 2) % 3;
      if (rank == 1) ranks.call(rank, OpKind::recv, 64, base::DType::f32, last).call(rank, OpKind::send, 64, base::DType::f32, next);
      else ranks.call(rank, OpKind::send, bytes, base::DType::f32, next).call(rank, OpKind::recv, 64, base::DType::f32, last);
    }
    return ranks;
  };
  EXPECT_TRUE(ring(64).divergences().empty());
  ASSERT_EQ(ring(32).divergences().size(), 1u);
  EXPECT_EQ(ring(32).divergences()[0].difference, Difference::bytes);
  Callers more = ring(64);
  more.call(1, OpKind::send, 64, base::DType::f32, 2);
  ASSERT_EQ(more.divergences().size(), 1u);
  EXPECT_EQ(more.divergences()[0].difference, Difference::stops);
  EXPECT_EQ(more.divergences()[0].odd, 2) << "who never receives";
}

TEST(Ledger, GoesOnThroughTheStepsOfARun) {
  Callers ranks(2);
  ranks.all_call(OpKind::all_gather);
  const check::Steps two{&ranks.programs[0], &ranks.programs[0]}, one{&ranks.programs[1]};
  const std::vector<Divergence> found = check::divergences({{0, &ranks.catalogues[0], two}, {1, &ranks.catalogues[1], one}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].odd, 1);
  EXPECT_EQ(found[0].usual_call, (check::Place{1, 0}));
}

// --- Mistakes planted in one rank of a trainer's four, for each kind of collective ------------------------

struct Mistake {
  Difference difference;
  std::function<void(std::vector<program::Op>&, std::size_t)> plant;  // at this collective
};

// The next op of the same group.
std::size_t next_of_group(const std::vector<program::Op>& ops, std::size_t at) {
  const program::GroupId group = ops[at].desc.collective.group;
  while (++at < ops.size() && ops[at].desc.collective.group != group) {}
  return at;
}

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> all{
      {Difference::missing, [](auto& ops, std::size_t at) { ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(at)); }},
      {Difference::extra,
       [](auto& ops, std::size_t at) {
         program::Op more = ops[at];
         more.desc.collective.bytes += 4;  // so that it is this one, not the next, that is too much
         ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(at), more);
       }},
      {Difference::swapped, [](auto& ops, std::size_t at) { std::swap(ops[at], ops[next_of_group(ops, at)]); }},
      {Difference::bytes, [](auto& ops, std::size_t at) { ops[at].desc.collective.bytes *= 2; }},
      {Difference::dtype, [](auto& ops, std::size_t at) { ops[at].desc.dtype = base::DType::f64; }},
      {Difference::kind,
       [](auto& ops, std::size_t at) { ops[at].desc.kind = ops[at].desc.kind == OpKind::all_reduce ? OpKind::all_gather : OpKind::all_reduce; }},
      {Difference::stops, [](auto& ops, std::size_t at) { ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(at), ops.end()); }},
  };
  return all;
}

class PlantedMistake : public testing::TestWithParam<std::tuple<OpKind, std::size_t>> {};

TEST_P(PlantedMistake, IsNamedWithBothRanksAndBothLines) {
  const auto [kind, which] = GetParam();
  const Mistake& mistake = mistakes()[which];
  std::vector<Recorded> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.push_back(record_on_meta(two_by_two(), rank));
  ASSERT_EQ(problem_of(ranks), "");

  // The third collective of the kind whose successor in the group is of another size or kind
  std::vector<program::Op>& ops = ranks[3].programs[0].ops;
  std::size_t place = ops.size();
  int seen = 0;
  for (std::size_t at = 0; at < ops.size() && place == ops.size(); ++at) {
    if (ops[at].desc.kind != kind) continue;
    const std::size_t next = next_of_group(ops, at);
    if (next == ops.size()) continue;
    const bool differs = ops[next].desc.kind != kind || ops[next].desc.collective.bytes != ops[at].desc.collective.bytes;
    if (differs && ++seen == 3) place = at;
  }
  ASSERT_LT(place, ops.size());
  const program::Op planted = ops[place];
  const program::GroupInfo group = ranks[3].catalogue.groups[planted.desc.collective.group];
  mistake.plant(ops, place);

  std::vector<check::RankSteps> pages;
  for (const Recorded& recorded : ranks) pages.push_back({recorded.rank, &recorded.catalogue, {&recorded.programs[0]}});
  std::vector<Divergence> found = check::divergences(pages);
  // A rank that stops, stops in each of its groups.
  std::erase_if(found, [&](const Divergence& one) { return one.group.ranks != group.ranks || one.group.axis != group.axis; });
  ASSERT_EQ(found.size(), 1u);
  const Divergence& one = found[0];
  EXPECT_EQ(one.difference, mistake.difference) << check::name_of(one.difference) << ": " << one.sentence;
  EXPECT_EQ(one.odd, 3) << one.sentence;
  EXPECT_EQ(one.usual, group.ranks[0]) << one.sentence;
  EXPECT_NE(one.sentence.find(base::text("rank ", one.usual)), std::string::npos) << one.sentence;
  EXPECT_NE(one.sentence.find(check::line_text(planted.where)), std::string::npos) << one.sentence;
  EXPECT_EQ(one.sentence.find('\n'), std::string::npos);
  EXPECT_EQ(one.usual_call.op, place) << "the usual rank's call is the one that was planted on";
}

INSTANTIATE_TEST_SUITE_P(Each, PlantedMistake,
                         testing::Combine(testing::Values(OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter),
                                          testing::Range(std::size_t{0}, mistakes().size())),
                         [](const auto& info) {
                           return base::text(program::name_of(std::get<0>(info.param)), "_", check::name_of(mistakes()[std::get<1>(info.param)].difference));
                         });

}  // namespace
}  // namespace shardbook::tests
