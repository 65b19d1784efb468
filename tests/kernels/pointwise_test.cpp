#include "engine/kernels/activation.hpp"
#include "engine/kernels/initialize.hpp"
#include "engine/kernels/reduce.hpp"
#include "engine/kernels/residual.hpp"
#include "tests/kernels/host_bench.hpp"

namespace shardbook::kernels::testing {
namespace {

template <class T>
class Pointwise : public ::testing::Test {};
TYPED_TEST_SUITE(Pointwise, FloatTypes);

const Real root_two_over_pi = std::sqrt(2 / std::acos(Real(-1)));

// From deep in the negative tail, where an exponential overflows in f32, to the linear part.
Numbers gelu_inputs() {
  Numbers x;
  for (double at = -24; at <= 24; at += 0.109375) x.push_back(at);
  x.push_back(0);
  return x;
}

TYPED_TEST(Pointwise, GeluForwardIsTheTanhForm) {
  using T = TypeParam;
  HostBench<T> bench;
  const Numbers x = gelu_inputs();
  const auto elements = static_cast<std::int64_t>(x.size());
  const Tensor y = bench.tensor({elements});
  gelu_forward(bench.stream(), bench.tensor({elements}, x), y);
  Reals expected, bound;
  for (const Real at : x) {
    const Real inner = root_two_over_pi * (at + Real(0.044715L) * at * at * at);
    expected.push_back(at / (1 + std::exp(-2 * inner)));
    // The exponent 2u has at most six roundings (two of them of constants), hence the relative error of the
    // exponential; eight roundings of results beside it. A sigmoid that underflows in T may be lost.
    bound.push_back(std::abs(expected.back()) * (12 * std::abs(inner) + 8) * unit<T>() +
                    (1 + std::abs(at)) * std::numeric_limits<T>::min());
    EXPECT_NEAR(double(expected.back()), double(at / 2 * (1 + std::tanh(inner))), 1e-15);
  }
  expect_within(bench.values(y), expected, bound, "gelu");
}

TYPED_TEST(Pointwise, GeluBackwardIsTheDerivativeOfTheTanhForm) {
  using T = TypeParam;
  HostBench<T> bench;
  const Numbers x = gelu_inputs();
  const auto elements = static_cast<std::int64_t>(x.size());
  const Numbers dy = numbers(1, elements);
  const Tensor dx = bench.tensor({elements});
  gelu_backward(bench.stream(), bench.tensor({elements}, x), bench.tensor({elements}, dy), dx);
  Reals expected, bound;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Real at = x[i], inner = root_two_over_pi * (at + Real(0.044715L) * at * at * at);
    const Real slope = root_two_over_pi * (1 + 3 * Real(0.044715L) * at * at);
    // (1 + tanh)/2 and 1 − tanh² in forms that cancel nothing.
    const Real sigmoid = 1 / (1 + std::exp(-2 * inner)), cosh = std::cosh(inner);
    expected.push_back(dy[i] * (sigmoid + at / 2 / (cosh * cosh) * slope));
    // σ errs relatively as in the forward; 1 − σ absolutely by as much as σ, and one rounding.
    const Real relative = (12 * std::abs(inner) + 8) * unit<T>();
    const Real factor = std::abs(dy[i]) * (1 + 4 * std::abs(at * slope));
    bound.push_back(factor * (sigmoid * (relative + 8 * unit<T>()) + std::numeric_limits<T>::min()));
  }
  expect_within(bench.values(dx), expected, bound, "dx");
}

TEST(Gelu, GradientIsThatOfFiniteDifferences) {
  HostBench<double> bench;
  const Numbers x = numbers(1, 21, 4), dy = numbers(2, 21);
  const Tensor dx = bench.tensor({21});
  gelu_backward(bench.stream(), bench.tensor({21}, x), bench.tensor({21}, dy), dx);
  const auto scalar = [&](const Numbers& at) {
    const Tensor y = bench.tensor({21});
    gelu_forward(bench.stream(), bench.tensor({21}, at), y);
    return weighted(dy, bench.values(y));
  };
  expect_gradient(scalar, x, bench.values(dx), 21, "dx");
}

TYPED_TEST(Pointwise, AddBiasResidualAddsThreeIntegersExactlyAndInPlace) {
  using T = TypeParam;
  HostBench<T> bench;
  const Numbers residual = integers(1, 15), x = integers(2, 15), bias = integers(3, 5);
  const Tensor residual_ND = bench.tensor({3, 5}, residual), x_ND = bench.tensor({3, 5}, x), bias_D = bench.tensor({5}, bias);
  const Tensor with_ND = bench.tensor({3, 5}), without_ND = bench.tensor({3, 5});
  add_bias_residual(bench.stream(), residual_ND, x_ND, bias_D, with_ND);
  add_bias_residual(bench.stream(), residual_ND, x_ND, Tensor{}, without_ND);
  add_bias_residual(bench.stream(), residual_ND, x_ND, bias_D, x_ND);
  const Numbers with = bench.values(with_ND), without = bench.values(without_ND);
  EXPECT_EQ(bench.values(x_ND), with);
  for (std::size_t i = 0; i < 15; ++i) {
    EXPECT_EQ(without[i], residual[i] + x[i]);
    EXPECT_EQ(with[i], residual[i] + x[i] + bias[i % 5]);
  }
}

TYPED_TEST(Pointwise, BiasGradientSumsTokensExactlyAndAddsOnlyWhenToldTo) {
  using T = TypeParam;
  HostBench<T> bench;
  const std::int64_t tokens = 67, width = 5;
  const Numbers dy = integers(1, tokens * width), before = integers(2, width);
  const Tensor scratch = bench.tensor({bias_gradient_scratch(tokens, width)});
  for (const bool accumulate : {false, true}) {
    const Tensor dbias_O = bench.tensor({width}, before);
    bias_gradient(bench.stream(), bench.tensor({tokens, width}, dy), dbias_O, scratch, accumulate);
    const Numbers dbias = bench.values(dbias_O);
    for (std::int64_t i = 0; i < width; ++i) {
      double expected = accumulate ? before[i] : 0;
      for (std::int64_t n = 0; n < tokens; ++n) expected += dy[n * width + i];
      EXPECT_EQ(dbias[i], expected);
    }
  }
}

TEST(BiasGradient, IsThatOfFiniteDifferences) {
  HostBench<double> bench;
  const Numbers bias = numbers(1, 5), dy = numbers(2, 15), x = numbers(3, 15);
  const Tensor dbias_O = bench.tensor({5}), scratch = bench.tensor({bias_gradient_scratch(3, 5)});
  bias_gradient(bench.stream(), bench.tensor({3, 5}, dy), dbias_O, scratch, false);
  const auto scalar = [&](const Numbers& at) {
    const Tensor out_ND = bench.tensor({3, 5});
    add_bias_residual(bench.stream(), bench.tensor({3, 5}, x), bench.tensor({3, 5}, x), bench.tensor({5}, at), out_ND);
    return weighted(dy, bench.values(out_ND));
  };
  expect_gradient(scalar, bias, bench.values(dbias_O), 15, "dbias");
}

TYPED_TEST(Pointwise, AccumulateAddsInPlace) {
  HostBench<TypeParam> bench;
  const Numbers from = integers(1, 37), before = integers(2, 37);
  const Tensor into = bench.tensor({37}, before);
  accumulate(bench.stream(), bench.tensor({37}, from), into);
  const Numbers after = bench.values(into);
  for (std::size_t i = 0; i < 37; ++i) EXPECT_EQ(after[i], before[i] + from[i]);
}

// What crossed the network in fewer bytes comes back; on the host all is stored alike, so a cast and back is nothing.
TYPED_TEST(Pointwise, WidenWritesOrAddsWhatACastHasNarrowed) {
  HostBench<TypeParam> bench;
  const Numbers from = integers(1, 37), before = integers(2, 37);
  const Tensor narrow = tensor::allocate(bench.device(), {37}, DType::bf16, program::MemoryKind::gradient, "narrow");
  cast(bench.stream(), bench.tensor({37}, from), narrow);
  for (const bool accumulate : {false, true}) {
    const Tensor into = bench.tensor({37}, before);
    widen(bench.stream(), narrow, into, accumulate);
    const Numbers after = bench.values(into);
    for (std::size_t i = 0; i < 37; ++i) EXPECT_EQ(after[i], (accumulate ? before[i] : 0) + from[i]);
  }
}

TYPED_TEST(Pointwise, SumScalesAndAddsOnlyWhenToldTo) {
  HostBench<TypeParam> bench;
  const Tensor value_N = bench.tensor({37}, Numbers(37, 3)), total = bench.tensor({1}, {5});
  sum(bench.stream(), value_N, 0.5f, total, true);
  EXPECT_EQ(bench.value(total), 5 + 55.5);
  sum(bench.stream(), value_N, 2, total, false);
  EXPECT_EQ(bench.value(total), 222);
}

TYPED_TEST(Pointwise, SumRepeatsBitForBit) {
  HostBench<TypeParam> bench;
  const Tensor value_N = bench.tensor({1001}, numbers(1, 1001)), first = bench.tensor({1}), second = bench.tensor({1});
  sum(bench.stream(), value_N, 1, first, false);
  sum(bench.stream(), value_N, 1, second, false);
  EXPECT_EQ(bench.value(first), bench.value(second));
}

TYPED_TEST(Pointwise, FillAndCastWriteEveryElementAndNoOther) {
  HostBench<TypeParam> bench;
  const Tensor whole = bench.tensor({9});
  fill(bench.stream(), whole.slice(1, {7}), 2.5f);
  EXPECT_EQ(bench.values(whole), (Numbers{777, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 777}));
  const Numbers from = numbers(1, 7);
  const Tensor to = bench.tensor({7});
  cast(bench.stream(), bench.tensor({7}, from), to);
  EXPECT_EQ(bench.values(to), from);
}

}  // namespace
}  // namespace shardbook::kernels::testing
