#include "engine/kernels/gemm.hpp"

#include <cstdlib>
#include <string>
#include <thread>

#include "engine/kernels/activation.hpp"
#include "engine/kernels/attention.hpp"
#include "engine/kernels/host/blas.hpp"
#include "engine/kernels/host/reference_gemm.hpp"
#include "engine/kernels/host/references.hpp"
#include "tests/kernels/host_bench.hpp"

namespace shardbook::kernels::testing {
namespace {

// A product computed entry by entry, and Σ|a·b| beside it.
struct Product {
  Reals value, magnitude;
};
Product multiply(const Numbers& a, bool a_transposed, const Numbers& b, bool b_transposed, std::int64_t m,
                 std::int64_t n, std::int64_t k) {
  Product product;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      Real sum = 0, magnitude = 0;
      for (std::int64_t p = 0; p < k; ++p) {
        const Real term = Real(a[a_transposed ? p * m + i : i * k + p]) * b[b_transposed ? j * k + p : p * n + j];
        sum += term;
        magnitude += std::abs(term);
      }
      product.value.push_back(sum);
      product.magnitude.push_back(magnitude);
    }
  }
  return product;
}

template <class T>
std::vector<T> as_type(const Numbers& values) {
  return std::vector<T>(values.begin(), values.end());
}

template <class T>
class Gemm : public ::testing::Test {};
TYPED_TEST_SUITE(Gemm, FloatTypes);

template <class T>
using Multiply = std::function<void(bool, bool, std::int64_t, std::int64_t, std::int64_t, T, const T*, std::int64_t,
                                    const T*, std::int64_t, T, T*, std::int64_t)>;

// The twin of this build, and the reference with every set of instructions that this machine has.
template <class T>
std::vector<Multiply<T>> twins() {
  std::vector<Multiply<T>> all = {&host::blas_gemm<T>};
  for (const host::Instructions instructions :
       {host::Instructions::baseline, host::Instructions::avx2, host::Instructions::avx512}) {
    if (instructions > host::widest_instructions()) break;
    all.push_back([instructions](auto... arguments) { host::reference_gemm<T>(arguments..., instructions); });
  }
  return all;
}

// Sizes at, below and above the edges of tiles and blocks (144 rows, 512 columns, depth 256).
constexpr std::int64_t sizes_MNK[][3] = {{1, 1, 1}, {3, 5, 7}, {12, 32, 4}, {13, 33, 257}, {145, 17, 9}, {7, 513, 3}, {2, 3, 0}};

TYPED_TEST(Gemm, TwinsEqualTheNaiveProductOfSmallIntegersExactly) {
  using T = TypeParam;
  for (const Multiply<T>& twin : twins<T>()) {
    for (const auto& [m, n, k] : sizes_MNK) {
      for (int form = 0; form < 4; ++form) {
        const bool a_transposed = form & 1, b_transposed = form & 2;
        const Numbers a = integers(1, m * k), b = integers(2, k * n), before = integers(3, m * n);
        const Product product = multiply(a, a_transposed, b, b_transposed, m, n, k);
        for (const int beta : {0, 1}) {
          std::vector<T> c = as_type<T>(before);
          twin(a_transposed, b_transposed, m, n, k, T(2), as_type<T>(a).data(), std::max<std::int64_t>(1, a_transposed ? m : k),
               as_type<T>(b).data(), std::max<std::int64_t>(1, b_transposed ? k : n), T(beta), c.data(), n);
          for (std::size_t i = 0; i < c.size(); ++i) {
            ASSERT_EQ(c[i], T(2 * product.value[i] + beta * before[i]))
                << m << "x" << n << "x" << k << " form " << form << " beta " << beta << " at " << i;
          }
        }
      }
    }
  }
}

TYPED_TEST(Gemm, TwinsLieWithinTheRoundingOfTheirSums) {
  using T = TypeParam;
  const std::int64_t m = 13, n = 37, k = 300;
  const Numbers a = numbers(1, m * k), b = numbers(2, k * n);
  const Product product = multiply(a, false, b, true, m, n, k);
  Reals bound;
  for (const Real magnitude : product.magnitude) bound.push_back((k + 1) * unit<T>() * magnitude);
  for (const Multiply<T>& twin : twins<T>()) {
    std::vector<T> c(m * n);
    twin(false, true, m, n, k, T(1), as_type<T>(a).data(), k, as_type<T>(b).data(), k, T(0), c.data(), n);
    expect_within(Numbers(c.begin(), c.end()), product.value, bound, "c");
  }
}

