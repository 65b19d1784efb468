// Layout does not change the result.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "engine/config/switches.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

config::RunConfig with_f64(config::RunConfig config) {
  config.host_dtype = config::HostDtype::f64;
  return config;
}

// One rank in fp64 is the truth; one rank in fp32 says how far rounding alone leads; one rank in fp32 with the batch
// in other orders says how far other orders of summation lead. Made once for all tests.
struct Truth {
  HostRun f64, f32;
  double gradient_error = 0;
  std::vector<double> loss_error;  // by step: the largest so far over the permuted runs

  Truth() {
    const config::RunConfig config = small_config(1, 1);
    TestTokens tokens(config.model.vocab, config.model.sequence);
    f64 = run_on_host(with_f64(config), tokens);
    f32 = run_on_host(config, tokens);
    gradient_error = relative_error(f32.gradients, f64.gradients);
    loss_error.assign(static_cast<std::size_t>(config.steps), 0);
    for (int run = 0; run < 8; ++run) {
      tokens.permutation.resize(static_cast<std::size_t>(config.sequences));
      std::iota(tokens.permutation.begin(), tokens.permutation.end(), 0);
      for (std::size_t at = tokens.permutation.size() - 1; at > 0; --at) {
        std::swap(tokens.permutation[at], tokens.permutation[(at * 7919 + static_cast<std::size_t>(run) * 104729) % (at + 1)]);
      }
      const HostRun permuted = run_on_host(config, tokens);
      double largest = 0;
      for (std::size_t step = 0; step < loss_error.size(); ++step) {
        largest = std::max(largest, std::abs(permuted.losses[step] - f64.losses[step]));
        loss_error[step] = std::max(loss_error[step], largest);
      }
    }
  }
};

const Truth& truth() {
  static const Truth once;
  return once;
}

// tp, fsdp, dp, and whether tp ranks hold the rows of all tokens between the linears, or cut them (sequence parallelism).
class Layouts : public testing::TestWithParam<std::tuple<int, int, int, bool>> {
 protected:
  config::RunConfig config() const {
    const auto [tp, fsdp, dp, cut] = GetParam();
    return cut ? with_tokens_cut(small_config(tp, fsdp, dp)) : small_config(tp, fsdp, dp);
  }
  HostRun run(const config::RunConfig& config) const {
    return run_on_host(config, TestTokens(config.model.vocab, config.model.sequence));
  }
};

TEST_P(Layouts, GradientsErrAtMostFourTimesWhatOneRankInFp32Does) {
  config::RunConfig one_step = config();
  one_step.steps = 1;
  const HostRun found = run(one_step);
  ASSERT_EQ(found.error, "");
  EXPECT_LE(relative_error(found.gradients, truth().f64.gradients), 4 * truth().gradient_error);
}

TEST_P(Layouts, TwentyLossesStayWithinTheEnvelopeOfOtherOrdersOfSummation) {
  const HostRun found = run(config());
  ASSERT_EQ(found.error, "");
  for (std::size_t step = 0; step < found.losses.size(); ++step) {
    EXPECT_LE(std::abs(found.losses[step] - truth().f64.losses[step]), 4 * truth().loss_error[step]) << "step " << step;
  }
}

TEST_P(Layouts, InFp64EveryGradientIsThatOfOneRank) {
  config::RunConfig one_step = with_f64(config());
  one_step.steps = 1;
  const HostRun found = run(one_step);
  ASSERT_EQ(found.error, "");
  // Rounding in fp64, which is 2⁻²⁹ of that in fp32.
  EXPECT_LE(relative_error(found.gradients, truth().f64.gradients), 4 * truth().gradient_error / (1 << 29));
  EXPECT_NEAR(found.norms[0], truth().f64.norms[0], 1e-10) << "a parameter replicated over tp counts once";
}

TEST_P(Layouts, TheFirstWeightsAreThoseOfOneRankBitForBit) {
  // Without a learning rate the masters stay as they were drawn.
  auto drawn = [this](config::RunConfig still) {
    still.steps = 1;
    still.lr = still.min_lr = 0;
    return run(still);
  };
  const HostRun found = drawn(config());
  ASSERT_EQ(found.error, "");
  EXPECT_EQ(found.masters, drawn(small_config(1, 1)).masters);
}

