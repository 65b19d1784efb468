#include "engine/kernels/layer_norm.hpp"

#include "tests/kernels/host_bench.hpp"

namespace shardbook::kernels::testing {
namespace {

// The odd width also runs the rest of every vectorised loop.
constexpr std::int64_t widths[] = {5, 16, 37};
constexpr float epsilon = 1e-5f;

template <class T>
class LayerNorm : public ::testing::Test {};
TYPED_TEST_SUITE(LayerNorm, FloatTypes);

TYPED_TEST(LayerNorm, ForwardLiesWithinRoundingOfTheFormula) {
  using T = TypeParam;
  const Real u = unit<T>();
  for (const std::int64_t width : widths) {
    HostBench<T> bench;
    const Numbers x = numbers(1, tokens * width, 4), weight = numbers(2, width), bias = numbers(3, width);
    const Tensor y_ND = bench.tensor({tokens, width}), mean_N = bench.tensor({tokens}), rstd_N = bench.tensor({tokens});
    layer_norm_forward(bench.stream(), bench.tensor({tokens, width}, x), bench.tensor({width}, weight),
                       bench.tensor({width}, bias), epsilon, y_ND, mean_N, rstd_N);
    Reals y, y_bound, mean, mean_bound, rstd, rstd_bound;
    for (std::int64_t n = 0; n < tokens; ++n) {
      Real sum = 0, magnitude = 0, largest = 0;
      for (std::int64_t i = 0; i < width; ++i) {
        sum += x[n * width + i];
        magnitude += std::abs(Real(x[n * width + i]));
        largest = std::max(largest, std::abs(Real(x[n * width + i])));
      }
      mean.push_back(sum / width);
      mean_bound.push_back((width + 1) * u * magnitude / width);
      Real squares = 0, deviations = 0;
      for (std::int64_t i = 0; i < width; ++i) {
        const Real d = x[n * width + i] - mean[n];
        squares += d * d;
        deviations += std::abs(d);
      }
      const Real variance = squares / width;
      rstd.push_back(1 / std::sqrt(variance + Real(epsilon)));
      // A deviation errs by the mean's error and its own rounding; the variance by twice that times
      // the mean deviation, and its sum's rounding; rstd by half the variance's relative error.
      const Real d_bound = mean_bound[n] + 2 * u * largest;
      const Real variance_bound = 2 * deviations / width * d_bound + d_bound * d_bound + (width + 3) * u * variance;
      const Real relative = variance_bound / (variance + Real(epsilon)) / 2 + 4 * u;
      rstd_bound.push_back(relative * rstd[n]);
      for (std::int64_t i = 0; i < width; ++i) {
        const Real d = x[n * width + i] - mean[n], scaled = d * rstd[n] * weight[i];
        y.push_back(scaled + bias[i]);
        y_bound.push_back(std::abs(Real(weight[i])) * rstd[n] * (d_bound + std::abs(d) * relative) +
                          4 * u * (std::abs(scaled) + std::abs(Real(bias[i]))));
      }
    }
    expect_within(bench.values(mean_N), mean, mean_bound, "mean");
    expect_within(bench.values(rstd_N), rstd, rstd_bound, "rstd");
    expect_within(bench.values(y_ND), y, y_bound, "y");
  }
}

TYPED_TEST(LayerNorm, InputGradientIsTheJacobianTimesTheGradientPlusTheResidual) {
  using T = TypeParam;
  const std::int64_t width = 37;
  HostBench<T> bench;
  const Numbers x = numbers(1, tokens * width), weight = numbers(2, width), dy = numbers(3, tokens * width);
  const Numbers residual = numbers(4, tokens * width), mean = numbers(5, tokens, 0.125);
  const Numbers rstd(tokens, 1.5);
  for (const bool with_residual : {false, true}) {
    const Tensor dx_ND = bench.tensor({tokens, width});
    layer_norm_input_gradient(bench.stream(), bench.tensor({tokens, width}, dy), bench.tensor({tokens, width}, x),
                              bench.tensor({width}, weight), bench.tensor({tokens}, mean), bench.tensor({tokens}, rstd),
                              with_residual ? bench.tensor({tokens, width}, residual) : Tensor{}, dx_ND);
    // ∂x̂_j/∂x_i = rstd (δ_ij − 1/D − x̂_i x̂_j / D), summed over j, with the op's own mean and rstd.
    Reals dx, bound;
    for (std::int64_t n = 0; n < tokens; ++n) {
      const auto xhat = [&](std::int64_t i) { return (Real(x[n * width + i]) - mean[n]) * rstd[n]; };
      for (std::int64_t i = 0; i < width; ++i) {
        Real sum = 0, magnitude = 0;
        for (std::int64_t j = 0; j < width; ++j) {
          const Real g = Real(dy[n * width + j]) * weight[j];
          sum += g * rstd[n] * ((i == j ? 1 : 0) - Real(1) / width - xhat(i) * xhat(j) / width);
          magnitude += std::abs(g) * rstd[n] * ((i == j ? 1 : 0) + Real(1) / width + std::abs(xhat(i) * xhat(j)) / width);
        }
        const Real around = with_residual ? residual[n * width + i] : 0;
        dx.push_back(sum + around);
        // Sums of D terms, and at most ten roundings beside them on the way of each term.
        bound.push_back((width + 10) * unit<T>() * (magnitude + std::abs(around)));
      }
    }
    expect_within(bench.values(dx_ND), dx, bound, "dx");
  }
}

TEST(LayerNormGradients, AreThoseOfFiniteDifferences) {
  const std::int64_t width = 5, elements = tokens * width;
  HostBench<double> bench;
  const Numbers x = numbers(1, elements), weight = numbers(2, width), bias = numbers(3, width), dy = numbers(4, elements);
  const Tensor mean_N = bench.tensor({tokens}), rstd_N = bench.tensor({tokens});
  const auto scalar = [&](const Numbers& x_at, const Numbers& weight_at, const Numbers& bias_at) {
    const Tensor y_ND = bench.tensor({tokens, width});
    layer_norm_forward(bench.stream(), bench.tensor({tokens, width}, x_at), bench.tensor({width}, weight_at),
                       bench.tensor({width}, bias_at), epsilon, y_ND, mean_N, rstd_N);
    return weighted(dy, bench.values(y_ND));
  };
  scalar(x, weight, bias);
  const Tensor dy_ND = bench.tensor({tokens, width}, dy), x_ND = bench.tensor({tokens, width}, x);
  const Tensor dx_ND = bench.tensor({tokens, width}), dweight_D = bench.tensor({width}), dbias_D = bench.tensor({width});
  const Tensor scratch = bench.tensor({layer_norm_weight_gradient_scratch(tokens, width)});
  layer_norm_input_gradient(bench.stream(), dy_ND, x_ND, bench.tensor({width}, weight), mean_N, rstd_N, Tensor{}, dx_ND);
  layer_norm_weight_gradient(bench.stream(), dy_ND, x_ND, mean_N, rstd_N, dweight_D, dbias_D, scratch, false);
  const Numbers dx = bench.values(dx_ND), dweight = bench.values(dweight_D), dbias = bench.values(dbias_D);
  expect_gradient([&](const Numbers& at) { return scalar(at, weight, bias); }, x, dx, elements, "dx");
  expect_gradient([&](const Numbers& at) { return scalar(x, at, bias); }, weight, dweight, elements, "dweight");
  expect_gradient([&](const Numbers& at) { return scalar(x, weight, at); }, bias, dbias, elements, "dbias");
}

TYPED_TEST(LayerNorm, WeightGradientOfIntegersIsExactAndAddsOnlyWhenToldTo) {
  using T = TypeParam;
  const std::int64_t width = 5, many = 40;
  HostBench<T> bench;
  const Numbers x = integers(1, many * width), dy = integers(2, many * width), mean = integers(3, many);
  const Numbers rstd(many, 2), before = integers(4, width);
  const Tensor scratch = bench.tensor({layer_norm_weight_gradient_scratch(many, width)});
  for (const bool accumulate : {false, true}) {
    const Tensor dweight_D = bench.tensor({width}, before), dbias_D = bench.tensor({width}, before);
    layer_norm_weight_gradient(bench.stream(), bench.tensor({many, width}, dy), bench.tensor({many, width}, x),
                               bench.tensor({many}, mean), bench.tensor({many}, rstd), dweight_D, dbias_D, scratch,
                               accumulate);
    const Numbers dweight = bench.values(dweight_D), dbias = bench.values(dbias_D);
    for (std::int64_t i = 0; i < width; ++i) {
      double weight_sum = accumulate ? before[i] : 0, bias_sum = weight_sum;
      for (std::int64_t n = 0; n < many; ++n) {
        weight_sum += dy[n * width + i] * (x[n * width + i] - mean[n]) * rstd[n];
        bias_sum += dy[n * width + i];
      }
      EXPECT_EQ(dweight[i], weight_sum);
      EXPECT_EQ(dbias[i], bias_sum);
    }
  }
}

TYPED_TEST(LayerNorm, OfEqualNumbersIsTheBias) {
  HostBench<TypeParam> bench;
  const Tensor y_ND = bench.tensor({1, 5}), mean_N = bench.tensor({1}), rstd_N = bench.tensor({1});
  layer_norm_forward(bench.stream(), bench.tensor({1, 5}, Numbers(5, 3)), bench.tensor({5}, numbers(1, 5)),
                     bench.tensor({5}, {1, 2, 3, 4, 5}), epsilon, y_ND, mean_N, rstd_N);
  EXPECT_EQ(bench.values(y_ND), (Numbers{1, 2, 3, 4, 5}));
}

TEST(LayerNormInPlace, InputGradientMayOverwriteTheGradientItReads) {
  const std::int64_t width = 5, elements = tokens * width;
  HostBench<float> bench;
  const Tensor x_ND = bench.tensor({tokens, width}, numbers(1, elements)), weight_D = bench.tensor({width}, numbers(2, width));
  const Tensor dy_ND = bench.tensor({tokens, width}, numbers(3, elements)), apart_ND = bench.tensor({tokens, width});
  const Tensor residual_ND = bench.tensor({tokens, width}, numbers(4, elements));
  const Tensor mean_N = bench.tensor({tokens}, {0, 0, 0}), rstd_N = bench.tensor({tokens}, {1, 1, 1});
  layer_norm_input_gradient(bench.stream(), dy_ND, x_ND, weight_D, mean_N, rstd_N, residual_ND, apart_ND);
  layer_norm_input_gradient(bench.stream(), dy_ND, x_ND, weight_D, mean_N, rstd_N, residual_ND, dy_ND);
  EXPECT_EQ(bench.values(dy_ND), bench.values(apart_ND));
}

}  // namespace
}  // namespace shardbook::kernels::testing
