// Llama, and attention by tiles, under every layout: what one rank computes, the layout's ranks compute together.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

using config::AttentionKind;

HostRun run(config::RunConfig config, config::HostDtype stored) {
  config.host_dtype = stored;
  return run_on_host(config, TestTokens(config.model.vocab, config.model.sequence));
}

config::RunConfig one_step(config::RunConfig config) {
  config.steps = 1;
  return config;
}

// One rank in fp64, and how far one rank in fp32 is from it: rounding alone.
struct LlamaTruth {
  HostRun f64 = run(one_step(small_llama(1, 1)), config::HostDtype::f64);
  double rounding = relative_error(run(one_step(small_llama(1, 1)), config::HostDtype::f32).gradients, f64.gradients);
  // The same rounding in fp64, with four times as much for other orders of summation.
  double bound() const { return 4 * rounding / (1 << 29); }
};
const LlamaTruth& llama_truth() {
  static const LlamaTruth once;
  return once;
}

class LlamaLayouts : public testing::TestWithParam<std::tuple<int, int, AttentionKind, bool>> {
 protected:
  config::RunConfig config() const {
    config::RunConfig config = small_llama(std::get<0>(GetParam()), std::get<1>(GetParam()));
    config.attention = std::get<2>(GetParam());
    return std::get<3>(GetParam()) ? with_tokens_cut(config) : config;
  }
};

TEST_P(LlamaLayouts, InFp64EveryGradientIsThatOfOneRankWithUnfusedAttention) {
  const HostRun found = run(one_step(config()), config::HostDtype::f64);
  ASSERT_EQ(found.error, "");
  EXPECT_LE(relative_error(found.gradients, llama_truth().f64.gradients), llama_truth().bound());
  EXPECT_NEAR(found.losses[0], llama_truth().f64.losses[0], 1e-12);
  EXPECT_NEAR(found.norms[0], llama_truth().f64.norms[0], 1e-10) << "a parameter replicated over tp counts once";
}

TEST_P(LlamaLayouts, EveryRankIssuesTheSameProgramInAnyOrderOfItsQueues) {
  config::RunConfig short_run = config();
  short_run.steps = 2;
  const HostRun in_turn = run(short_run, config::HostDtype::f32);
  short_run.drain_seed = 7;
  const HostRun drained = run(short_run, config::HostDtype::f32);
  ASSERT_EQ(in_turn.error + drained.error, "");
  EXPECT_EQ(drained.losses, in_turn.losses);
  EXPECT_EQ(drained.masters, in_turn.masters);
  for (std::uint64_t hash : in_turn.program_hashes) EXPECT_EQ(hash, in_turn.program_hashes[0]);
  EXPECT_EQ(in_turn.host_waits, 0);
}

INSTANTIATE_TEST_SUITE_P(TpTimesFsdp, LlamaLayouts,
                         testing::Combine(testing::Values(1, 2, 4), testing::Values(1, 2), testing::Values(AttentionKind::unfused, AttentionKind::flash), testing::Values(false)),
                         [](const auto& info) {
                           return "tp" + std::to_string(std::get<0>(info.param)) + "_fsdp" + std::to_string(std::get<1>(info.param)) + "_" +
                                  config::name_of(std::get<2>(info.param));
                         });

INSTANTIATE_TEST_SUITE_P(WithTokensCut, LlamaLayouts,
                         testing::Combine(testing::Values(2, 4), testing::Values(1, 2), testing::Values(AttentionKind::unfused, AttentionKind::flash), testing::Values(true)),
                         [](const auto& info) {
                           return "tp" + std::to_string(std::get<0>(info.param)) + "_fsdp" + std::to_string(std::get<1>(info.param)) + "_" +
                                  config::name_of(std::get<2>(info.param));
                         });

TEST(Llama, HasTheParametersOfItsFormulaAndNoBias) {
  const config::RunConfig config = small_llama(1, 1);
  std::int64_t count = 0;
  for (const auto& [name, gradient] : llama_truth().f64.gradients) {
    count += static_cast<std::int64_t>(gradient.size());
    EXPECT_EQ(name.find("bias"), std::string::npos) << name;
    EXPECT_EQ(name.find("position"), std::string::npos) << name;
  }
  EXPECT_EQ(count, config::parameter_count(config.model));
}

