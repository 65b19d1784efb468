// What must hold of every program: checked on random ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/simulate/resolver.hpp"
#include "tests/simulate/longest_path.hpp"
#include "tests/simulate/programs.hpp"

namespace shardbook::simulate {
namespace {

constexpr unsigned seeds = 60;

Machine sharing_machine() {
  Machine machine;
  machine.launch_latency_ns = 11;
  machine.stream_gap_ns = 3;
  machine.event_latency_ns = 5;
  machine.shares = true;
  machine.contention = {{2, 1.2, 1.7, 1.1, 1.3}};
  return machine;
}

class EveryOrder : public ::testing::TestWithParam<Machine::CollectiveOrder> {};

TEST_P(EveryOrder, WithoutContentionEveryOpRunsOnTheLongestPath) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    RandomRanks ranks(seed);
    const std::vector<RankSteps> steps = ranks.steps(2);
    Machine machine = sharing_machine();
    machine.shares = false;
    machine.order = GetParam();
    ResolveOptions options;
    options.drain_each_step = seed % 2 == 1;
    const Resolved out = resolved(steps, machine, options);
    const auto expected = longest_paths(steps, machine, options.drain_each_step);
    for (std::size_t rank = 0; rank < steps.size(); ++rank) {
      for (std::size_t step = 0; step < 2; ++step) {
        for (std::size_t op = 0; op < expected[rank][step].size(); ++op) {
          const program::TimeSpan& ran = out.ranks[rank].steps[step].ran[op];
          ASSERT_EQ(ran.start, expected[rank][step][op].start) << "seed " << seed << " rank " << rank << " op " << op;
          ASSERT_EQ(ran.end, expected[rank][step][op].end) << "seed " << seed << " rank " << rank << " op " << op;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Resolver, EveryOrder,
                         ::testing::Values(Machine::CollectiveOrder::free, Machine::CollectiveOrder::launch,
                                           Machine::CollectiveOrder::serial));

TEST(EveryProgram, StartsEachOpAfterAllThatItFollows) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    RandomRanks ranks(seed);
    const Resolved out = resolved(ranks.steps(2), sharing_machine());
    for (std::size_t rank = 0; rank < ranks.all.size(); ++rank) {
      const program::Program& program = ranks.all[rank].program();
      for (const program::StepTimes& times : out.ranks[rank].steps) {
        for (const program::Edge& edge : program::edges(program)) {
          ASSERT_LE(times.ran[edge.from].end, times.ran[edge.to].start)
              << "seed " << seed << " rank " << rank << " edge " << program::name_of(edge.kind);
        }
        for (std::size_t at = 0; at < program.commands.size(); ++at) {
          const program::Command& command = program.commands[at];
          if (command.kind != program::CommandKind::op) continue;
          ASSERT_LE(times.issued[at].end, times.ran[command.op].start);
        }
      }
    }
  }
}

TEST(EveryProgram, EndsACollectiveAtOnceOnAllItsRanks) {
  RandomRanks ranks(7);
  const Resolved out = resolved(ranks.steps(1), sharing_machine());
  for (std::size_t rank = 0; rank < ranks.all.size(); rank += 2) {
    // Ranks 2 i and 2 i + 1 are a row: their row collectives, in order, end together and transfer as long.
    std::vector<base::Nanoseconds> ends[2], transfers[2];
    for (std::size_t member = 0; member < 2; ++member) {
      const program::Program& program = ranks.all[rank + member].program();
      for (std::size_t op = 0; op < program.ops.size(); ++op) {
        if (program.ops[op].desc.collective.group != 0) continue;
        const program::TimeSpan& ran = out.ranks[rank + member].steps[0].ran[op];
        ends[member].push_back(ran.end);
        transfers[member].push_back(ran.end - ran.start - out.ranks[rank + member].wait_ns[0][op]);
      }
    }
    EXPECT_FALSE(ends[0].empty());
    EXPECT_EQ(ends[0], ends[1]);
    EXPECT_EQ(transfers[0], transfers[1]);
  }
}

TEST(EveryProgram, IsNeverFasterForSharing) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    RandomRanks ranks(seed, 2);
    Machine machine = sharing_machine();
    const Resolved shared = resolved(ranks.steps(1), machine);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const std::vector<base::Nanoseconds>& alone = ranks.all[rank].steps().steps[0].costs->op_ns;
      for (std::size_t op = 0; op < alone.size(); ++op) {
        const program::TimeSpan& ran = shared.ranks[rank].steps[0].ran[op];
        ASSERT_GE(ran.end - ran.start, alone[op]) << "seed " << seed;
      }
    }
  }
}

bool equal(const Resolved& left, const Resolved& right, std::size_t left_rank, std::size_t right_rank) {
  const RankTimes &a = left.ranks[left_rank], &b = right.ranks[right_rank];
  if (a.rank != b.rank || a.wait_ns != b.wait_ns) return false;
  for (std::size_t step = 0; step < a.steps.size(); ++step) {
    for (auto part : {&program::StepTimes::issued, &program::StepTimes::ran}) {
      const auto &x = a.steps[step].*part, &y = b.steps[step].*part;
      for (std::size_t at = 0; at < x.size(); ++at) {
        if (x[at].start != y[at].start || x[at].end != y[at].end) return false;
      }
    }
  }
  return true;
}

TEST(EveryProgram, ResolvesTheSameAgainAndInAnyOrderOfRanks) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    RandomRanks ranks(seed);
    std::vector<RankSteps> steps = ranks.steps(2);
    const Resolved first = resolved(steps, sharing_machine());
    const Resolved again = resolved(steps, sharing_machine());
    std::reverse(steps.begin(), steps.end());
    const Resolved reversed = resolved(steps, sharing_machine());
    for (std::size_t rank = 0; rank < steps.size(); ++rank) {
      EXPECT_TRUE(equal(first, again, rank, rank)) << "seed " << seed;
      EXPECT_TRUE(equal(first, reversed, rank, steps.size() - 1 - rank)) << "seed " << seed;
    }
  }
}

// Ops that take turns do as much work in all as one after the other: k streams that are never idle end when the
// sum of their work is done, to the rounding of each change of rate.
TEST(EveryProgram, ConservesWorkWhereOpsTakeTurns) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    std::mt19937 draw(seed);
    TestRank rank(0, 4);
    base::Nanoseconds work = 0;
    int ops = 0;
    for (; ops < 100; ++ops) {
      const base::Nanoseconds ns = 1 + static_cast<base::Nanoseconds>(draw() % 10000);
      rank.op(static_cast<StreamId>(draw() % 4), ns);
      work += ns;
    }
    Machine machine;
    machine.shares = true;
    EXPECT_NEAR(static_cast<double>(resolved({rank.steps()}, machine).step_ns), static_cast<double>(work), ops) << "seed " << seed;
  }
}

}  // namespace
}  // namespace shardbook::simulate