TYPED_TEST(Gemm, WithBetaZeroNeverReadsTheResult) {
  using T = TypeParam;
  for (const Multiply<T>& twin : twins<T>()) {
    std::vector<T> c(15, std::numeric_limits<T>::quiet_NaN());
    const std::vector<T> a(6, 1), b(10, 1);
    twin(false, false, 3, 5, 2, T(1), a.data(), 2, b.data(), 5, T(0), c.data(), 5);
    for (const T value : c) EXPECT_EQ(value, 2);
  }
}

TYPED_TEST(Gemm, TwinsLeaveWhatLiesBetweenTheRowsOfCAlone) {
  using T = TypeParam;
  for (const Multiply<T>& twin : twins<T>()) {
    std::vector<T> c(3 * 8, 777);
    const std::vector<T> a(3 * 4, 1), b(2 * 6, 1);
    twin(false, false, 3, 5, 2, T(1), a.data(), 4, b.data(), 6, T(0), c.data(), 8);
    for (std::size_t i = 0; i < c.size(); ++i) EXPECT_EQ(c[i], i % 8 < 5 ? 2 : 777) << i;
  }
}

TYPED_TEST(Gemm, RanksMayMultiplyAtOnceAndRepeatBitForBit) {
  using T = TypeParam;
  const std::int64_t size = 96;
  const std::vector<T> a = as_type<T>(numbers(1, size * size)), b = as_type<T>(numbers(2, size * size));
  for (const Multiply<T>& twin : twins<T>()) {
    std::vector<T> alone(size * size);
    twin(false, false, size, size, size, T(1), a.data(), size, b.data(), size, T(0), alone.data(), size);
    std::vector<std::vector<T>> results(4, std::vector<T>(size * size));
    std::vector<std::thread> ranks;
    for (std::vector<T>& result : results) {
      ranks.emplace_back([&] {
        for (int repeat = 0; repeat < 20; ++repeat) {
          twin(false, false, size, size, size, T(1), a.data(), size, b.data(), size, T(0), result.data(), size);
        }
      });
    }
    for (std::thread& rank : ranks) rank.join();
    for (const std::vector<T>& result : results) EXPECT_EQ(result, alone);
  }
}

TYPED_TEST(Gemm, LinearForwardMultipliesByTheTransposedWeightAndAddsTheBias) {
  using T = TypeParam;
  HostBench<T> bench;
  const Numbers x = integers(1, 3 * 5), weight = integers(2, 7 * 5), bias = integers(3, 7);
  const Tensor x_NI = bench.tensor({3, 5}, x), weight_OI = bench.tensor({7, 5}, weight), bias_O = bench.tensor({7}, bias);
  const Tensor with_NO = bench.tensor({3, 7}), without_NO = bench.tensor({3, 7});
  linear_forward(bench.stream(), x_NI, weight_OI, bias_O, with_NO);
  linear_forward(bench.stream(), x_NI, weight_OI, Tensor{}, without_NO);
  const Product product = multiply(x, false, weight, true, 3, 7, 5);
  const Numbers with = bench.values(with_NO), without = bench.values(without_NO);
  for (std::size_t i = 0; i < with.size(); ++i) {
    EXPECT_EQ(without[i], product.value[i]);
    EXPECT_EQ(with[i], product.value[i] + bias[i % 7]);
  }
}

TYPED_TEST(Gemm, GeluInTheProductIsTheKernelApartInEveryBit) {
  using T = TypeParam;
  HostBench<T> bench;
  const Tensor x_NI = bench.tensor({6, 5}, numbers(1, 6 * 5)), weight_OI = bench.tensor({8, 5}, numbers(2, 8 * 5)), bias_O = bench.tensor({8}, numbers(3, 8));
  const Tensor y_NO = bench.tensor({6, 8}), activated_NO = bench.tensor({6, 8}), of_product_NO = bench.tensor({6, 8}), in_product_NO = bench.tensor({6, 8});
  linear_forward(bench.stream(), x_NI, weight_OI, bias_O, y_NO);
  gelu_forward(bench.stream(), y_NO, activated_NO);
  linear_forward(bench.stream(), x_NI, weight_OI, bias_O, of_product_NO, {Beside::gelu, in_product_NO});
  EXPECT_EQ(bench.values(of_product_NO), bench.values(y_NO));
  EXPECT_EQ(bench.values(in_product_NO), bench.values(activated_NO));

  const Tensor dy_NO = bench.tensor({6, 5}, numbers(4, 6 * 5)), down_OI = bench.tensor({5, 8}, numbers(5, 5 * 8));
  const Tensor dx_NI = bench.tensor({6, 8}), sloped_NI = bench.tensor({6, 8}), at_once_NI = bench.tensor({6, 8});
  linear_input_gradient(bench.stream(), dy_NO, down_OI, dx_NI);
  gelu_backward(bench.stream(), y_NO, dx_NI, sloped_NI);
  linear_input_gradient(bench.stream(), dy_NO, down_OI, at_once_NI, {Beside::gelu_slope, y_NO});
  EXPECT_EQ(bench.values(at_once_NI), bench.values(sloped_NI));
}

