// Other orders of a step, carried out on host ranks: a legal one gives the numbers of the config's own order. What the
// verifier says of damaged ones is true: what it lets pass gives these numbers, too.
//
// All in fp64, with queues that drain in random legal orders, so that a wait that an order needs and nobody issues
// gives wrong numbers.
#include <atomic>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "engine/plan/verify.hpp"
#include "tests/support/plans.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

using plan::Action;
using plan::Kind;
using plan::Network;
using plan::Plan;

// A layout by chance, as small as can be.
config::RunConfig drawn_config(Chance& chance) {
  struct Layout {
    int tp, fsdp, dp;
  };
  const std::vector<Layout> layouts = {{1, 2, 1}, {1, 2, 1}, {1, 2, 1}, {1, 4, 1}, {2, 2, 1}, {1, 1, 1}, {2, 1, 1}, {1, 1, 2}, {1, 2, 2}, {2, 1, 2}};
  const auto [tp, fsdp, dp] = layouts[static_cast<std::size_t>(chance.below(static_cast<int>(layouts.size())))];
  config::RunConfig config = small_config(tp, fsdp, dp);
  config.model.layers = 1 + chance.below(4);
  config.model.width = 16;
  config.model.heads = 2;
  config.model.sequence = 4;
  config.model.vocab = 16;
  config.model.ffn_width = 16;
  config.model.tied = chance.once_in(2);
  config.host_dtype = config::HostDtype::f64;
  config.micro_batches = 1 + chance.below(4);
  config.sequences = config.data_ranks() * config.micro_batches;
  config.reshard = !chance.once_in(4);
  config.steps = 2;
  if (chance.once_in(4)) config.switches["activations.recompute"] = chance.once_in(2) ? "selective" : "cheap";
  if (fsdp > 1 && chance.once_in(3)) config.switches["fsdp.blocks_a_unit"] = std::to_string(2 + chance.below(3));
  if (fsdp > 1 && chance.once_in(4)) config.switches["fsdp.sharding"] = "per_parameter";
  if (fsdp > 2 && config.reshard && chance.once_in(2)) config.switches["fsdp.reshard_group"] = "2";
  if (dp == 1 && chance.once_in(3)) config.switches["fsdp.offload"] = "parameters";
  else if (chance.once_in(5)) config.switches["fsdp.offload"] = "optimizer";
  const bool offloads = config.switches.contains("fsdp.offload");
  if (fsdp > 1 && !offloads && chance.once_in(3)) config.switches["fsdp.parameter_copy"] = "made";
  if (fsdp > 1 && dp == 1 && config.micro_batches == 1 && !offloads) config.switches["fsdp.gradient_memory"] = "lent";
  if (tp > 1 && chance.once_in(2)) return with_tokens_cut(config);
  if (chance.once_in(4)) config.switches["loss.chunks"] = "3";
  return config;
}

// Where gradients are lent the memory of what blocks keep, blocks keep something.
bool may_recompute(const config::RunConfig& config) { return !config.switches.contains("fsdp.gradient_memory"); }

HostRun run(const config::RunConfig& config, const train::PlanMaker& make_plan) {
  return run_on_host(config, TestTokens(config.model.vocab, config.model.sequence), {}, make_plan);
}

// The order that the config itself asks for, run once for each layout.
const HostRun& usual(config::RunConfig config) {
  static std::map<std::string, HostRun> known;
  config.drain_seed = 0;
  const std::string key = config::to_json(config);
  const auto found = known.find(key);
  return found != known.end() ? found->second : known[key] = run(config, nullptr);
}

// What decides roundings: the micro-batches that each reduction of a unit sums, in the order in which they were added,
// and the order of the losses.
std::string sums_of(const Plan& plan, const Network& network) {
  std::vector<std::string> units(network.units.size());
  std::string losses;
  for (const Action& action : plan.actions) {
    const std::string m = std::to_string(action.micro_batch);
    if (action.kind == Kind::backward) units[static_cast<std::size_t>(network.layers[static_cast<std::size_t>(action.layer)].unit)] += " " + m;
    for (int unit = action.unit; action.kind == Kind::reduce && unit < action.unit + action.units; ++unit) units[static_cast<std::size_t>(unit)] += " +";
    if (action.kind == Kind::forward && action.layer + 1 == static_cast<int>(network.layers.size())) losses += " " + m;
  }
  for (const std::string& unit : units) losses += " |" + unit;
  return losses;
}