TEST_P(Layouts, TheOrderInWhichQueuesDrainChangesNothing) {
  config::RunConfig drained = config();
  drained.steps = 3;
  const HostRun in_turn = run(drained);
  ASSERT_EQ(in_turn.error, "");
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    drained.drain_seed = seed;
    const HostRun at_random = run(drained);
    ASSERT_EQ(at_random.error, "");
    EXPECT_EQ(at_random.losses, in_turn.losses) << "seed " << seed;
    EXPECT_EQ(at_random.masters, in_turn.masters) << "seed " << seed;
  }
}

TEST_P(Layouts, EveryRankIssuesTheSameProgramAndNoStepWaitsForTheHost) {
  config::RunConfig short_run = config();
  short_run.steps = 3;
  const HostRun found = run(short_run);
  ASSERT_EQ(found.error, "");
  for (std::uint64_t hash : found.program_hashes) EXPECT_EQ(hash, found.program_hashes[0]);
  for (std::uint64_t hash : found.order_hashes) EXPECT_EQ(hash, found.order_hashes[0]);
  EXPECT_EQ(found.host_waits, 0);
}

INSTANTIATE_TEST_SUITE_P(TpTimesFsdp, Layouts, testing::Combine(testing::Values(1, 2, 4), testing::Values(1, 2, 4), testing::Values(1), testing::Values(false)),
                         [](const auto& info) {
                           return "tp" + std::to_string(std::get<0>(info.param)) + "_fsdp" + std::to_string(std::get<1>(info.param));
                         });
// Replicas: of one rank (DDP), of tensor parallel ranks, and of FSDP groups (hybrid sharding).
INSTANTIATE_TEST_SUITE_P(WithReplicas, Layouts,
                         testing::Values(std::tuple{1, 1, 2, false}, std::tuple{1, 1, 4, false}, std::tuple{2, 1, 2, false}, std::tuple{1, 2, 2, false}, std::tuple{2, 2, 2, false}),
                         [](const auto& info) {
                           return "tp" + std::to_string(std::get<0>(info.param)) + "_fsdp" + std::to_string(std::get<1>(info.param)) +
                                  "_dp" + std::to_string(std::get<2>(info.param));
                         });

INSTANTIATE_TEST_SUITE_P(WithTokensCut, Layouts,
                         testing::Values(std::tuple{2, 1, 1, true}, std::tuple{4, 1, 1, true}, std::tuple{2, 2, 1, true}, std::tuple{4, 2, 1, true}, std::tuple{2, 1, 2, true}, std::tuple{2, 2, 2, true}),
                         [](const auto& info) {
                           return "tp" + std::to_string(std::get<0>(info.param)) + "_fsdp" + std::to_string(std::get<1>(info.param)) +
                                  "_dp" + std::to_string(std::get<2>(info.param));
                         });

