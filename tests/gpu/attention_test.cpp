// Heads, causal softmax and its backward equal their host references.
#include "tests/gpu/gpu_test.hpp"

namespace shardbook::gpu_test {
namespace {

using Attention = OneGpu;

TEST_F(Attention, SplitHeadsMovesEveryNumberAndBack) {
  for (const DType dtype : both_types) {
    for (const std::int64_t head_dim : {1, 6, 64, 128}) {
      SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", head_dim " << head_dim);
      Gpu::get().reset();
      const std::int64_t parts = 3, sequences = 2, heads = 5, positions = 7;
      const std::int64_t n = parts * sequences * heads * positions * head_dim;
      Numbers tokens(normal(n), dtype), split(unwritten(n), dtype), back(unwritten(n), dtype);
      run_both([&](bool gpu) {
        return kernels::SplitHeadsArgs{tokens.at(gpu), split.at(gpu), parts, sequences, heads, positions, head_dim,
                                       parts * heads * head_dim, false,
                                       gpu ? dtype : DType::f64};
      }, &kernels::host::split_heads, &kernels::cuda::split_heads);
      expect_exact(split);
      run_both([&](bool gpu) {
        return kernels::SplitHeadsArgs{back.at(gpu), split.at(gpu), parts, sequences, heads, positions, head_dim,
                                       parts * heads * head_dim, true,
                                       gpu ? dtype : DType::f64};
      }, &kernels::host::split_heads, &kernels::cuda::split_heads);
      expect_exact(back);
      EXPECT_EQ(back.from_gpu(), tokens.from_gpu());
    }
  }
}

void expect_softmax(std::int64_t batch_heads, std::int64_t positions, DType dtype, bool in_place) {
  SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << batch_heads << " x " << positions);
  Gpu::get().reset();
  const std::int64_t n = batch_heads * positions * positions;
  const float scale = 0.3f;
  Numbers score(normal(n, 8), dtype), probability(unwritten(n), dtype);
  const Numbers before = score;
  Numbers& out = in_place ? score : probability;
  run_both([&](bool gpu) {
    return kernels::CausalSoftmaxForwardArgs{score.at(gpu), out.at(gpu), batch_heads, positions, scale, gpu ? dtype : DType::f64};
  }, &kernels::host::causal_softmax_forward, &kernels::cuda::causal_softmax_forward);

  // e^z of z = scale·score − max: z errs by 2 units of each, e^z by 2 + 1.173|z| more; the sum likewise.
  std::vector<double> widest(static_cast<std::size_t>(batch_heads * positions));
  for (std::int64_t row = 0; row < batch_heads * positions; ++row) {
    for (std::int64_t t = 0; t <= row % positions; ++t) {
      widest[row] = std::max(widest[row], std::abs(scale * before[row * positions + t]));
    }
  }
  expect_within(out, [&](std::size_t i) {
    const double largest = widest[i / static_cast<std::size_t>(positions)];
    const double one = (2 * 2 * largest + 2 * (2 + 1.173 * 2 * largest)) * unit_f32;
    return out[i] * (2 * one + gamma(row_depth + 3));
  });
  // After the diagonal there is nothing, not even a small number.
  const std::vector<double> got = out.from_gpu();
  for (std::int64_t i = 0; i < n; ++i) {
    if (i % positions > i / positions % positions) {
      ASSERT_EQ(got[i], 0.0) << "number " << i;
    }
  }
}

void expect_softmax_backward(std::int64_t batch_heads, std::int64_t positions, DType dtype, bool in_place) {
  SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << batch_heads << " x " << positions);
  Gpu::get().reset();
  const std::int64_t n = batch_heads * positions * positions;
  const float scale = 0.3f;
  // Any p will do: the formula is exact for all. What lies after the diagonal must not matter.
  std::vector<double> p = normal(n, 0.1);
  Numbers probability(p, dtype), dprobability(normal(n), dtype), dscore(unwritten(n), dtype);
  const Numbers gradient = dprobability;
  Numbers& out = in_place ? dprobability : dscore;
  run_both([&](bool gpu) {
    return kernels::CausalSoftmaxBackwardArgs{probability.at(gpu), dprobability.at(gpu), out.at(gpu), batch_heads, positions,
                                              scale, gpu ? dtype : DType::f64};
  }, &kernels::host::causal_softmax_backward, &kernels::cuda::causal_softmax_backward);
  std::vector<double> size_of_sum(static_cast<std::size_t>(batch_heads * positions));
  for (std::int64_t row = 0; row < batch_heads * positions; ++row) {
    for (std::int64_t t = 0; t <= row % positions; ++t) {
      size_of_sum[row] += std::abs(probability[row * positions + t] * gradient[row * positions + t]);
    }
  }
  expect_within(out, [&](std::size_t i) {
    const double sum = size_of_sum[i / static_cast<std::size_t>(positions)];
    return std::abs(scale * probability[i]) * (gamma(row_depth + 4) * sum + gamma(4) * std::abs(gradient[i]));
  });
}

TEST_F(Attention, CausalSoftmaxEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t positions : {1, 5, 64, 129, 256, 344}) {
      expect_softmax(3, positions, dtype, false);
      expect_softmax(3, positions, dtype, true);
    }
  }
}
TEST_F(Attention, CausalSoftmaxOfLargeRowsEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t positions : {1021, 1024, 2048}) expect_softmax(2, positions, dtype, false);
    expect_softmax(1, 4104, dtype, true);
  }
}
TEST_F(Attention, CausalSoftmaxBackwardEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t positions : {1, 5, 64, 129, 256, 344}) {
      expect_softmax_backward(3, positions, dtype, false);
      expect_softmax_backward(3, positions, dtype, true);
    }
  }
}
TEST_F(Attention, CausalSoftmaxBackwardOfLargeRowsEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t positions : {1021, 1024, 2048}) expect_softmax_backward(2, positions, dtype, true);
  }
}
TEST_F(Attention, EqualScoresGiveEqualProbabilities) {
  const std::int64_t positions = 64;
  Numbers score(std::vector<double>(positions * positions, 3.5), DType::f32), probability(unwritten(positions * positions), DType::f32);
  run_both([&](bool gpu) {
    return kernels::CausalSoftmaxForwardArgs{score.at(gpu), probability.at(gpu), 1, positions, 0.125f, gpu ? DType::f32 : DType::f64};
  }, &kernels::host::causal_softmax_forward, &kernels::cuda::causal_softmax_forward);
  const std::vector<double> got = probability.from_gpu();
  // e^0 is 1 and the sums are small integers, so row s holds 1/(s + 1), rounded once.
  for (std::int64_t s = 0; s < positions; ++s) {
    for (std::int64_t t = 0; t <= s; ++t) {
      ASSERT_EQ(static_cast<float>(got[s * positions + t]), 1.0f / static_cast<float>(s + 1)) << s << ", " << t;
    }
  }
}

}  // namespace
}  // namespace shardbook::gpu_test