TEST(Linear, RefusesAnEpilogueThatIsNotItsOwnOrDoesNotFit) {
  HostBench<float> bench;
  const Tensor x_NI = bench.tensor({3, 5}), weight_OI = bench.tensor({7, 5}), y_NO = bench.tensor({3, 7});
  const auto said = [&](auto call) -> std::string {
    try {
      call();
    } catch (const base::Failure& failure) {
      return failure.what();
    }
    return "nothing";
  };
  EXPECT_NE(said([&] { linear_forward(bench.stream(), x_NI, weight_OI, Tensor{}, y_NO, {Beside::gelu_slope, y_NO}); }).find("linear_forward: its epilogue may be gelu"), std::string::npos);
  EXPECT_NE(said([&] { linear_forward(bench.stream(), x_NI, weight_OI, Tensor{}, y_NO, {Beside::gelu, x_NI}); }).find("the epilogue's tensor is [3, 5] and should be [3, 7]"), std::string::npos);
  EXPECT_NE(said([&] { linear_input_gradient(bench.stream(), y_NO, weight_OI, x_NI, {Beside::gelu, x_NI}); }).find("linear_input_gradient: its epilogue may be gelu_slope"), std::string::npos);
}

TYPED_TEST(Gemm, LinearWeightGradientAddsOnlyWhenToldTo) {
  using T = TypeParam;
  HostBench<T> bench;
  const Numbers dy = integers(1, 3 * 7), x = integers(2, 3 * 5), before = integers(3, 7 * 5);
  const Tensor dy_NO = bench.tensor({3, 7}, dy), x_NI = bench.tensor({3, 5}, x);
  const Tensor set_OI = bench.tensor({7, 5}, before), added_OI = bench.tensor({7, 5}, before);
  linear_weight_gradient(bench.stream(), dy_NO, x_NI, set_OI, false);
  linear_weight_gradient(bench.stream(), dy_NO, x_NI, added_OI, true);
  const Product product = multiply(dy, true, x, false, 7, 5, 3);
  const Numbers set = bench.values(set_OI), added = bench.values(added_OI);
  for (std::size_t i = 0; i < set.size(); ++i) {
    EXPECT_EQ(set[i], product.value[i]);
    EXPECT_EQ(added[i], before[i] + product.value[i]);
  }
}

TYPED_TEST(Gemm, ScalesTheProductAndAddsBiasAndWhatIsThere) {
  using T = TypeParam;
  const Numbers a = integers(1, 3 * 4), b = integers(2, 4 * 5), bias = integers(3, 5), before = integers(4, 3 * 5);
  const std::vector<T> a_stored = as_type<T>(a), b_stored = as_type<T>(b), bias_stored = as_type<T>(bias);
  std::vector<T> c = as_type<T>(before);
  GemmArgs args{};
  args.a = a_stored.data(), args.b = b_stored.data(), args.c = c.data(), args.bias_n = bias_stored.data();
  args.m = 3, args.n = 5, args.k = 4, args.lda = 4, args.ldb = 5, args.ldc = 5, args.batch = 1;
  args.alpha = 2, args.beta = 1;
  args.dtype = args.c_dtype = dtype_of<T>();
  host::gemm(args);
  const Product product = multiply(a, false, b, false, 3, 5, 4);
  for (std::size_t i = 0; i < c.size(); ++i) EXPECT_EQ(c[i], T(2 * product.value[i] + bias[i % 5] + before[i]));
}

