// Ranks whose groups agree, and which may still wait for each other for ever.
#include <gtest/gtest.h>

#include <random>

#include "engine/check/hang.hpp"
#include "tests/check/issued.hpp"
#include "tests/check/recorded.hpp"

namespace shardbook::tests {
namespace {

using check::Hang;
using program::CommandKind;
using program::OpKind;

// Ranks with two streams, a and b, two events and two groups, tp and dp, of all of them.
struct Ranks {
  explicit Ranks(int count) : programs(static_cast<std::size_t>(count)) {
    for (const char* axis : {"tp", "dp"}) {
      program::GroupInfo group{axis, {}};
      for (int rank = 0; rank < count; ++rank) group.ranks.push_back(rank);
      catalogue.groups.push_back(group);
    }
    catalogue.streams = {{"a"}, {"b"}};
    catalogue.events = {"event0", "event1"};
  }

  Ranks& call(int rank, program::StreamId stream, program::GroupId group, OpKind kind = OpKind::all_reduce, base::Rank peer = -1) {
    program::Program& program = programs[static_cast<std::size_t>(rank)];
    program::OpDesc desc(program::name_of(kind), kind, base::DType::f32);
    if (group != program::no_group) desc.collective_of({group, 0, 64, peer});
    add(rank, CommandKind::op, stream).op = static_cast<program::OpIndex>(program.ops.size());
    program.ops.push_back({{}, desc, stream, {"test.cpp", static_cast<std::uint32_t>(program.commands.size())}});
    return *this;
  }
  Ranks& record(int rank, program::StreamId stream, program::EventId event) { return add(rank, CommandKind::record_event, stream).event = event, *this; }
  Ranks& wait(int rank, program::StreamId stream, program::EventId event) { return add(rank, CommandKind::wait_event, stream).event = event, *this; }
  Ranks& host_wait(int rank, program::EventId event) { return add(rank, CommandKind::host_wait, 0).event = event, *this; }
  Ranks& read_back(int rank, program::StreamId stream) { return add(rank, CommandKind::read_back, stream), *this; }

  std::vector<check::RankSteps> pages(std::size_t steps = 1) const {
    std::vector<check::RankSteps> pages;
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
      pages.push_back({static_cast<base::Rank>(rank), &catalogue, check::Steps(steps, &programs[rank])});
    }
    return pages;
  }
  Hang hang(std::size_t steps = 1) const { return check::hang(pages(steps)); }

  program::Catalogue catalogue;
  std::vector<program::Program> programs;