double largest_error(const Parameters& found, const Parameters& truth) {
  double error = 0, size = 0;
  for (const auto& [name, values] : truth) {
    for (std::size_t at = 0; at < values.size(); ++at) {
      error = std::max(error, std::abs(found.at(name)[at] - values[at]));
      size = std::max(size, std::abs(values[at]));
    }
  }
  return error / size;
}

// Sums of some hundred terms in another order: a relative 1e-13 or so in fp64.
void expect_close(const HostRun& found, const HostRun& truth) {
  for (std::size_t step = 0; step < truth.losses.size(); ++step) EXPECT_NEAR(found.losses[step], truth.losses[step], 1e-11 * truth.losses[step]);
  EXPECT_LT(largest_error(found.gradients, truth.gradients), 1e-11);
}

// How many runs: SHARDBOOK_PLANS for the long form, by hand; a tenth, or a twentieth, where the code is instrumented.
int runs(int usual) {
  if (one_in > 1) usual /= 5 * one_in;
  const char* asked = std::getenv("SHARDBOOK_PLANS");
  return asked != nullptr ? std::atoi(asked) : usual;
}

TEST(LegalPlans, GiveTheNumbersOfTheUsualOrder) {
  int same = 0, close = 0;
  for (int seed = 0; seed < runs(300) && !HasFailure(); ++seed) {
    Chance chance(static_cast<std::uint64_t>(seed));
    config::RunConfig config = drawn_config(chance);
    config.drain_seed = static_cast<std::uint64_t>(seed) + 1;
    const bool accumulate = chance.once_in(4);
    const Liberties liberties{chance.once_in(4) && may_recompute(config), accumulate, 1 + chance.below(config.micro_batches), chance.once_in(3)};
    std::atomic<bool> exact = false;   // all ranks say the same
    const HostRun found = run(config, [&](const Network& network) {
      const Plan made = LegalPlan(network, static_cast<std::uint64_t>(seed), liberties).make();
      exact = sums_of(made, network) == sums_of(train::order_of(train::choices_of(config), network).plan, network);
      return made;
    });
    ASSERT_EQ(found.error, "") << "seed " << seed;
    SCOPED_TRACE(base::text("seed ", seed));
    EXPECT_TRUE(exact || accumulate);
    exact ? expect_same_bits(found, usual(config)) : expect_close(found, usual(config));
    ++(exact ? same : close);
  }
  std::printf("%d plans gave the same bits, %d summed in another order\n", same, close);
  EXPECT_GT(same, 0);
}

// One change by chance: an action less, one twice, one elsewhere.
Plan damaged(Plan plan, Chance& chance) {
  std::vector<Action>& actions = plan.actions;
  const auto at = actions.begin() + chance.below(static_cast<int>(actions.size()));
  const Action action = *at;
  const int kind = chance.below(3);
  if (kind != 1) actions.erase(at);
  if (kind != 0) actions.insert(actions.begin() + chance.below(static_cast<int>(actions.size()) + 1), action);
  return plan;
}

