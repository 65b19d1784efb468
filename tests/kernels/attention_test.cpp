#include "engine/kernels/attention.hpp"

#include "tests/kernels/host_bench.hpp"

namespace shardbook::kernels::testing {
namespace {

template <class T>
class Attention : public ::testing::Test {};
TYPED_TEST_SUITE(Attention, FloatTypes);

constexpr HeadSizes sizes{3, 2, 2, 5, 3};  // parts, sequences, heads, positions, head_dim
constexpr std::int64_t B = 2, H = 2, S = 5, K = 3;

TYPED_TEST(Attention, SplitHeadsPutsEachNumberInItsPlaceAndMergeTakesItBack) {
  HostBench<TypeParam> bench;
  const Numbers tokens = numbers(1, sizes.elements());
  const Tensor heads_PBHSK = bench.tensor({sizes.elements()}), back_NPHK = bench.tensor({B * S, 3 * H * K});
  split_heads(bench.stream(), sizes, bench.tensor({B * S, 3 * H * K}, tokens), heads_PBHSK);
  merge_heads(bench.stream(), sizes, heads_PBHSK, back_NPHK);
  const Numbers heads = bench.values(heads_PBHSK);
  std::size_t at = 0;
  for (std::int64_t p = 0; p < 3; ++p)
    for (std::int64_t b = 0; b < B; ++b)
      for (std::int64_t h = 0; h < H; ++h)
        for (std::int64_t s = 0; s < S; ++s)
          for (std::int64_t k = 0; k < K; ++k)
            EXPECT_EQ(heads[at++], tokens[(b * S + s) * 3 * H * K + p * H * K + h * K + k]);
  EXPECT_EQ(bench.values(back_NPHK), tokens);
}

TYPED_TEST(Attention, SoftmaxLiesWithinRoundingOfTheFormulaAndSeesNoLaterKey) {
  using T = TypeParam;
  HostBench<T> bench;
  const float scale = 0.5f;
  for (const std::int64_t positions : {1, 5, 37}) {
    const Numbers score = numbers(1, 2 * positions * positions, 8);
    const Tensor p_BHSS = bench.tensor({1, 2, positions, positions});
    causal_softmax_forward(bench.stream(), bench.tensor({1, 2, positions, positions}, score), scale, p_BHSS);
    Reals expected, bound;
    for (std::int64_t row = 0; row < 2 * positions; ++row) {
      const std::int64_t keys = row % positions + 1;
      Real sum = 0, largest = 0;
      for (std::int64_t t = 0; t < keys; ++t) {
        sum += std::exp(scale * Real(score[row * positions + t]));
        largest = std::max(largest, std::abs(scale * Real(score[row * positions + t])));
      }
      for (std::int64_t t = 0; t < positions; ++t) {
        expected.push_back(t < keys ? std::exp(scale * Real(score[row * positions + t])) / sum : 0);
        // Each exponent errs by at most 4u times the largest; so does the sum, which adds `keys` roundings.
        bound.push_back(expected.back() * (8 * largest + keys + 6) * unit<T>());
      }
    }
    expect_within(bench.values(p_BHSS), expected, bound, "p");
  }
}

TYPED_TEST(Attention, SoftmaxOfEqualScoresIsExactlyUniformWhereTheCountIsAPowerOfTwo) {
  HostBench<TypeParam> bench;
  const Tensor score_BHSS = bench.tensor({1, 1, 8, 8}, Numbers(64, 3));
  causal_softmax_forward(bench.stream(), score_BHSS, 0.25f, score_BHSS);
  const Numbers p = bench.values(score_BHSS);
  for (const int keys : {1, 2, 4, 8}) {
    for (int t = 0; t < 8; ++t) EXPECT_EQ(p[(keys - 1) * 8 + t], t < keys ? 1.0 / keys : 0);
  }
}

TYPED_TEST(Attention, SoftmaxOfHugeScoresStaysFinite) {
  HostBench<TypeParam> bench;
  const Tensor p_BHSS = bench.tensor({1, 1, 2, 2});
  causal_softmax_forward(bench.stream(), bench.tensor({1, 1, 2, 2}, {-1e30, 1e30, 1e30, -1e30}), 1, p_BHSS);
  EXPECT_EQ(bench.values(p_BHSS), (Numbers{1, 0, 1, 0}));
}

TYPED_TEST(Attention, SoftmaxBackwardIsTheJacobianTimesTheGradient) {
  using T = TypeParam;
  HostBench<T> bench;
  const float scale = 0.75f;
  const std::int64_t positions = 37;
  Numbers p = numbers(1, positions * positions), dp = numbers(2, positions * positions);
  for (double& value : p) value = std::abs(value);
  const Tensor dscore_BHSS = bench.tensor({positions, positions}), dp_BHSS = bench.tensor({positions, positions}, dp);
  causal_softmax_backward(bench.stream(), bench.tensor({positions, positions}, p), dp_BHSS, scale, dscore_BHSS);
  causal_softmax_backward(bench.stream(), bench.tensor({positions, positions}, p), dp_BHSS, scale, dp_BHSS);
  Reals expected, bound;
  for (std::int64_t s = 0; s < positions; ++s) {
    for (std::int64_t t = 0; t < positions; ++t) {
      Real sum = 0, magnitude = 0;
      for (std::int64_t j = 0; j <= s && t <= s; ++j) {
        const Real term = scale * Real(p[s * positions + t]) * ((j == t ? 1 : 0) - Real(p[s * positions + j])) * dp[s * positions + j];
        sum += term;
        magnitude += scale * Real(p[s * positions + t]) * ((j == t ? 1 : 0) + Real(p[s * positions + j])) * std::abs(Real(dp[s * positions + j]));
      }
      expected.push_back(sum);
      bound.push_back((s + 1 + 4) * unit<T>() * magnitude);
    }
  }
  expect_within(bench.values(dscore_BHSS), expected, bound, "dscore");
  EXPECT_EQ(bench.values(dp_BHSS), bench.values(dscore_BHSS));
}

TEST(AttentionGradients, AreThoseOfFiniteDifferences) {
  HostBench<double> bench;
  const float scale = 0.5f;
  const std::int64_t elements = B * H * S * K;
  const base::Shape heads{B, H, S, K}, square{B, H, S, S};
  const Numbers q = numbers(1, elements, 2), k = numbers(2, elements, 2), v = numbers(3, elements), dcontext = numbers(4, elements);
  const Tensor p_BHSS = bench.tensor(square), score_BHSS = bench.tensor(square);
  const auto scalar = [&](const Numbers& q_at, const Numbers& k_at, const Numbers& v_at) {
    const Tensor context_BHSK = bench.tensor(heads);
    attention_scores(bench.stream(), bench.tensor(heads, q_at), bench.tensor(heads, k_at), score_BHSS);
    causal_softmax_forward(bench.stream(), score_BHSS, scale, p_BHSS);
    attention_context(bench.stream(), p_BHSS, bench.tensor(heads, v_at), context_BHSK);
    return weighted(dcontext, bench.values(context_BHSK));
  };
  scalar(q, k, v);
  const Tensor dcontext_BHSK = bench.tensor(heads, dcontext), dp_BHSS = bench.tensor(square), dscore_BHSS = bench.tensor(square);
  const Tensor dq_BHSK = bench.tensor(heads), dk_BHSK = bench.tensor(heads), dv_BHSK = bench.tensor(heads);
  attention_probability_gradient(bench.stream(), dcontext_BHSK, bench.tensor(heads, v), dp_BHSS);
  attention_value_gradient(bench.stream(), p_BHSS, dcontext_BHSK, dv_BHSK);
  causal_softmax_backward(bench.stream(), p_BHSS, dp_BHSS, scale, dscore_BHSS);
  attention_query_gradient(bench.stream(), dscore_BHSS, bench.tensor(heads, k), dq_BHSK);
  attention_key_gradient(bench.stream(), dscore_BHSS, bench.tensor(heads, q), dk_BHSK);
  const Numbers dq = bench.values(dq_BHSK), dk = bench.values(dk_BHSK), dv = bench.values(dv_BHSK);
  expect_gradient([&](const Numbers& at) { return scalar(at, k, v); }, q, dq, elements, "dq");
  expect_gradient([&](const Numbers& at) { return scalar(q, at, v); }, k, dk, elements, "dk");
  expect_gradient([&](const Numbers& at) { return scalar(q, k, at); }, v, dv, elements, "dv");
}

TEST(AttentionGradients, OfSplitHeadsIsMergeHeads) {
  HostBench<double> bench;
  const Numbers x = numbers(1, sizes.elements()), dy = numbers(2, sizes.elements());
  const Tensor dx_NPHK = bench.tensor({B * S, 3 * H * K});
  merge_heads(bench.stream(), sizes, bench.tensor({sizes.elements()}, dy), dx_NPHK);
  const auto scalar = [&](const Numbers& at) {
    const Tensor y = bench.tensor({sizes.elements()});
    split_heads(bench.stream(), sizes, bench.tensor({B * S, 3 * H * K}, at), y);
    return weighted(dy, bench.values(y));
  };
  expect_gradient(scalar, x, bench.values(dx_NPHK), sizes.elements(), "dx");
}

}  // namespace
}  // namespace shardbook::kernels::testing
