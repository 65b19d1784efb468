// The pieces that Llama has in place of GPT-2's: norm by RMS, SwiGLU, rotary positions.
#include "engine/kernels/activation.hpp"
#include "engine/kernels/attention.hpp"
#include "engine/kernels/rms_norm.hpp"
#include "engine/kernels/rotary.hpp"
#include "tests/kernels/host_bench.hpp"

namespace shardbook::kernels::testing {
namespace {

constexpr float rms_epsilon = 1e-5f;

template <class T>
class RmsNorm : public ::testing::Test {};
TYPED_TEST_SUITE(RmsNorm, FloatTypes);

TYPED_TEST(RmsNorm, ForwardLiesWithinRoundingOfTheFormula) {
  using T = TypeParam;
  for (const std::int64_t width : {5, 16, 37}) {
    HostBench<T> bench;
    const Numbers x = numbers(1, tokens * width, 4), weight = numbers(2, width);
    const Tensor y_ND = bench.tensor({tokens, width}), rstd_N = bench.tensor({tokens});
    rms_norm_forward(bench.stream(), bench.tensor({tokens, width}, x), bench.tensor({width}, weight), rms_epsilon, y_ND, rstd_N);
    Reals y, y_bound, rstd, rstd_bound;
    for (std::int64_t n = 0; n < tokens; ++n) {
      Real squares = 0;
      for (std::int64_t i = 0; i < width; ++i) squares += Real(x[n * width + i]) * x[n * width + i];
      rstd.push_back(1 / std::sqrt(squares / width + Real(rms_epsilon)));
      // A sum of positive terms, half of whose relative error the root keeps; four roundings after it.
      const Real relative = ((width + 2) / Real(2) + 4) * unit<T>();
      rstd_bound.push_back(relative * rstd[n]);
      for (std::int64_t i = 0; i < width; ++i) {
        y.push_back(x[n * width + i] * rstd[n] * weight[i]);
        y_bound.push_back(std::abs(y.back()) * (relative + 3 * unit<T>()));
      }
    }
    expect_within(bench.values(rstd_N), rstd, rstd_bound, "rstd");
    expect_within(bench.values(y_ND), y, y_bound, "y");
  }
}

TYPED_TEST(RmsNorm, OfEqualNumbersIsTheWeightWithTheirSignWhateverTheirSize) {
  HostBench<TypeParam> bench;
  const Tensor y_ND = bench.tensor({2, 4}), rstd_N = bench.tensor({2});
  rms_norm_forward(bench.stream(), bench.tensor({2, 4}, {4, -4, 4, 4, -8, 8, 8, 8}), bench.tensor({4}, {1, 2, 3, 4}), 0, y_ND, rstd_N);
  EXPECT_EQ(bench.values(y_ND), (Numbers{1, -2, 3, 4, -1, 2, 3, 4}));
  EXPECT_EQ(bench.values(rstd_N), (Numbers{0.25, 0.125}));
}

TYPED_TEST(RmsNorm, WeightGradientOfIntegersIsExactAndAddsOnlyWhenToldTo) {
  const std::int64_t width = 5, many = 40;
  HostBench<TypeParam> bench;
  const Numbers x = integers(1, many * width), dy = integers(2, many * width), before = integers(4, width);
  const Tensor scratch = bench.tensor({rms_norm_weight_gradient_scratch(many, width)});
  for (const bool accumulate : {false, true}) {
    const Tensor dweight_D = bench.tensor({width}, before);
    rms_norm_weight_gradient(bench.stream(), bench.tensor({many, width}, dy), bench.tensor({many, width}, x),
                             bench.tensor({many}, Numbers(many, 2)), dweight_D, scratch, accumulate);
    const Numbers dweight = bench.values(dweight_D);
    for (std::int64_t i = 0; i < width; ++i) {
      double sum = accumulate ? before[i] : 0;
      for (std::int64_t n = 0; n < many; ++n) sum += dy[n * width + i] * x[n * width + i] * 2;
      EXPECT_EQ(dweight[i], sum);
    }
  }
}

TEST(RmsNormGradients, AreThoseOfFiniteDifferencesAndTheResidualIsAdded) {
  const std::int64_t width = 5, elements = tokens * width;
  HostBench<double> bench;
  const Numbers x = numbers(1, elements), weight = numbers(2, width), dy = numbers(3, elements), around = numbers(4, elements);
  const Tensor rstd_N = bench.tensor({tokens});
  const auto scalar = [&](const Numbers& x_at, const Numbers& weight_at) {
    const Tensor y_ND = bench.tensor({tokens, width});
    rms_norm_forward(bench.stream(), bench.tensor({tokens, width}, x_at), bench.tensor({width}, weight_at), rms_epsilon, y_ND, rstd_N);
    return weighted(dy, bench.values(y_ND));
  };
  scalar(x, weight);
  const Tensor dy_ND = bench.tensor({tokens, width}, dy), x_ND = bench.tensor({tokens, width}, x), weight_D = bench.tensor({width}, weight);
  const Tensor dx_ND = bench.tensor({tokens, width}), both_ND = bench.tensor({tokens, width}, around), dweight_D = bench.tensor({width});
  rms_norm_input_gradient(bench.stream(), dy_ND, x_ND, weight_D, rstd_N, Tensor{}, dx_ND);
  rms_norm_input_gradient(bench.stream(), dy_ND, x_ND, weight_D, rstd_N, both_ND, both_ND);
  rms_norm_weight_gradient(bench.stream(), dy_ND, x_ND, rstd_N, dweight_D, bench.tensor({rms_norm_weight_gradient_scratch(tokens, width)}), false);
  const Numbers dx = bench.values(dx_ND), both = bench.values(both_ND), dweight = bench.values(dweight_D);
  for (std::size_t i = 0; i < dx.size(); ++i) EXPECT_EQ(both[i], dx[i] + around[i]);
  expect_gradient([&](const Numbers& at) { return scalar(at, weight); }, x, dx, elements, "dx");
  expect_gradient([&](const Numbers& at) { return scalar(x, at); }, weight, dweight, elements, "dweight");
}

template <class T>
class SwiGlu : public ::testing::Test {};
TYPED_TEST_SUITE(SwiGlu, FloatTypes);

TYPED_TEST(SwiGlu, IsSiluOfTheGateTimesTheOther) {
  using T = TypeParam;
  HostBench<T> bench;
  const std::int64_t width = 21;
  Numbers both = numbers(1, 2 * tokens * width, 8);
  both[0] = 0;
  both[1] = -1000;
  both[2] = 80;
  const Tensor y_NF = bench.tensor({tokens, width});
  swiglu_forward(bench.stream(), bench.tensor({tokens, 2 * width}, both), y_NF);
  Reals y, bound;
  for (std::int64_t n = 0; n < tokens; ++n) {
    for (std::int64_t i = 0; i < width; ++i) {
      const Real gate = both[2 * n * width + i], up = both[(2 * n + 1) * width + i];
      y.push_back(gate / (1 + std::exp(-gate)) * up);
      // The exponential errs by 4 units; four roundings beside it. A sigmoid that underflows in T may be lost.
      bound.push_back(std::abs(y.back()) * 9 * unit<T>() + std::abs(gate * up) * std::numeric_limits<T>::min() * 4);
    }
  }
  expect_within(bench.values(y_NF), y, bound, "y");
}

TEST(SwiGluGradient, IsThatOfFiniteDifferencesAndMayBeInPlace) {
  HostBench<double> bench;
  const std::int64_t width = 7;
  const Numbers both = numbers(1, 2 * tokens * width, 4), dy = numbers(2, tokens * width);
  const Tensor dup = bench.tensor({tokens, 2 * width}), in_place = bench.tensor({tokens, 2 * width}, both), dy_NF = bench.tensor({tokens, width}, dy);
  swiglu_backward(bench.stream(), in_place, dy_NF, dup);
  swiglu_backward(bench.stream(), in_place, dy_NF, in_place);
  const auto scalar = [&](const Numbers& at) {
    const Tensor y_NF = bench.tensor({tokens, width});
    swiglu_forward(bench.stream(), bench.tensor({tokens, 2 * width}, at), y_NF);
    return weighted(dy, bench.values(y_NF));
  };
  EXPECT_EQ(bench.values(in_place), bench.values(dup));
  expect_gradient(scalar, both, bench.values(dup), tokens * width, "dup");
}

template <class T>
class Rotary : public ::testing::Test {};
TYPED_TEST_SUITE(Rotary, FloatTypes);

TYPED_TEST(Rotary, TurnsPairsByTheAngleOfTheirPositionAndLeavesWhatIsNoQueryOrKey) {
  using T = TypeParam;
  HostBench<T> bench;
  const std::int64_t positions = 7, heads = 3, head_dim = 6, width = 4 * head_dim;  // the fourth head is a value
  const float theta = 100;
  const Numbers rows = numbers(1, 2 * positions * width);
  const Tensor turned = bench.tensor({2 * positions, width}, rows);
  rotate(bench.stream(), turned, positions, heads, head_dim, theta, false);
  Reals expected, bound;
  for (std::int64_t n = 0; n < 2 * positions; ++n) {
    for (std::int64_t h = 0; h < 4; ++h) {
      for (std::int64_t i = 0; i < head_dim; ++i) {
        const std::int64_t pair = i % 3, begin = n * width + h * head_dim;
        const Real angle = h == 3 ? 0 : (n % positions) * std::pow(Real(theta), -2 * Real(pair) / head_dim);
        const Real x = rows[begin + pair], y = rows[begin + pair + 3];
        expected.push_back(i < 3 ? x * std::cos(angle) - y * std::sin(angle) : y * std::cos(angle) + x * std::sin(angle));
        // Sine and cosine, rounded to T, of an angle that has an error of a few units of fp64; three roundings.
        bound.push_back(h == 3 ? 0 : (std::abs(x) + std::abs(y)) * (3 * unit<T>() + 8 * (1 + angle) * unit<double>()));
      }
    }
  }
  expect_within(bench.values(turned), expected, bound, "turned");
}

TEST(RotaryGradient, TurnsBack) {
  HostBench<double> bench;
  const std::int64_t positions = 5, heads = 2, head_dim = 4, width = 3 * head_dim;
  const Numbers x = numbers(1, positions * width), dy = numbers(2, positions * width);
  const Tensor dx = bench.tensor({positions, width}, dy);
  rotate(bench.stream(), dx, positions, heads, head_dim, 1000, true);
  const auto scalar = [&](const Numbers& at) {
    const Tensor y = bench.tensor({positions, width}, at);
    rotate(bench.stream(), y, positions, heads, head_dim, 1000, false);
    return weighted(dy, bench.values(y));
  };
  expect_gradient(scalar, x, bench.values(dx), positions * width, "dx");
}

TEST(RotaryPositions, MakeAProductDependOnTheDistanceAlone) {
  HostBench<double> bench;
  const std::int64_t positions = 20, head_dim = 8;
  const Numbers q = numbers(1, head_dim), k = numbers(2, head_dim);
  Numbers q_rows, k_rows;
  for (std::int64_t s = 0; s < positions; ++s) {
    q_rows.insert(q_rows.end(), q.begin(), q.end());
    k_rows.insert(k_rows.end(), k.begin(), k.end());
  }
  const Tensor q_SK = bench.tensor({positions, head_dim}, q_rows), k_SK = bench.tensor({positions, head_dim}, k_rows);
  rotate(bench.stream(), q_SK, positions, 1, head_dim, 10000, false);
  rotate(bench.stream(), k_SK, positions, 1, head_dim, 10000, false);
  const Numbers turned_q = bench.values(q_SK), turned_k = bench.values(k_SK);
  const auto product = [&](std::int64_t s, std::int64_t t) {
    double sum = 0;
    for (std::int64_t i = 0; i < head_dim; ++i) sum += turned_q[s * head_dim + i] * turned_k[t * head_dim + i];
    return sum;
  };
  for (std::int64_t s = 5; s < positions; ++s) EXPECT_NEAR(product(s, s - 5), product(5, 0), 1e-13);
  EXPECT_GT(std::abs(product(5, 0) - product(6, 0)), 1e-3);
}

// q is two heads, k and v one each: the parts lie in wider rows.
TEST(HeadsOfWiderRows, AreSplitAndMergedWithoutTouchingOtherColumns) {
  HostBench<double> bench;
  const std::int64_t sequences = 2, positions = 3, head_dim = 2, width = 4 * head_dim;
  const Numbers rows = numbers(1, sequences * positions * width);
  const HeadSizes queries{1, sequences, 2, positions, head_dim, 0, width}, keys{2, sequences, 1, positions, head_dim, 2 * head_dim, width};
  const Tensor rows_NE = bench.tensor({sequences * positions, width}, rows), back_NE = bench.tensor({sequences * positions, width});
  const Tensor q = bench.tensor({queries.elements()}), kv = bench.tensor({keys.elements()});
  split_heads(bench.stream(), queries, rows_NE, q);
  split_heads(bench.stream(), keys, rows_NE, kv);
  const Numbers q_values = bench.values(q), kv_values = bench.values(kv);
  std::size_t at = 0;
  for (std::int64_t b = 0; b < sequences; ++b)
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t s = 0; s < positions; ++s)
        for (std::int64_t k = 0; k < head_dim; ++k) EXPECT_EQ(q_values[at++], rows[(b * positions + s) * width + h * head_dim + k]);
  at = 0;
  for (std::int64_t p = 0; p < 2; ++p)
    for (std::int64_t b = 0; b < sequences; ++b)
      for (std::int64_t s = 0; s < positions; ++s)
        for (std::int64_t k = 0; k < head_dim; ++k) EXPECT_EQ(kv_values[at++], rows[(b * positions + s) * width + (2 + p) * head_dim + k]);
  merge_heads(bench.stream(), queries, q, back_NE);
  const Numbers half = bench.values(back_NE);
  for (std::int64_t n = 0; n < sequences * positions; ++n) EXPECT_EQ(half[n * width + 2 * head_dim], 777);
  merge_heads(bench.stream(), keys, kv, back_NE);
  EXPECT_EQ(bench.values(back_NE), rows);
}

}  // namespace
}  // namespace shardbook::kernels::testing
