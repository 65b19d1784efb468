#include "engine/kernels/host/exponential.hpp"

#include "tests/kernels/host_bench.hpp"

namespace shardbook::kernels::testing {
namespace {

template <class T>
class Exponential : public ::testing::Test {};
TYPED_TEST_SUITE(Exponential, FloatTypes);

TYPED_TEST(Exponential, ErrsByAtMostFourUnitRoundoffsOverItsWholeRange) {
  using T = TypeParam;
  const T lowest = host::ExponentialOf<T>::lowest, highest = host::ExponentialOf<T>::highest;
  const int steps = 100000;
  for (int i = 0; i <= steps; ++i) {
    const T x = std::min(highest, lowest + (highest - lowest) / steps * T(i));
    const Real expected = std::exp(Real(x));
    ASSERT_LE(std::abs(host::exponential(x) - expected), 4 * unit<T>() * expected) << x;
  }
}

TYPED_TEST(Exponential, OfZeroIsExactlyOne) { EXPECT_EQ(host::exponential(TypeParam(0)), 1); }

TYPED_TEST(Exponential, EndsInZeroInfinityAndNaN) {
  using T = TypeParam;
  const T infinity = std::numeric_limits<T>::infinity();
  for (const T x : {-infinity, T(-1e30), T(-1000)}) EXPECT_EQ(host::exponential(x), 0) << x;
  for (const T x : {T(1000), T(1e30), infinity}) EXPECT_EQ(host::exponential(x), infinity) << x;
  EXPECT_TRUE(std::isnan(host::exponential(std::numeric_limits<T>::quiet_NaN())));
}

}  // namespace
}  // namespace shardbook::kernels::testing
