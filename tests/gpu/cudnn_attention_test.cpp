// cuDNN's attention equals its host reference within the bound of attention by tiles, and exactly where sums are exact.
#include "tests/gpu/fused_attention.hpp"

namespace shardbook::gpu_test {
namespace {

class CudnnAttention : public OneGpu {
 protected:
  void SetUp() override {
    OneGpu::SetUp();
    if (!kernels::cudnn_problem().empty()) GTEST_SKIP() << kernels::cudnn_problem();
  }
};

Layer layer_of(const Sizes& sizes, float scale, double deviation = 1) {
  return {sizes, scale, normal(tokens_of(sizes) * sizes.row_stride, deviation), normal(tokens_of(sizes) * width_of(sizes)), kernels::no_dropout, By::cudnn};
}

TEST_F(CudnnAttention, EqualsItsHostReference) {
  for (const std::int64_t head_dim : {32, 64, 128}) {
    for (const std::int64_t positions : {1, 63, 64, 65, 130, 257}) {
      for (const std::int64_t key_value_heads : {4, 2, 1}) {
        SCOPED_TRACE(testing::Message() << positions << " positions, heads of " << head_dim << ", 4 share " << key_value_heads);
        Gpu::get().reset();
        Layer layer = layer_of(sizes_of(2, 4, key_value_heads, positions, head_dim), 1 / std::sqrt(static_cast<float>(head_dim)), 1.5);
        expect_forward(layer);
        expect_backward(layer);
      }
    }
  }
}

TEST_F(CudnnAttention, OfLongSequencesEqualsItsHostReference) {
  Layer layer = layer_of(sizes_of(1, 2, 1, 1500, 128), 0.1f);
  expect_forward(layer);
  expect_backward(layer);
}

TEST_F(CudnnAttention, OfOneKeyThatOutweighsAllIsThatKeysValueAndGradientsGoThereAlone) {
  for (const std::int64_t head_dim : {64, 128}) {
    Gpu::get().reset();
    const Sizes sizes = sizes_of(2, 4, 2, 300, head_dim);
    Layer layer(sizes, 0.25f, of_one_key(sizes), small_integers(tokens_of(sizes) * width_of(sizes), 4), kernels::no_dropout, By::cudnn);
    layer.forward();
    expect_exact(layer.out);
    expect_within(layer.logsumexp, [&](std::size_t i) { return 4 * unit_f32 * layer.logsumexp[i]; });
    layer.backward();
    expect_exact(layer.dqkv);
  }
}

TEST_F(CudnnAttention, RepeatsBitForBit) {
  for (const Sizes& sizes : {sizes_of(2, 8, 2, 515, 64), sizes_of(4, 16, 16, 1024, 128), sizes_of(2, 16, 4, 2048, 64)}) {
    Gpu::get().reset();
    Layer layer = layer_of(sizes, 0.125f, 2);
    layer.gpu_alone = true;
    layer.forward();
    layer.backward();
    const std::vector<double> out = layer.out.from_gpu(), dqkv = layer.dqkv.from_gpu();
    EXPECT_NE(dqkv[0], 777.0) << "nothing was written";
    for (int again = 0; again < 10; ++again) {
      layer.forward();
      EXPECT_EQ(layer.out.from_gpu(), out);
      layer.backward();
      EXPECT_EQ(layer.dqkv.from_gpu(), dqkv);
    }
  }
}

// Sequences some at a time are what they are all at once.
TEST_F(CudnnAttention, OfSomeSequencesAtATimeIsTheSame) {
  for (const Sizes& sizes : {sizes_of(6, 4, 2, 200, 64), sizes_of(6, 3, 1, 65, 128)}) {   // of the second, statistics begin anywhere
    Gpu::get().reset();
    Layer layer = layer_of(sizes, 0.125f);
    layer.gpu_alone = true;
    layer.forward();
    layer.backward();
    const std::vector<double> whole = layer.dqkv.from_gpu();
    for (const std::int64_t at_once : {1, 2, 3}) {
      layer.dqkv = Numbers(unwritten(tokens_of(sizes) * sizes.row_stride), DType::bf16);
      layer.sequences_at_once = at_once;
      layer.backward();
      EXPECT_EQ(layer.dqkv.from_gpu(), whole) << at_once;
    }
  }
}

// The square of some sequences is all that backward has at once.
TEST_F(CudnnAttention, NeedsTheWorkspaceThatTheFormulaSays) {
  const bool hopper = device::cuda_device_name(0).find("H100") != std::string::npos || device::cuda_device_name(0).find("H200") != std::string::npos;
  if (!hopper) GTEST_SKIP() << "the formula is of Hopper's kernels";
  for (const kernels::GroupedHeads& heads : {kernels::GroupedHeads{8, 16, 16, 1024, 128}, {64, 12, 12, 1024, 64}, {2, 32, 8, 4096, 128}, {3, 4, 2, 130, 64}, {2, 4, 1, 1, 64}}) {
    const std::int64_t at_once = kernels::cudnn_sequences_at_once(heads);
    const Sizes sizes{heads.sequences, heads.heads, heads.key_value_heads, heads.positions, heads.head_dim, heads.width()};
    EXPECT_EQ(kernels::cuda::cudnn_attention_needs(sizes, at_once), kernels::cudnn_workspace_bytes(heads)) << heads.positions;
  }
}

}  // namespace
}  // namespace shardbook::gpu_test
