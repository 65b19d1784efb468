// GELU in the matmuls on both sides of it: no bit changes on the host, whose matmuls call the kernels apart, and no kernel of GELU
// is left, but where its output is made again.
#include <gtest/gtest.h>

#include "engine/config/switches.hpp"
#include "tests/train/meta_step.hpp"

namespace shardbook::tests {
namespace {

using config::RunConfig;

TEST(GeluInMatmuls, KeepsEveryBitInEveryFormOfAStep) {
  std::uint64_t seed = 0;
  for (const StepForm& form : some_of<StepForm>({{1, 1, 1, 1, true, ""}, {2, 1, 1, 2, true, "tensor_parallel.sequence=cut"}, {2, 2, 1, 1, false, "activations.recompute=cheap"}, {4, 1, 1, 1, true, ""},
                                                 {1, 2, 1, 2, true, "activations.recompute=full"}, {1, 4, 1, 1, false, "accumulate.weight_gradient=apart"}, {1, 1, 2, 2, true, ""},
                                                 {2, 2, 1, 1, true, "tensor_parallel.input_gradient_sum=awaited"}})) {
    SCOPED_TRACE(words_of(form));
    RunConfig config = small_config(form);
    const bool cut = std::string_view(form.set).find("=cut") != std::string_view::npos;
    for (const bool in_turns : {false, true}) {
      if (in_turns && !cut) continue;
      if (in_turns) { ASSERT_TRUE(config::set_switch(config, "tensor_parallel.overlap=pieces")); }
      const TestTokens tokens(config.model.vocab, config.model.sequence);
      const HostRun apart = run_on_host(config, tokens);
      RunConfig fused = config;
      ASSERT_TRUE(config::set_switch(fused, "gelu.kernel=in_matmuls"));
      fused.drain_seed = ++seed;
      const HostRun in_matmuls = run_on_host(fused, tokens);
      ASSERT_EQ(in_matmuls.error, "");
      expect_same_bits(in_matmuls, apart);
      EXPECT_NE(in_matmuls.program_hashes, apart.program_hashes);
    }
  }
}

// Kernels of a step whose name begins so.
int kernels(const RunConfig& config, std::string_view name) {
  MetaStep step(config, 0);
  int count = 0;
  for (const program::Op& op : step.program().ops) count += std::string_view(op.desc.name).starts_with(name);
  return count;
}

TEST(GeluInMatmuls, LeavesNoKernelOfItsOwnButWhereItsOutputIsMadeAgain) {
  for (const char* recompute : {"none", "cheap", "full"}) {
    RunConfig config = small_config(2, 1);
    ASSERT_TRUE(config::set_switch(config, base::text("activations.recompute=", recompute)));
    const int layers = config.model.layers, forwards = *recompute == 'f' ? 2 * layers : layers;
    EXPECT_EQ(kernels(config, "gelu_forward"), *recompute == 'n' ? layers : 2 * layers) << recompute;
    EXPECT_EQ(kernels(config, "gelu_backward"), layers) << recompute;
    ASSERT_TRUE(config::set_switch(config, "gelu.kernel=in_matmuls"));
    EXPECT_EQ(kernels(config, "gelu_forward"), *recompute == 'c' ? layers : 0) << recompute;
    EXPECT_EQ(kernels(config, "gelu_backward"), 0) << recompute;
    EXPECT_EQ(kernels(config, "linear_forward_gelu"), forwards) << recompute;
    EXPECT_EQ(kernels(config, "linear_input_gradient_gelu"), layers) << recompute;
  }
}

}  // namespace
}  // namespace shardbook::tests
