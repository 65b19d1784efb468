// Busy time of any window, exact, from blocks and pyramid.
#include "viewer/scene/coverage.hpp"

#include "tests/viewer_scene/support.hpp"

namespace shardbook::scene {
namespace {

Intervals random_set(std::mt19937& random, int count, Nanoseconds gap, Nanoseconds length, Nanoseconds start = 0) {
  Intervals out;
  Nanoseconds now = start;
  for (int i = 0; i < count; ++i) {
    now += std::uniform_int_distribution<Nanoseconds>(1, gap)(random);
    const Nanoseconds end = now + std::uniform_int_distribution<Nanoseconds>(1, length)(random);
    out.push_back({now, end});
    now = end;
  }
  return out;
}

Nanoseconds plain(const Intervals& set, Interval window) {
  Nanoseconds sum = 0;
  for (const Interval& interval : set) sum += std::max<Nanoseconds>(0, std::min(interval.end, window.end) - std::max(interval.start, window.start));
  return sum;
}

TEST(Coverage, OfNothingIsNeverBusy) {
  const Coverage coverage{Intervals{}};
  EXPECT_TRUE(coverage.empty());
  EXPECT_EQ(coverage.busy({-5, 1000}), 0);
  EXPECT_TRUE(coverage.within({-5, 1000}).empty());
}

TEST(Coverage, EqualsAPlainSumOnRandomWindows) {
  std::mt19937 random(1);
  for (const auto& [count, gap, length, start] : {std::tuple{1, Nanoseconds{5}, Nanoseconds{5}, Nanoseconds{0}}, {70, 9, 9, -400}, {3000, 50, 70, 0}, {500, 3'000'000, 900, 0}, {200, 90, 2'000'000'000, -7'000'000'000}, {90, 5'000'000'000, 9'000'000'000, -7}}) {
    const Intervals set = random_set(random, count, gap, length, start);
    const Coverage coverage(set);
    EXPECT_EQ(coverage.total(), plain(set, {set.front().start, set.back().end}));
    std::uniform_int_distribution<Nanoseconds> at(set.front().start - 100, set.back().end + 100);
    for (int turn = 0; turn < 400; ++turn) {
      const Nanoseconds a = at(random), b = at(random);
      EXPECT_EQ(coverage.busy({std::min(a, b), std::max(a, b)}), plain(set, {std::min(a, b), std::max(a, b)}));
    }
  }
}

TEST(Coverage, ColumnsOfAnyEdgesAreThePlainSums) {
  std::mt19937 random(2);
  const Intervals set = random_set(random, 4000, 40, 60);
  const Coverage coverage(set);
  for (int turn = 0; turn < 60; ++turn) {
    std::vector<Nanoseconds> edges(200);
    std::uniform_int_distribution<Nanoseconds> at(-1000, set.back().end + 1000);
    for (Nanoseconds& edge : edges) edge = at(random);
    // Half of them on multiples of a power of two, which the pyramid answers.
    const int shift = turn % 2 == 0 ? 0 : turn % 20;
    std::sort(edges.begin(), edges.end());
    for (std::size_t i = 1; i + 1 < edges.size(); ++i) edges[i] = std::max(edges[i - 1], edges[i] >> shift << shift);
    std::vector<Nanoseconds> out(edges.size() - 1);
    coverage.columns(edges, out);
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], plain(set, {edges[i], edges[i + 1]})) << "column " << i << " shift " << shift;
  }
}

TEST(Coverage, ColumnsSumToTheWindowAtEveryZoom) {
  std::mt19937 random(3);
  const Intervals set = random_set(random, 20'000, 900, 1500);
  const Coverage coverage(set);
  const Interval extent = coverage.extent();
  for (int shift = 0; shift < 40; ++shift) {
    const Nanoseconds slice = Nanoseconds{1} << shift;
    const Nanoseconds from = extent.length() / 3;
    std::vector<Nanoseconds> edges{from};
    for (int i = 1; i <= 1900; ++i) edges.push_back((from / slice + i) * slice);
    std::vector<Nanoseconds> out(edges.size() - 1);
    coverage.columns(edges, out);
    EXPECT_EQ(std::accumulate(out.begin(), out.end(), Nanoseconds{0}), plain(set, {edges.front(), edges.back()})) << "slices of 2^" << shift;
  }
}

TEST(Coverage, OfIntervalsLongerThanAnOffsetIsAsExact) {
  std::mt19937 random(6);
  const Intervals set = random_set(random, 60, 5'000'000'000, 9'000'000'000);
  const Coverage coverage(set);
  EXPECT_EQ(coverage.within({0, set.back().end}), set);
  std::vector<Nanoseconds> edges;
  for (Nanoseconds edge = -9; edge < set.back().end + 2'000'000'000; edge += 1'234'567'891) edges.push_back(edge);
  std::vector<Nanoseconds> out(edges.size() - 1);
  coverage.columns(edges, out);
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], plain(set, {edges[i], edges[i + 1]})) << "column " << i;
}

// Found by fuzzing: kept in parts of 4 s, a span of three years in a damaged trace took 190 MB.
TEST(Coverage, OfYearsCostsAsMuchAsOfNanoseconds) {
  constexpr Nanoseconds three_years = 100'000'000'000'000'000;
  const Coverage coverage(Intervals{{-three_years, three_years}, {three_years + 5, three_years + 6}});
  EXPECT_EQ(coverage.intervals(), 2u);
  EXPECT_LT(coverage.memory(), 1000u);
  EXPECT_EQ(coverage.total(), 2 * three_years + 1);
  EXPECT_EQ(coverage.busy({-1, 7}), 8);
}

TEST(Coverage, GivesItsIntervalsBackAsTheyWere) {
  std::mt19937 random(4);
  Intervals set = random_set(random, 300, 30, 40);
  // Longer than a 32-bit offset.
  set.push_back({set.back().end + 10, set.back().end + 10 + 13'000'000'000});
  const Coverage coverage(set);
  EXPECT_EQ(coverage.within({-10, set.back().end + 10}), set);
  EXPECT_EQ(coverage.within({set[10].end, set[12].start + 1}), (Intervals{set[11], set[12]}));
  EXPECT_EQ(coverage.within({set[10].end - 1, set[12].start}), (Intervals{set[10], set[11]}));
  EXPECT_EQ(coverage.within({0, set.back().end}, 3).size(), 3u);
}

TEST(Coverage, CostsLittleMoreThanEightBytesAnInterval) {
  std::mt19937 random(5);
  const Coverage coverage(random_set(random, 200'000, 4000, 3000));
  EXPECT_LT(static_cast<double>(coverage.memory()) / 200'000, 11.0);
}

}  // namespace
}  // namespace shardbook::scene