 private:
  program::Command& add(int rank, CommandKind kind, program::StreamId stream) {
    program::Command& command = programs[static_cast<std::size_t>(rank)].commands.emplace_back();
    command.kind = kind;
    command.stream = stream;
    return command;
  }
};

constexpr program::GroupId tp = 0, dp = 1;

TEST(Hang, IsThereWhereTwoGroupsCrossOnOneStreamAndNotOnTwo) {
  Ranks crossed(2);
  crossed.call(0, a, tp).call(0, a, dp).call(1, a, dp).call(1, a, tp);
  EXPECT_TRUE(check::divergences(crossed.pages()).empty()) << "each group by itself agrees";
  EXPECT_EQ(crossed.hang().sentence,
            "ranks wait for each other for ever: rank 0 stands on a at all_reduce (setup; test.cpp:1) over tp, step 0; "
            "rank 1 stands on a at all_reduce (setup; test.cpp:1) over dp, step 0");
  Ranks apart(2);
  apart.call(0, a, tp).call(0, b, dp).call(1, b, dp).call(1, a, tp);
  EXPECT_EQ(apart.hang(3).sentence, "");
}

TEST(Hang, IsThereWhereAnEventTiesTwoStreamsTheWrongWayRound) {
  auto tied = [](bool wrong) {
    Ranks ranks(2);
    ranks.call(0, a, tp).record(0, a, 0).wait(0, b, 0).call(0, b, dp);
    if (wrong) ranks.call(1, b, dp).record(1, b, 0).wait(1, a, 0).call(1, a, tp);
    else ranks.call(1, b, dp).call(1, a, tp);
    return ranks.hang(2).stuck.size();
  };
  EXPECT_EQ(tied(false), 0u);
  EXPECT_EQ(tied(true), 2u);
}

TEST(Hang, IsThereWhereAHostWaitsBeforeItIssuesWhatItsPeerNeeds) {
  Ranks ranks(2);
  ranks.call(0, a, tp).record(0, a, 0).host_wait(0, 0).call(0, b, dp);
  ranks.call(1, b, dp).read_back(1, b).call(1, a, tp);
  EXPECT_EQ(ranks.hang().stuck.size(), 2u);
  Ranks later(2);
  later.call(0, a, tp).record(0, a, 0).call(0, b, dp).host_wait(0, 0);
  later.call(1, b, dp).read_back(1, b).call(1, a, tp);
  EXPECT_EQ(later.hang(2).stuck.size(), 0u);
}

TEST(Hang, IsThereWhereBothSendBeforeEitherReceives) {
  Ranks both(2);
  for (int rank : {0, 1}) both.call(rank, a, tp, OpKind::send, 1 - rank).call(rank, a, tp, OpKind::recv, 1 - rank);
  EXPECT_EQ(both.hang().stuck.size(), 2u);
  Ranks turned(2);
  turned.call(0, a, tp, OpKind::send, 1).call(0, a, tp, OpKind::recv, 1).call(1, a, tp, OpKind::recv, 0).call(1, a, tp, OpKind::send, 0);
  EXPECT_EQ(turned.hang(2).stuck.size(), 0u);
  Ranks two_streams(2);
  for (int rank : {0, 1}) two_streams.call(rank, a, tp, OpKind::send, 1 - rank).call(rank, b, tp, OpKind::recv, 1 - rank);
  EXPECT_EQ(two_streams.hang(2).stuck.size(), 0u);
}

TEST(Hang, OfARankThatStopsIsItsPeers) {
  Ranks ranks(3);
  ranks.call(0, a, tp).call(2, a, tp);
  const Hang hang = ranks.hang();
  ASSERT_EQ(hang.stuck.size(), 2u);
  EXPECT_EQ(hang.stuck[0].rank, 0);
  EXPECT_EQ(hang.stuck[1].rank, 2);
}

// Ranks that all issue one list of calls never hang, whatever stream each call is on and however waits are strewn in:
// the oldest call that has not run can always run. Nor do the ranks of a trainer.
TEST(Hang, IsNeverThereForRanksThatIssueTheSameList) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    Ranks ranks(3);
    for (int at = 0; at < 30; ++at) {
      const auto stream = static_cast<program::StreamId>(random() % 2);
      const auto group = static_cast<program::GroupId>(random() % 3);
      const auto event = static_cast<program::EventId>(random() % 2);
      const unsigned kind = random() % 8;
      for (int rank = 0; rank < 3; ++rank) {
        if (kind < 4) ranks.call(rank, stream, group == 2 ? program::no_group : group, group == 2 ? OpKind::gemm : OpKind::all_reduce);
        else if (kind == 4) ranks.record(rank, stream, event);
        else if (kind == 5) ranks.wait(rank, stream, event);
        else if (kind == 6) ranks.host_wait(rank, event);
        else ranks.read_back(rank, stream);
      }
    }
    ASSERT_EQ(ranks.hang(2).sentence, "") << "seed " << seed;
  }
}

// Sums the squares over tp on the stream that is to sum them over fsdp, and before that.
void cross_groups(Recorded& recorded) {
  program::Program& program = recorded.programs[0];
  auto place_of = [&](const char* axis) {
    std::size_t at = 0;
    for (;; ++at) {
      const program::Command& command = program.commands.at(at);
      if (command.kind != CommandKind::op || program.ops[command.op].key.phase != program::Phase::reduce) continue;
      const program::GroupId group = program.ops[command.op].desc.collective.group;
      if (group != program::no_group && recorded.catalogue.groups[group].axis == axis) return at;
    }
  };
  const std::size_t over_fsdp = place_of("dp_shard"), over_tp = place_of("tp");
  program::Command moved = program.commands[over_tp];
  moved.stream = program.ops[moved.op].stream = program.commands[over_fsdp].stream;
  program.commands.erase(program.commands.begin() + static_cast<std::ptrdiff_t>(over_tp));
  program.commands.insert(program.commands.begin() + static_cast<std::ptrdiff_t>(over_fsdp), moved);
}

TEST(Hang, IsFoundInATrainerWhoseRanksWaitInACircle) {
  std::vector<Recorded> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.push_back(record_on_meta(two_by_two(), rank));
  ASSERT_EQ(problem_of(ranks), "");
  auto hang_of = [&ranks] {
    std::vector<check::RankSteps> pages;
    for (const Recorded& recorded : ranks) pages.push_back({recorded.rank, &recorded.catalogue, {&recorded.programs[0]}});
    EXPECT_TRUE(check::divergences(pages).empty()) << "each group by itself agrees";
    return check::hang(pages);
  };
  // tp joins ranks 0 and 1, 2 and 3; fsdp 0 and 2, 1 and 3. One rank that crosses its groups only comes late.
  cross_groups(ranks[3]);
  EXPECT_EQ(hang_of().sentence, "");
  // Two close the circle: 3 waits for 2 over tp, 2 for 0 over fsdp, 0 for 1 over tp, 1 for 3 over fsdp.
  cross_groups(ranks[0]);
  const Hang hang = hang_of();
  ASSERT_GE(hang.stuck.size(), 4u);
  EXPECT_NE(hang.sentence.find("rank 0 stands on fsdp at all_reduce"), std::string::npos) << hang.sentence;
  EXPECT_NE(hang.sentence.find("over tp"), std::string::npos) << hang.sentence;
}

}  // namespace
}  // namespace shardbook::tests