TEST(Linear, HostRefusesAProductWhoseResultHasAnotherType) {
  GemmArgs args{};
  args.dtype = DType::f32, args.c_dtype = DType::f64;
  EXPECT_THROW(host::gemm(args), base::Failure);
  args.dtype = args.c_dtype = DType::bf16;
  EXPECT_THROW(host::gemm(args), base::Failure);
}

TEST(Linear, GradientsAreThoseOfFiniteDifferences) {
  HostBench<double> bench;
  const std::int64_t tokens = 3, inputs = 5, outputs = 4;
  const Numbers x = numbers(1, tokens * inputs), weight = numbers(2, outputs * inputs), dy = numbers(3, tokens * outputs);
  const auto scalar = [&](const Numbers& x_at, const Numbers& weight_at) {
    const Tensor y_NO = bench.tensor({tokens, outputs});
    linear_forward(bench.stream(), bench.tensor({tokens, inputs}, x_at), bench.tensor({outputs, inputs}, weight_at),
                   Tensor{}, y_NO);
    return weighted(dy, bench.values(y_NO));
  };
  const Tensor dy_NO = bench.tensor({tokens, outputs}, dy);
  const Tensor dx_NI = bench.tensor({tokens, inputs}), dweight_OI = bench.tensor({outputs, inputs});
  linear_input_gradient(bench.stream(), dy_NO, bench.tensor({outputs, inputs}, weight), dx_NI);
  linear_weight_gradient(bench.stream(), dy_NO, bench.tensor({tokens, inputs}, x), dweight_OI, false);
  expect_gradient([&](const Numbers& at) { return scalar(at, weight); }, x, bench.values(dx_NI), tokens * outputs, "dx");
  expect_gradient([&](const Numbers& at) { return scalar(x, at); }, weight, bench.values(dweight_OI), tokens * outputs,
                  "dweight");
}

TYPED_TEST(Gemm, BatchedFormsEqualTheNaiveProductOfEachEntry) {
  using T = TypeParam;
  HostBench<T> bench;
  const std::int64_t m = 3, n = 5, k = 4, entries = 6;
  for (int form = 0; form < 4; ++form) {
    const bool a_transposed = form & 1, b_transposed = form & 2;
    const Numbers a = integers(1, entries * m * k), b = integers(2, entries * k * n);
    const Tensor c = bench.tensor({2, 3, m, n});
    batched_gemm(bench.stream(), "product", bench.tensor(a_transposed ? base::Shape{2, 3, k, m} : base::Shape{2, 3, m, k}, a),
                 a_transposed, bench.tensor(b_transposed ? base::Shape{2, 3, n, k} : base::Shape{2, 3, k, n}, b),
                 b_transposed, c);
    const Numbers computed = bench.values(c);
    for (std::int64_t entry = 0; entry < entries; ++entry) {
      const Product product =
          multiply(Numbers(a.begin() + entry * m * k, a.begin() + (entry + 1) * m * k), a_transposed,
                   Numbers(b.begin() + entry * k * n, b.begin() + (entry + 1) * k * n), b_transposed, m, n, k);
      for (std::int64_t i = 0; i < m * n; ++i) EXPECT_EQ(computed[entry * m * n + i], product.value[i]) << form;
    }
  }
}

TEST(Linear, RefusesShapesThatDoNotFitAndNamesThem) {
  HostBench<float> bench;
  try {
    linear_forward(bench.stream(), bench.tensor({3, 5}), bench.tensor({7, 6}), Tensor{}, bench.tensor({3, 7}));
    FAIL() << "a weight of 6 inputs was multiplied by 5";
  } catch (const base::Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("linear_forward: weight_OI is [7, 6] and should be [7, 5]"),
              std::string::npos)
        << failure.what();
  }
}

TEST(Linear, GemmTwinHasAName) { EXPECT_GT(std::string(gemm_twin()).size(), 8u); }

// What OpenBLAS has for a CPU that it does not know is for CPUs without AVX, several times slower.
TEST(Linear, OpenBlasHasKernelsOfThisCpuThoughItDoesNotKnowIt) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "the CPU has no AVX2";
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) GTEST_SKIP() << "the environment chose";
  const std::string twin = gemm_twin();
  EXPECT_EQ(twin.find("(Prescott)"), std::string::npos) << twin;
  EXPECT_EQ(twin.find("(Barcelona)"), std::string::npos) << twin;
#endif
}

}  // namespace
}  // namespace shardbook::kernels::testing
