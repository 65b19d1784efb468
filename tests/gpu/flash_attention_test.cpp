// Flash attention equals its host reference: within a derived bound, and exactly where sums are exact.
#include "tests/gpu/fused_attention.hpp"

namespace shardbook::gpu_test {
namespace {

using FlashAttention = OneGpu;

TEST_F(FlashAttention, EqualsItsHostReference) {
  for (const std::int64_t head_dim : {32, 64, 128}) {
    for (const std::int64_t positions : {1, 63, 64, 65, 128, 130, 257}) {
      for (const std::int64_t key_value_heads : {4, 1}) {
        SCOPED_TRACE(testing::Message() << positions << " positions, heads of " << head_dim << ", 4 share " << key_value_heads);
        Gpu::get().reset();
        const Sizes sizes = sizes_of(2, 4, key_value_heads, positions, head_dim);
        Layer layer(sizes, 1 / std::sqrt(static_cast<float>(head_dim)), normal(tokens_of(sizes) * sizes.row_stride, 1.5),
                    normal(tokens_of(sizes) * width_of(sizes)));
        expect_forward(layer);
        expect_backward(layer);
      }
    }
  }
}

// A rank's heads, of twice as many in each sequence.
kernels::DropoutMask half_of_the_heads(const Sizes& sizes, double rate) {
  const std::int64_t square = sizes.positions * sizes.positions;
  return kernels::dropout_mask(rate, 0x5EED, (6 * sizes.heads + 1) * square, sizes.heads * square, 2 * sizes.heads * square);
}

TEST_F(FlashAttention, WithDropoutEqualsItsHostReference) {
  for (const std::int64_t head_dim : {32, 64, 128}) {
    for (const std::int64_t positions : {1, 64, 130, 257}) {
      for (const std::int64_t key_value_heads : {4, 2}) {
        SCOPED_TRACE(testing::Message() << positions << " positions, heads of " << head_dim << ", 4 share " << key_value_heads);
        Gpu::get().reset();
        const Sizes sizes = sizes_of(2, 4, key_value_heads, positions, head_dim);
        Layer layer(sizes, 1 / std::sqrt(static_cast<float>(head_dim)), normal(tokens_of(sizes) * sizes.row_stride, 1.5),
                    normal(tokens_of(sizes) * width_of(sizes)), half_of_the_heads(sizes, 0.3));
        expect_forward(layer);
        expect_backward(layer);
      }
    }
  }
}

TEST_F(FlashAttention, OfLongSequencesEqualsItsHostReference) {
  const Sizes sizes = sizes_of(1, 2, 1, 1500, 128);
  Layer layer(sizes, 0.1f, normal(tokens_of(sizes) * sizes.row_stride), normal(tokens_of(sizes) * width_of(sizes)));
  expect_forward(layer);
  expect_backward(layer);
}

// Where half is dropped, what the one key gives is twice its value, or nothing.
void expect_one_key(std::int64_t head_dim, double rate) {
  SCOPED_TRACE(testing::Message() << head_dim << ", dropout " << rate);
  Gpu::get().reset();
  const Sizes sizes = sizes_of(2, 4, 2, 300, head_dim);
  const kernels::DropoutMask mask = rate == 0 ? kernels::no_dropout : half_of_the_heads(sizes, rate);
  const std::vector<double> qkv = of_one_key(sizes);
  const float scale = head_dim == 32 ? 0.5f : 0.25f;  // so that others weigh less than the smallest number
  Layer layer(sizes, scale, qkv, small_integers(tokens_of(sizes) * width_of(sizes), 4), mask);
  layer.forward();
  expect_exact(layer.out);
  // The exponent of the only key is 0 but for the rounding of what is taken off.
  expect_within(layer.logsumexp, [&](std::size_t i) { return 4 * unit_f32 * layer.logsumexp[i]; });
  layer.backward();
  expect_exact(layer.dqkv);
  EXPECT_EQ(layer.out.from_gpu()[static_cast<std::size_t>(299 * width_of(sizes))],
            layer.kept(0, 0, 299, one_key_of(299)) * qkv[static_cast<std::size_t>(value_at(sizes, one_key_of(299), 0, 0))])
      << "by hand: the last query of the first head";
}

TEST_F(FlashAttention, OfOneKeyThatOutweighsAllIsThatKeysValueAndGradientsGoThereAlone) {
  for (const std::int64_t head_dim : {32, 64, 128}) {
    expect_one_key(head_dim, 0);
    expect_one_key(head_dim, 0.5);
  }
}

TEST_F(FlashAttention, OfEqualScoresIsTheMeanOfTheValuesRoundedOnce) {
  const Sizes sizes = sizes_of(1, 2, 1, 200, 64);
  std::vector<double> qkv = small_integers(tokens_of(sizes) * sizes.row_stride, 100);
  for (std::int64_t n = 0; n < sizes.positions; ++n) {
    for (std::int64_t i = 0; i < width_of(sizes); ++i) qkv[static_cast<std::size_t>(n * sizes.row_stride + i)] = 0;
  }
  Layer layer(sizes, 0.125f, qkv, zeros(tokens_of(sizes) * width_of(sizes)));
  layer.forward();
  const std::vector<double> got = layer.out.from_gpu();
  for (std::int64_t i = 0; i < sizes.head_dim; ++i) {
    double sum = 0;
    for (std::int64_t s = 0; s < sizes.positions; ++s) {
      sum += qkv[static_cast<std::size_t>(value_at(sizes, s, 0, i))];
      for (std::int64_t h = 0; h < 2; ++h) {
        ASSERT_EQ(got[static_cast<std::size_t>(s * width_of(sizes) + h * 64 + i)], to_bf16(static_cast<float>(sum) / static_cast<float>(s + 1))) << s << ", " << i;
      }
    }
  }
}

TEST_F(FlashAttention, RepeatsBitForBit) {
  const Sizes sizes = sizes_of(2, 8, 2, 515, 64);
  Layer layer(sizes, 0.125f, normal(tokens_of(sizes) * sizes.row_stride, 2), normal(tokens_of(sizes) * width_of(sizes)), half_of_the_heads(sizes, 0.1));
  layer.forward();
  layer.backward();
  const std::vector<double> dqkv = layer.dqkv.from_gpu();
  layer.forward();
  const std::vector<double> out = layer.out.from_gpu();
  for (int again = 0; again < 3; ++again) {
    layer.forward();
    EXPECT_EQ(layer.out.from_gpu(), out);
    layer.backward();
    EXPECT_EQ(layer.dqkv.from_gpu(), dqkv);
  }
}

}  // namespace
}  // namespace shardbook::gpu_test
