// Steps that are launched by one call are the steps that were issued one by one, to the bit.
//
// The host's graph is a list of ops with their arguments as they were when it was captured. So whatever a step takes from its
// arguments and should take from memory (a learning rate, a key, a place of this step's tokens) gives other numbers here.
#include <gtest/gtest.h>

#include "engine/config/switches.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

using How = train::Trainer::How;

struct Trained {
  std::vector<double> losses, norms;
  Parameters masters, first_moments, second_moments;
  std::vector<How> how;
  std::size_t nodes = 0;
};

// One rank, 20 steps, of which step 9 is traced; the host awaits each step only when the next was issued, as in training.
Trained trained(config::RunConfig config, bool graph) {
  config.steps = 20;
  if (graph) config.switches["host.graph"] = "on";
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  Trained all;
  const std::string error = on_host_ranks(1, [&](HostRank& rank) {
    train::Trainer trainer(config, rank.device, rank.backend, mesh_of(config), 0, &tokens);
    const auto await = [&](int step) {
      const train::StepResult result = trainer.await(step);
      all.losses.push_back(result.loss);
      all.norms.push_back(result.gradient_norm);
    };
    for (int step = 0; step < config.steps; ++step) {
      trainer.issue(step, step == 9);
      all.how.push_back(trainer.how());
      if (step > 0) await(step - 1);
    }
    await(config.steps - 1);
    rank.device.synchronize();
    collect(trainer, &optimizer::ShardState::master, all.masters);
    collect(trainer, &optimizer::ShardState::first_moment, all.first_moments);
    collect(trainer, &optimizer::ShardState::second_moment, all.second_moments);
    all.nodes = trainer.graph().nodes;
    EXPECT_EQ(rank.device.recorder().programs().size(), 1u) << "traced, captured or neither, a step is the same program";
  }, config.drain_seed);
  EXPECT_EQ(error, "");
  return all;
}

void expect_bits_of_steps_one_by_one(const config::RunConfig& config) {
  const Trained one_by_one = trained(config, false), as_graph = trained(config, true);
  EXPECT_EQ(as_graph.losses, one_by_one.losses);
  EXPECT_EQ(as_graph.norms, one_by_one.norms);
  EXPECT_EQ(as_graph.masters, one_by_one.masters);
  EXPECT_EQ(as_graph.first_moments, one_by_one.first_moments);
  EXPECT_EQ(as_graph.second_moments, one_by_one.second_moments);
  EXPECT_NE(one_by_one.losses[18], one_by_one.losses[19]);
}

TEST(StepsAsAGraph, ComeOneByOneFirstAndWhereTheyAreTracedAndByOneLaunchElse) {
  const Trained run = trained(small_config(1, 1), true);
  ASSERT_EQ(run.how.size(), 20u);
  for (int step = 0; step < 20; ++step) {
    const How expected = step == 0 || step == 9 ? How::one_by_one : step <= 2 ? How::captured : How::replayed;
    EXPECT_EQ(run.how[static_cast<std::size_t>(step)], expected) << "step " << step;
  }
  EXPECT_GT(run.nodes, 50u);
  for (How how : trained(small_config(1, 1), false).how) EXPECT_EQ(how, How::one_by_one);
}

TEST(StepsAsAGraph, KeepEveryBitWhateverChangesFromStepToStep) {
  config::RunConfig plain = small_config(1, 1);
  plain.warmup_steps = 5;   // a learning rate of its own each step
  {
    SCOPED_TRACE("plain");
    expect_bits_of_steps_one_by_one(plain);
  }
  {
    SCOPED_TRACE("dropout, and blocks that are computed again");
    config::RunConfig config = plain;
    config.hidden_dropout = config.attention_dropout = 0.2;
    config.switches["activations.recompute"] = "full";
    config.drain_seed = 3;
    expect_bits_of_steps_one_by_one(config);
  }
  {
    SCOPED_TRACE("dropout within attention by tiles, and micro-batches");
    config::RunConfig config = plain;
    config.attention_dropout = 0.2;
    config.attention = config::AttentionKind::flash;
    config.micro_batches = 4;
    config.drain_seed = 5;
    expect_bits_of_steps_one_by_one(config);
  }
  {
    SCOPED_TRACE("llama");
    config::RunConfig config = small_llama(1, 1);
    config.clip = 0.05;
    expect_bits_of_steps_one_by_one(config);
  }
}

// Over several ranks of the host the switch changes neither what is issued together nor a bit: the host has no launches to save.
TEST(StepsAsAGraph, OfSeveralHostRanksComeOneByOneAndKeepEveryBit) {
  config::RunConfig config = small_config(2, 2);
  config.steps = 6;
  config.hidden_dropout = 0.1;
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const HostRun without = run_on_host(config, tokens);
  config.switches["host.graph"] = "on";
  const HostRun with = run_on_host(config, tokens, [](train::Trainer& trainer) { EXPECT_EQ(trainer.how(), How::one_by_one); });
  ASSERT_EQ(with.error, "");
  EXPECT_EQ(with.losses, without.losses);
  EXPECT_EQ(with.masters, without.masters);
}

TEST(StepsAsAGraph, AreRefusedWhereTheHostTakesPartInAStep) {
  for (const char* other : {"host.synchronize=layer", "fsdp.limit_all_gathers=1", "fsdp.offload=optimizer", "fsdp.offload=parameters"}) {
    config::RunConfig config = small_config(1, 2);
    ASSERT_TRUE(config::set_switch(config, "host.graph=on"));
    ASSERT_TRUE(config::check_switches(config)) << config::check_switches(config).error();
    ASSERT_TRUE(config::set_switch(config, other)) << other;
    const base::Status refused = config::check_switches(config);
    ASSERT_FALSE(refused) << other;
    EXPECT_NE(refused.error().find("--set host.graph=on cannot go with"), std::string::npos) << refused.error();
  }
  config::RunConfig config = small_config(1, 1);
  config.switches["host.graph"] = "on";
  config.check_finite = true;
  EXPECT_FALSE(config::check_switches(config));
}

// A plan of somebody else's may wait on the host, and no config says so.
TEST(StepsAsAGraph, OfAPlanThatWaitsOnTheHostFailWithASentence) {
  config::RunConfig config = small_config(1, 1);
  config.switches["host.graph"] = "on";
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const train::Choices choices = train::choices_of(config);
  const train::PlanMaker waits = [&](const plan::Network& network) {
    train::Choices other = choices;
    other.synchronize = true;
    return train::order_of(other, network).plan;
  };
  const HostRun run = run_on_host(config, tokens, {}, waits);
  EXPECT_NE(run.error.find("cannot become a graph: leave out host.graph=on"), std::string::npos) << run.error;
}

}  // namespace
}  // namespace shardbook::tests
