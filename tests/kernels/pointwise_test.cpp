#include "engine/kernels/activation.hpp"
#include "engine/kernels/dropout.hpp"
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

// ---- Dropout: what is kept is scaled exactly, and an element's fate is its place's ----------------

constexpr std::uint64_t mask_of_tests = 0x1234;

// 1 where kept, 0 where dropped.
template <class T>
Numbers kept_by(HostBench<T>& bench, std::int64_t elements, const DropoutMask& mask) {
  const Tensor x = bench.tensor({elements}, Numbers(static_cast<std::size_t>(elements), 1));
  dropout(bench.stream(), "dropout_forward", x, mask, x);
  Numbers values = bench.values(x);
  for (double& value : values) {
    EXPECT_TRUE(value == 0 || value == static_cast<double>(mask.scale)) << value;
    value = value != 0;
  }
  return values;
}

TYPED_TEST(Pointwise, DropoutKeepsAsOftenAsItSaysAndKeepsTheMean) {
  HostBench<TypeParam> bench;
  const std::int64_t n = 100000;
  for (const double rate : {0.0, 0.1, 0.5, 0.9}) {
    const DropoutMask mask = dropout_mask(rate, dropout_key(1, 2, 3), 17);
    EXPECT_NEAR(mask.scale * (1 - rate), 1, 1e-6);
    double kept = 0;
    for (const double one : kept_by(bench, n, mask)) kept += one;
    // A binomial's deviation; beyond six of them is one draw in 10^9
    EXPECT_NEAR(kept / n, 1 - rate, 6 * std::sqrt(rate * (1 - rate) / n)) << rate;
  }
}

TYPED_TEST(Pointwise, DropoutOfAnyPartIsThatPartOfTheWholeOnes) {
  HostBench<TypeParam> bench;
  // B sequences of H heads, each a square; and the same numbers as rows of tokens
  const std::int64_t B = 4, H = 8, square = 25, n = B * H * square;
  const Numbers whole = kept_by(bench, n, dropout_mask(0.4, mask_of_tests, 0));
  EXPECT_EQ(kept_by(bench, n - 7, dropout_mask(0.4, mask_of_tests, 7)), Numbers(whole.begin() + 7, whole.end())) << "from an odd element on";
  for (const std::int64_t parts : {1, 2, 4}) {
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t size = n / parts;
      EXPECT_EQ(kept_by(bench, size, dropout_mask(0.4, mask_of_tests, part * size)), Numbers(whole.begin() + part * size, whole.begin() + (part + 1) * size)) << "rows";
      const std::int64_t run = H / parts * square;
      const Numbers heads = kept_by(bench, size, dropout_mask(0.4, mask_of_tests, part * run, run, H * square));
      for (std::int64_t i = 0; i < size; ++i) EXPECT_EQ(heads[i], whole[i / run * H * square + part * run + i % run]) << "heads, element " << i;
    }
  }
}

TEST(Dropout, OfOtherStepsPlacesAndSeedsIsUncorrelated) {
  HostBench<float> bench;
  const std::int64_t n = 50000;
  const auto mask = [&](std::uint64_t seed, std::int64_t step, std::uint32_t place, std::int64_t first) {
    return kept_by(bench, n, dropout_mask(0.5, dropout_key(seed, step, place), first));
  };
  const Numbers one = mask(7, 0, 100, 0);
  EXPECT_EQ(mask(7, 0, 100, 0), one);
  for (const Numbers& other : {mask(8, 0, 100, 0), mask(7, 1, 100, 0), mask(7, 0, 101, 0), mask(7, 0, 100, 1), mask(7, 0, 100, n)}) {
    double alike = 0;
    for (std::int64_t i = 0; i < n; ++i) alike += one[i] == other[i];
    EXPECT_NEAR(alike / n, 0.5, 6 * 0.5 / std::sqrt(n));
  }
}

TEST(Dropout, DropsTheSameInFloatAndDouble) {
  HostBench<float> narrow;
  HostBench<double> wide;
  const DropoutMask mask = dropout_mask(0.3, mask_of_tests, std::int64_t{1} << 40);
  EXPECT_EQ(kept_by(narrow, 1000, mask), kept_by(wide, 1000, mask));
}

TYPED_TEST(Pointwise, BiasDropoutResidualIsTheThreeAfterOneAnotherAndInPlace) {
  using T = TypeParam;
  HostBench<T> bench;
  // Dropped by a half: what is kept is doubled, exactly
  const DropoutMask mask = dropout_mask(0.5, mask_of_tests, 40);
  const Numbers residual = integers(1, 60), x = integers(2, 60), bias = integers(3, 5);
  const Numbers kept = kept_by(bench, 60, mask);
  for (const bool biased : {false, true}) {
    const Tensor residual_ND = bench.tensor({12, 5}, residual), x_ND = bench.tensor({12, 5}, x), out_ND = bench.tensor({12, 5});
    const Tensor bias_D = biased ? bench.tensor({5}, bias) : Tensor{};
    bias_dropout_residual(bench.stream(), residual_ND, x_ND, bias_D, mask, out_ND);
    bias_dropout_residual(bench.stream(), residual_ND, x_ND, bias_D, mask, residual_ND);
    const Numbers out = bench.values(out_ND);
    EXPECT_EQ(bench.values(residual_ND), out);
    for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(out[i], residual[i] + kept[i] * 2 * (x[i] + (biased ? bias[i % 5] : 0)));
  }
}

TEST(Dropout, GradientIsThatOfFiniteDifferences) {
  HostBench<double> bench;
  const DropoutMask mask = dropout_mask(0.25, mask_of_tests, 3);
  const Numbers x = numbers(1, 30), dy = numbers(2, 30), residual = numbers(3, 30);
  const Tensor dx = bench.tensor({30});
  dropout(bench.stream(), "dropout_backward", bench.tensor({30}, dy), mask, dx);
  const auto scalar = [&](const Numbers& at) {
    const Tensor out_ND = bench.tensor({6, 5});
    bias_dropout_residual(bench.stream(), bench.tensor({6, 5}, residual), bench.tensor({6, 5}, at), Tensor{}, mask, out_ND);
    return weighted(dy, bench.values(out_ND));
  };
  expect_gradient(scalar, x, bench.values(dx), 30, "dx");
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

TYPED_TEST(Pointwise, SumPartsAddsThemFromTheFirstOn) {
  using T = TypeParam;
  HostBench<T> bench;
  const std::int64_t parts = 5, elements = 37;
  const Numbers whole = integers(3, parts * elements), real = numbers(4, parts * elements);
  const Tensor out = bench.tensor({elements});
  sum_parts(bench.stream(), bench.tensor({parts, elements}, whole), out);
  const Numbers exact = bench.values(out);
  sum_parts(bench.stream(), bench.tensor({parts, elements}, real), out);
  const Numbers rounded = bench.values(out);
  for (std::size_t i = 0; i < elements; ++i) {
    double sum = 0;
    T in_order = T(real[i]);
    for (std::size_t part = 0; part < parts; ++part) {
      sum += whole[part * elements + i];
      if (part > 0) in_order += T(real[part * elements + i]);
    }
    EXPECT_EQ(exact[i], sum);
    EXPECT_EQ(rounded[i], in_order);   // one order: a reduce-scatter of the host has the same bits
  }
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
