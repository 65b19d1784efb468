#include "engine/kernels/initialize.hpp"

#include <set>

#include "engine/kernels/random.hpp"
#include "tests/kernels/host_bench.hpp"

namespace shardbook::kernels::testing {
namespace {

template <class T>
class InitNormal : public ::testing::Test {};
TYPED_TEST_SUITE(InitNormal, FloatTypes);

constexpr std::int64_t rows = 12, columns = 20;

template <class T>
Numbers draw(HostBench<T>& bench, std::int64_t elements, const MatrixPart& part, std::uint32_t parameter = 3) {
  const Tensor to = bench.tensor({elements});
  init_normal(bench.stream(), to, part, 42, parameter, 0.125f, 0.02f);
  return bench.values(to);
}

TYPED_TEST(InitNormal, DrawsTheSameMatrixUnderAnyCutOfRowsAndColumns) {
  HostBench<TypeParam> bench;
  const Numbers whole = draw(bench, rows * columns, {0, 0, columns, columns, 0});
  for (const std::int64_t row_parts : {1, 2, 4}) {
    for (const std::int64_t column_parts : {1, 2, 4}) {
      const std::int64_t part_rows = rows / row_parts, part_columns = columns / column_parts;
      for (std::int64_t r = 0; r < row_parts; ++r) {
        for (std::int64_t c = 0; c < column_parts; ++c) {
          const Numbers part = draw(bench, part_rows * part_columns, {r * part_rows, c * part_columns, part_columns, columns, 0});
          for (std::int64_t i = 0; i < part_rows * part_columns; ++i) {
            const std::int64_t row = r * part_rows + i / part_columns, column = c * part_columns + i % part_columns;
            EXPECT_EQ(part[i], whole[row * columns + column]);
          }
        }
      }
    }
  }
}

TYPED_TEST(InitNormal, DrawsTheSameFlatShardsOfAPart) {
  HostBench<TypeParam> bench;
  const MatrixPart part{2, 5, 10, columns, 0};
  const Numbers whole = draw(bench, 70, part);
  for (std::int64_t begin = 0; begin < 70; begin += 14) {
    MatrixPart shard = part;
    shard.begin = begin;
    EXPECT_EQ(draw(bench, 14, shard), Numbers(whole.begin() + begin, whole.begin() + begin + 14));
  }
}

TEST(InitNormalTypes, FloatAndDoubleHoldTheSameNumbers) {
  HostBench<float> narrow;
  HostBench<double> wide;
  const MatrixPart part{0, 0, columns, columns, 0};
  EXPECT_EQ(draw(narrow, rows * columns, part), draw(wide, rows * columns, part));
}

TYPED_TEST(InitNormal, ParametersAndSeedsDrawDifferentNumbers) {
  HostBench<TypeParam> bench;
  const MatrixPart part{0, 0, columns, columns, 0};
  EXPECT_NE(draw(bench, 8, part, 3), draw(bench, 8, part, 4));
  EXPECT_NE(centred_sum(1, 3, 0), centred_sum(2, 3, 0));
}

TYPED_TEST(InitNormal, OfDeviationZeroIsTheMean) {
  HostBench<TypeParam> bench;
  const Tensor to = bench.tensor({9});
  init_normal(bench.stream(), to, {0, 0, 9, 9, 0}, 1, 2, 1, 0);
  EXPECT_EQ(bench.values(to), Numbers(9, 1));
}

// Moments of n independent draws lie within five standard errors of those of the distribution: mean 0,
// variance 1, fourth moment 3 − 6/5/8 = 2.85 (Irwin–Hall of order 8). Standard errors from its moments:
// √(1/n), √((μ4 − 1)/n), √((μ8 − μ4²)/n) with μ8 < 105, the normal's.
TEST(NormalValue, HasTheMomentsOfItsDistribution) {
  const int n = 1 << 18;
  double mean = 0, variance = 0, fourth = 0;
  for (int i = 0; i < n; ++i) {
    const double g = normal_value(7, 1, static_cast<std::uint64_t>(i), 0, 1);
    mean += g / n;
    variance += g * g / n;
    fourth += g * g * g * g / n;
  }
  EXPECT_NEAR(mean, 0, 5 * std::sqrt(1.0 / n));
  EXPECT_NEAR(variance, 1, 5 * std::sqrt(1.85 / n));
  EXPECT_NEAR(fourth, 2.85, 5 * std::sqrt((105 - 2.85 * 2.85) / n));
}

// The correlation of n independent pairs has standard error √(1/n).
TEST(NormalValue, NeighboursParametersAndSeedsAreUncorrelated) {
  const int n = 1 << 16;
  double neighbour = 0, parameter = 0, seed = 0;
  for (int i = 0; i < n; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    const double g = normal_value(7, 1, at, 0, 1);
    neighbour += g * normal_value(7, 1, at + 1, 0, 1) / n;
    parameter += g * normal_value(7, 2, at, 0, 1) / n;
    seed += g * normal_value(8, 1, at, 0, 1) / n;
  }
  for (const double correlation : {neighbour, parameter, seed}) EXPECT_NEAR(correlation, 0, 5 * std::sqrt(1.0 / n));
}

TEST(NormalValue, SumIsCentredAndStaysInItsRange) {
  std::set<std::int32_t> seen;
  for (std::uint64_t i = 0; i < 4096; ++i) {
    const std::int32_t sum = centred_sum(1, 2, i);
    EXPECT_LE(std::abs(sum), 8 * 65535);
    EXPECT_EQ(sum % 2, 0) << "2·sum − 8·65535 is even";
    seen.insert(sum);
  }
  EXPECT_GT(seen.size(), 4000u);
}

}  // namespace
}  // namespace shardbook::kernels::testing