// What else a step may be: in every form tokens that are cut give the gradients of one rank, and its norm.
TEST(TokensCut, GiveTheGradientsOfOneRankInEveryFormOfAStep) {
  struct Form {
    int tp, fsdp, dp, micro_batches;
    const char* set;
    int sequences = 16;
    bool tied = true;
    const char* also = "";
  };
  const char* in_turns = "tensor_parallel.overlap=pieces";
  const std::vector<Form> forms = {
      {2, 1, 1, 2, ""}, {2, 2, 1, 2, ""}, {4, 1, 2, 2, ""}, {2, 2, 1, 2, "accumulate.reduce=last"}, {2, 1, 1, 2, "accumulate.reduce=last"},
      {2, 2, 2, 2, "accumulate.reduce=last"}, {2, 2, 1, 1, "activations.recompute=full"}, {4, 1, 1, 2, "activations.recompute=full"},
      {2, 2, 1, 1, "activations.recompute=selective"}, {4, 1, 1, 2, "activations.recompute=selective"}, {2, 2, 1, 2, "activations.recompute=cheap"},
      {2, 2, 1, 1, "tensor_parallel.input_gradient_sum=awaited"}, {4, 1, 1, 2, "tensor_parallel.input_gradient_sum=first"}, {2, 1, 2, 2, "data_parallel.reduce=naive"}, {2, 2, 2, 1, "data_parallel.reduce=flat"},
      {2, 2, 1, 2, "fsdp.prefetch=0"}, {2, 2, 1, 2, "fsdp.reshard=false"}, {2, 2, 1, 1, "fsdp.backward_prefetch=post"}, {2, 4, 1, 1, "fsdp.limit_all_gathers=1"},
      // A rank's rows are half a sequence, or one and a half
      {4, 1, 1, 1, "", 2}, {4, 2, 1, 1, "", 4}, {2, 1, 1, 1, "", 3}, {2, 2, 1, 2, "", 16, false}, {4, 1, 1, 1, "", 16, false},
      // Rows that cross while others are multiplied
      {2, 1, 1, 1, in_turns}, {4, 1, 1, 2, in_turns}, {2, 2, 1, 2, in_turns}, {2, 2, 2, 1, in_turns}, {4, 2, 1, 1, in_turns, 4}, {2, 1, 1, 1, in_turns, 3}, {2, 2, 1, 2, in_turns, 16, false},
      {2, 2, 1, 1, in_turns, 16, true, "activations.recompute=full"}, {2, 1, 1, 2, in_turns, 16, true, "tensor_parallel.input_gradient_sum=awaited"},
      {2, 1, 1, 2, in_turns, 16, true, "accumulate.reduce=last"}, {4, 1, 1, 1, in_turns, 2, true, "activations.recompute=cheap"}};
  std::map<std::pair<int, bool>, HostRun> of_one_rank;
  std::uint64_t seed = 0;
  for (const Form& form : some_of(forms)) {
    config::RunConfig config = with_f64(with_tokens_cut(small_config(form.tp, form.fsdp, form.dp)));
    config.steps = 2;
    config.sequences = form.sequences;
    config.model.tied = form.tied;
    config.micro_batches = form.micro_batches;
    config.drain_seed = ++seed;
    for (const char* set : {form.set, form.also}) {
      if (*set != 0) {
        ASSERT_TRUE(config::set_switch(config, set)) << set;
      }
    }
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    HostRun& one = of_one_rank[{form.sequences, form.tied}];
    if (one.losses.empty()) {
      config::RunConfig alone = with_f64(small_config(1, 1));
      alone.steps = config.steps;
      alone.sequences = config.sequences;
      alone.model.tied = config.model.tied;
      one = run_on_host(alone, tokens);
    }
    SCOPED_TRACE(base::text("tp ", form.tp, ", fsdp ", form.fsdp, ", dp ", form.dp, ", micro-batches ", form.micro_batches, ", ", form.sequences, " sequences, ", form.set, " ", form.also));
    const HostRun found = run_on_host(config, tokens);
    ASSERT_EQ(found.error, "");
    EXPECT_LE(relative_error(found.gradients, one.gradients), 4 * truth().gradient_error / (1 << 29));
    for (int step : {0, 1}) {
      EXPECT_NEAR(found.losses[static_cast<std::size_t>(step)], one.losses[static_cast<std::size_t>(step)], 1e-11);
      EXPECT_NEAR(found.norms[static_cast<std::size_t>(step)], one.norms[static_cast<std::size_t>(step)], 1e-9) << "a parameter replicated over tp counts once";
    }
  }
}