TEST(Llama, LowersTheLoss) {
  const HostRun trained = run(small_llama(1, 1), config::HostDtype::f32);
  ASSERT_EQ(trained.error, "");
  EXPECT_LT(trained.losses.back(), trained.losses.front() - 0.5);
}

// Of gpt the unfused form is the truth, too.
TEST(FlashAttention, GivesTheGradientsOfTheUnfused) {
  config::RunConfig config = one_step(small_config(1, 1));
  const HostRun unfused = run(config, config::HostDtype::f64);
  config.attention = AttentionKind::flash;
  const HostRun flash = run(config, config::HostDtype::f64);
  ASSERT_EQ(unfused.error + flash.error, "");
  EXPECT_LE(relative_error(flash.gradients, unfused.gradients), llama_truth().bound());
  EXPECT_NE(flash.program_hashes, unfused.program_hashes);
  // On the host cuDNN's are the same numbers, and another program
  config.attention = AttentionKind::cudnn;
  const HostRun cudnn = run(config, config::HostDtype::f64);
  ASSERT_EQ(cudnn.error, "");
  EXPECT_EQ(cudnn.gradients, flash.gradients);
  EXPECT_NE(cudnn.program_hashes, flash.program_hashes);
}

TEST(FlashAttention, KeepsMemoryThatIsLinearInTheSequence) {
  const auto allocated = [](AttentionKind attention, int sequence) {
    config::RunConfig config = small_config(1, 1);
    config.attention = attention;
    config.model.sequence = sequence;
    config.sequences = 1;
    double bytes = 0;
    EXPECT_EQ(on_host_ranks(1, [&](HostRank& rank) {
      train::Trainer trainer(config, rank.device, rank.backend, mesh_of(config), 0, nullptr);
      bytes = static_cast<double>(rank.device.allocated_bytes());
    }), "");
    return bytes;
  };
  // Twice a line's growth from 256 to 512 is its growth from 512 to 1024; a square's is four times.
  const auto growth = [&](AttentionKind attention) {
    return (allocated(attention, 1024) - allocated(attention, 512)) / (allocated(attention, 512) - allocated(attention, 256));
  };
  EXPECT_NEAR(growth(AttentionKind::flash), 2, 0.05);
  EXPECT_GT(growth(AttentionKind::unfused), 3);
}

// What is made again, probabilities or what costs no matmul, is what was kept, whatever else a step does, in any order of its queues.
TEST(SelectiveRecompute, GivesTheBitsOfWhatWasKeptInEveryFormOfAStep) {
  struct Form {
    int tp, fsdp, dp, micro_batches;
    bool cut;
  };
  std::uint64_t seed = 0;
  for (const Form& form : some_of<Form>({{2, 2, 1, 2, true}, {1, 1, 1, 1, false}, {2, 2, 1, 2, false}, {4, 1, 1, 1, true}, {2, 1, 2, 2, true}, {1, 2, 2, 1, false}})) {
    for (bool llama : {false, true}) {
      config::RunConfig config = llama ? small_llama(form.tp, form.fsdp) : small_config(form.tp, form.fsdp);
      config.dp = form.dp;
      config.ranks *= form.dp;
      config.micro_batches = form.micro_batches;
      config.steps = 3;
      if (form.cut) config = with_tokens_cut(config);
      const HostRun kept = run(config, config::HostDtype::f32);
      for (const char* recompute : {"selective", "cheap"}) {
        config.switches["activations.recompute"] = recompute;
        config.drain_seed = ++seed;
        const HostRun again = run(config, config::HostDtype::f32);
        ASSERT_EQ(kept.error + again.error, "");
        EXPECT_EQ(again.losses, kept.losses) << recompute << ", " << seed;
        EXPECT_EQ(again.gradients, kept.gradients) << recompute << ", " << seed;
        EXPECT_EQ(again.masters, kept.masters) << recompute << ", " << seed;
        EXPECT_NE(again.program_hashes, kept.program_hashes) << recompute << ", " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace shardbook::tests