TEST(DamagedPlans, AreRefusedOrGiveTheNumbersOfTheUsualOrder) {
  int refused = 0, same = 0, close = 0;
  for (int seed = 0; seed < runs(600) && !HasFailure(); ++seed) {
    Chance chance(static_cast<std::uint64_t>(seed) + 1000000);
    config::RunConfig config = drawn_config(chance);
    config.drain_seed = static_cast<std::uint64_t>(seed) + 1;
    const Liberties liberties{chance.once_in(3) && may_recompute(config), false, 1 + chance.below(config.micro_batches), chance.once_in(3)};
    const std::uint64_t change = chance.next();
    std::atomic<bool> exact = false;   // all ranks say the same
    std::string said, line;
    std::mutex mutex;
    const HostRun found = run(config, [&](const Network& network) {
      Chance own(change);
      const Plan made = seed % 2 == 0 ? train::order_of(train::choices_of(config), network).plan : LegalPlan(network, static_cast<std::uint64_t>(seed), liberties).make();
      const Plan wrong = damaged(made, own);
      std::lock_guard lock(mutex);
      exact = sums_of(wrong, network) == sums_of(train::order_of(train::choices_of(config), network).plan, network);
      const train::Order order = train::finished(train::through_host_memory(wrong, network), network);
      if (const auto problem = plan::problem_of(order.plan, network)) said = problem->sentence;
      return wrong;
    });
    SCOPED_TRACE(base::text("seed ", seed));
    if (!said.empty()) {
      ++refused;
      EXPECT_NE(found.error.find(said.substr(said.find(", "))), std::string::npos) << found.error << "\n" << said;
      continue;
    }
    ASSERT_EQ(found.error, "");
    exact ? expect_same_bits(found, usual(config)) : expect_close(found, usual(config));
    ++(exact ? same : close);
  }
  std::printf("%d changes refused, %d gave the same bits, %d summed in another order\n", refused, same, close);
  EXPECT_GT(refused, same + close);
}

// ---- An order that a learner wrote -------------------------------------------------------------

// Nothing is gathered ahead, everything is freed at once. As it would stand in a file that includes plan/passes.hpp alone.
Plan my_plan(const Network& network) {
  const int layers = static_cast<int>(network.layers.size());
  auto unit = [&](int layer) { return network.layers[static_cast<std::size_t>(layer)].unit; };
  auto freed = [&](int layer) {
    const plan::Unit& of = network.units[static_cast<std::size_t>(unit(layer))];
    return of.sharded && !of.resident;
  };
  Plan plan;
  for (int u = 0; u < static_cast<int>(network.units.size()); ++u) {
    if (network.units[static_cast<std::size_t>(u)].resident) plan.add(plan::gather(u));
  }
  for (int m = 0; m < network.micro_batches; ++m) {
    plan.add(plan::load(m));
    for (int layer = 0; layer < layers; ++layer) {
      if (freed(layer)) plan.add(plan::gather(unit(layer)));
      plan.add(plan::forward(layer, m));
      if (freed(layer)) plan.add(plan::release(unit(layer)));
    }
    for (int layer = layers; layer-- > 0;) {
      if (freed(layer)) plan.add(plan::gather(unit(layer)));
      plan.add(plan::backward(layer, m));
      if (freed(layer)) plan.add(plan::release(unit(layer)));
      if (layer == 0 || unit(layer) != unit(0)) plan.add(plan::reduce(unit(layer)));
    }
  }
  return plan.add(plan::norm()).add(plan::update());
}

TEST(ALearnersPlan, GivesTheLossesOfTheUsualOrder) {
  for (int fsdp : {2, 4}) {
    for (bool tied : {true, false}) {
      for (bool reshard : {true, false}) {
        config::RunConfig config = small_config(1, fsdp);
        config.model.tied = tied;
        config.reshard = reshard;
        config.micro_batches = 2;
        config.steps = 5;
        const HostRun found = run(config, my_plan);
        ASSERT_EQ(found.error, "");
        expect_same_bits(found, run(config, nullptr));
      }
    }
  }
}

TEST(ALearnersPlan, IsAnsweredWhereItIsWrong) {
  const config::RunConfig config = small_config(1, 2);
  const HostRun found = run(config, [](const Network& network) {
    Plan plan = my_plan(network);
    std::erase_if(plan.actions, [](const Action& action) { return action.kind == Kind::gather && action.unit == 1; });
    return plan;
  });
  EXPECT_NE(found.error.find("forward blocks.0 of micro-batch 0 needs blocks.0, which nothing has gathered"), std::string::npos) << found.error;
}

}  // namespace
}  // namespace shardbook::tests