// Dropout under a layout is dropout on one rank: what may differ is rounding in fp64.
TEST(Dropout, DropsInEveryLayoutWhatOneRankDrops) {
  struct Form {
    int tp, fsdp, dp, micro_batches;
    bool cut;
    const char* set;
    bool llama = false;
  };
  const std::vector<Form> forms = {
      {2, 1, 1, 1, false, ""}, {4, 1, 1, 1, false, ""}, {1, 2, 1, 1, false, ""}, {1, 1, 2, 1, false, ""}, {1, 1, 1, 4, false, ""}, {2, 2, 2, 1, false, ""},
      {2, 2, 1, 2, false, ""}, {1, 2, 2, 2, false, ""}, {2, 1, 1, 1, true, ""}, {4, 1, 1, 1, true, ""}, {2, 2, 2, 2, true, ""}, {4, 2, 1, 1, true, ""},
      {2, 2, 1, 2, false, "activations.recompute=full"}, {2, 2, 1, 2, true, "activations.recompute=full"}, {2, 1, 2, 1, false, "activations.recompute=selective"},
      {4, 1, 1, 2, true, "activations.recompute=selective"}, {2, 1, 1, 1, false, "tensor_parallel.input_gradient_sum=awaited"}, {2, 2, 1, 1, false, "tensor_parallel.input_gradient_sum=first"},
      {2, 2, 1, 2, false, "", true}, {4, 1, 1, 1, true, "activations.recompute=full", true},
      // By tiles the same probabilities are dropped as in the square
      {1, 1, 1, 1, false, "attention.kernel=flash"}, {2, 2, 1, 2, false, "attention.kernel=flash"}, {4, 1, 2, 1, true, "attention.kernel=flash"},
      {2, 2, 1, 1, false, "attention.kernel=flash", true}};
  const auto dropping = [](config::RunConfig config) {
    config.steps = 2;
    config.hidden_dropout = 0.1;
    config.attention_dropout = 0.2;
    return with_f64(config);
  };
  std::map<bool, HostRun> of_one_rank;
  std::uint64_t seed = 0;
  for (const Form& form : some_of(forms)) {
    config::RunConfig config = dropping(form.llama ? small_llama(form.tp, form.fsdp) : small_config(form.tp, form.fsdp, form.dp));
    if (form.cut) config = with_tokens_cut(config);
    config.micro_batches = form.micro_batches;
    config.drain_seed = ++seed;
    if (*form.set != 0) {
      ASSERT_TRUE(config::set_switch(config, form.set)) << form.set;
    }
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    HostRun& one = of_one_rank[form.llama];
    if (one.losses.empty()) one = run_on_host(dropping(form.llama ? small_llama(1, 1) : small_config(1, 1)), tokens);
    SCOPED_TRACE(base::text("tp ", form.tp, ", fsdp ", form.fsdp, ", dp ", form.dp, ", micro-batches ", form.micro_batches, form.cut ? ", rows cut, " : ", ", form.set));
    const HostRun found = run_on_host(config, tokens);
    ASSERT_EQ(found.error, "");
    EXPECT_LE(relative_error(found.gradients, one.gradients), 8 * truth().gradient_error / (1 << 29));
    for (int step : {0, 1}) EXPECT_NEAR(found.losses[static_cast<std::size_t>(step)], one.losses[static_cast<std::size_t>(step)], 1e-11);
    for (std::uint64_t hash : found.program_hashes) EXPECT_EQ(hash, found.program_hashes[0]);
  }
}

TEST(Dropout, OfEitherSortChangesTheGradientByFarMoreThanRounding) {
  config::RunConfig config = with_f64(small_config(1, 1));
  config.steps = 1;
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const HostRun whole = run_on_host(config, tokens);
  for (double config::RunConfig::*rate : {&config::RunConfig::hidden_dropout, &config::RunConfig::attention_dropout}) {
    config::RunConfig dropped = config;
    dropped.*rate = 0.1;
    EXPECT_GT(relative_error(run_on_host(dropped, tokens).gradients, whole.gradients), 1e-3);
  }
}

