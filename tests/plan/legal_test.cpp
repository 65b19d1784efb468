// Legal plans drawn by chance: the verifier has nothing to say against them.
#include <gtest/gtest.h>

#include <array>

#include "engine/plan/needs.hpp"
#include "engine/plan/verify.hpp"
#include "tests/support/plans.hpp"

namespace shardbook::tests {
namespace {

using namespace plan;

// A network and what its plan may do, by chance.
struct Drawn {
  Network network;
  Liberties liberties;

  explicit Drawn(std::uint64_t seed) {
    Chance chance(seed);
    const int micro_batches = 1 + chance.below(4);
    const std::vector<std::vector<std::string>> axes = {{"dp_shard"}, {"dp_shard"}, {"dp_replicate"}, {"dp_shard", "dp_replicate"}};
    network = network_of_blocks(1 + chance.below(6), chance.once_in(2), micro_batches, axes[static_cast<std::size_t>(chance.below(4))]);
    const bool sharded = network.units[0].sums.front() == "dp_shard";
    for (Unit& unit : network.units) {
      unit.sharded = sharded;
      if (!sharded || chance.once_in(3)) {
        unit.resident = true;
        unit.shares_gathered = false;
      }
      if (!sharded) unit.shares_gradient = false;
      if (sharded && !unit.resident && chance.once_in(2)) unit.kept = 64;
    }
    liberties = {chance.once_in(3), chance.once_in(3), 1 + chance.below(micro_batches)};
    // Half of those that shard have shards in host memory, half of the others states
    const bool on_host = sharded && chance.once_in(2);
    for (Unit& unit : network.units) unit.on_host = on_host;
    network.states_on_host = !on_host && chance.once_in(2);
    liberties.remake = chance.once_in(2);
    liberties.next_step = chance.once_in(2);
  }
};

TEST(LegalPlans, TenThousandByChanceAreAccepted) {
  std::map<Kind, int> seen;
  std::size_t longest = 0, for_the_next = 0;
  for (std::uint64_t seed = 0; seed < 10000; ++seed) {
    const Drawn drawn(seed);
    Plan made = LegalPlan(drawn.network, seed, drawn.liberties).make();
    made = finish(made, drawn.network, slots_for(made, drawn.network));
    const auto problem = problem_of(made, drawn.network);
    ASSERT_FALSE(problem) << "seed " << seed << ": " << problem->sentence;
    for (const Action& action : made.actions) ++seen[action.kind];
    longest = std::max(longest, made.actions.size());
    for_the_next += for_the_next_step(made).size();
  }
  // All kinds come up, and plans of some length
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kinds));
  for (const auto& [kind, count] : seen) EXPECT_GT(count, 2000) << name_of(kind);
  EXPECT_GT(longest, 150u);
  EXPECT_GT(for_the_next, 1000u);
}

// One buffer fewer than a plan needs, and the verifier says which unit has none.
TEST(LegalPlans, NeedEachOfTheirBuffers) {
  std::array<int, 2> fewer{};   // of units, of shards
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Drawn drawn(seed);
    const Plan made = LegalPlan(drawn.network, seed, drawn.liberties).make();
    const Needs needs = needs_of(made, drawn.network);
    const Slots enough{needs.gathered, needs.gradient, needs.shards, needs.gradient_shards};
    EXPECT_FALSE(problem_of(finish(made, drawn.network, enough), drawn.network)) << seed;
    for (int Slots::*which : {&Slots::gathered, &Slots::gradient, &Slots::shards, &Slots::gradient_shards}) {
      if (enough.*which == 0) continue;
      Slots too_few = enough;
      --(too_few.*which);
      ++fewer[which == &Slots::gathered || which == &Slots::gradient ? 0 : 1];
      EXPECT_TRUE(problem_of(finish(made, drawn.network, too_few), drawn.network)) << seed;
    }
  }
  EXPECT_GT(fewer[0], 500);
  EXPECT_GT(fewer[1], 500);
}

}  // namespace
}  // namespace shardbook::tests