// The same tokens in each step, and weights that stay as they are: what differs is what was dropped.
class OneStepsTokens final : public data::TokenSource {
 public:
  explicit OneStepsTokens(const TestTokens& tokens) : tokens_(tokens) {}
  void fill(std::int64_t, int sequences, int first, int count, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const override {
    tokens_.fill(0, sequences, first, count, tokens, targets);
  }
  std::int64_t tokens() const override { return 0; }
  std::string describe() const override { return "the tokens of one step"; }

 private:
  const TestTokens& tokens_;
};

TEST(Dropout, IsDrawnAnewInEachStep) {
  config::RunConfig config = with_f64(small_config(1, 1));
  config.steps = 3;
  config.lr = config.min_lr = 0;
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const OneStepsTokens same(tokens);
  const auto losses = [&](double hidden, double attention) {
    config::RunConfig dropped = config;
    dropped.hidden_dropout = hidden;
    dropped.attention_dropout = attention;
    return run_on_host(dropped, same).losses;
  };
  const std::vector<double> whole = losses(0, 0);
  EXPECT_EQ(whole[0], whole[1]);
  EXPECT_EQ(whole[0], whole[2]);
  for (const std::vector<double>& dropped : {losses(0.1, 0), losses(0, 0.1)}) {
    for (int step : {0, 1, 2}) EXPECT_GT(std::abs(dropped[static_cast<std::size_t>(step)] - whole[0]), 1e-6) << "step " << step;
    EXPECT_GT(std::abs(dropped[0] - dropped[1]), 1e-6);
    EXPECT_GT(std::abs(dropped[1] - dropped[2]), 1e-6);
  }
}

// What is computed again drops what it dropped before: not a bit differs, and nothing had to be saved.
TEST(Dropout, IsRepeatedBitForBitByWhatIsComputedAgain) {
  for (const bool cut : {false, true}) {
    config::RunConfig config = small_config(2, 2);
    if (cut) config = with_tokens_cut(config);
    config.steps = 3;
    config.micro_batches = 2;
    config.hidden_dropout = config.attention_dropout = 0.1;
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun plain = run_on_host(config, tokens);
    ASSERT_EQ(plain.error, "");
    for (const char* recompute : {"activations.recompute=cheap", "activations.recompute=selective", "activations.recompute=full"}) {
      ASSERT_TRUE(config::set_switch(config, recompute));
      const HostRun again = run_on_host(config, tokens);
      ASSERT_EQ(again.error, "");
      EXPECT_EQ(again.losses, plain.losses) << recompute;
      EXPECT_EQ(again.gradients, plain.gradients) << recompute;
      EXPECT_EQ(again.masters, plain.masters) << recompute;
    }
  }
}

// Switches of the schedule move time, not numbers: bit for bit.
TEST(Schedule, PrefetchAndReshardChangeNoBit) {
  config::RunConfig config = small_config(2, 2);
  config.steps = 3;
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const HostRun plain = run_on_host(config, tokens);
  ASSERT_EQ(plain.error, "");
  for (int prefetch : {0, 1, 2, 3}) {
    for (bool reshard : {true, false}) {
      config.prefetch = prefetch;
      config.reshard = reshard;
      config.drain_seed = static_cast<std::uint64_t>(prefetch) * 2 + reshard;
      const HostRun other = run_on_host(config, tokens);
      ASSERT_EQ(other.error, "");
      EXPECT_EQ(other.masters, plain.masters) << "prefetch " << prefetch << ", reshard " << reshard;
    }
  }
}

TEST(Schedule, MicroBatchesSumToTheWholeBatch) {
  config::RunConfig config = with_f64(small_config(2, 2));
  config.steps = 1;
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const HostRun whole = run_on_host(config, tokens);
  ASSERT_EQ(whole.error, "");
  for (int micro_batches : {2, 4}) {
    config.micro_batches = micro_batches;
    const HostRun parts = run_on_host(config, tokens);
    ASSERT_EQ(parts.error, "");
    EXPECT_LE(relative_error(parts.gradients, whole.gradients), 4 * truth().gradient_error / (1 << 29));
    EXPECT_NEAR(parts.losses[0], whole.losses[0], 1e-12);
  }
  config.fsdp = 1;
  config.ranks = 2;
  const HostRun alone = run_on_host(config, tokens);
  ASSERT_EQ(alone.error, "");
  EXPECT_LE(relative_error(alone.gradients, whole.gradients), 4 * truth().gradient_error / (1 << 29));
}

TEST(Schedule, AnUntiedHeadHasItsOwnUnit) {
  config::RunConfig config = with_f64(small_config(1, 1));
  config.model.tied = false;
  config.steps = 2;
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const HostRun one = run_on_host(config, tokens);
  ASSERT_EQ(one.error, "");
  config.tp = config.fsdp = 2;
  config.ranks = 4;
  config.drain_seed = 9;
  const HostRun four = run_on_host(config, tokens);
  ASSERT_EQ(four.error, "");
  EXPECT_LE(relative_error(four.gradients, one.gradients), 4 * truth().gradient_error / (1 << 29));
  EXPECT_LT(one.losses[1], one.losses[0] + 1);
}

TEST(Training, LowersTheLoss) {
  EXPECT_LT(truth().f32.losses.back(), truth().f32.losses.front() - 0.5);
}

}  // namespace
}  // namespace shardbook::tests
