// Do the figures that a reader sees add up?
#include "viewer/views/figures.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/viewer_scene/support.hpp"

namespace shardbook::views {
namespace {

using base::Nanoseconds;
using scene::Paint;

TEST(Figures, a_share_is_of_the_whole_and_of_nothing_it_is_none) {
  EXPECT_EQ(percent_text(123, 1000), "12.3 %");
  EXPECT_EQ(percent_text(1000, 1000), "100.0 %");
  EXPECT_EQ(percent_text(0, 1000), "0.0 %");
  EXPECT_EQ(percent_text(5, 0), "0.0 %");
  EXPECT_EQ(percent_text(2'000'000'000'000'000'000, 2'000'000'000'000'000'000), "100.0 %");
  EXPECT_EQ(share_text(1'230'000, 10'000'000), "1.23 ms · 12.3 %");
}

TEST(Figures, what_is_to_be_added_up_is_written_to_the_nanosecond) {
  EXPECT_EQ(exact_share_text(1'234'567, 12'345'670), "1.234567 ms · 10.0 %");
  EXPECT_EQ(exact_share_text(7, 100), "0.000007 ms · 7.0 %");
  // Where a double of milliseconds would have lost the last digits.
  EXPECT_EQ(exact_share_text(2'000'000'000'000'000'001, 0), "2000000000000.000001 ms · 0.0 %");
}

TEST(Figures, a_difference_says_its_direction_and_none_where_clocks_differ) {
  EXPECT_EQ(difference_text(100, 1'200'100, false), "+1.2 ms");
  EXPECT_EQ(difference_text(1'200'100, 100, false), "−1.2 ms");
  EXPECT_EQ(difference_text(5, 5, false), "0");
  EXPECT_EQ(difference_text(5, 9, true), "two clocks");
}

// --- Bars -----------------------------------------------------------------------------------------
TEST(Bars, parts_sum_to_the_window_to_the_nanosecond_and_to_the_width_without_gap) {
  std::mt19937 random(4);
  for (int turn = 0; turn < 60; ++turn) {
    const auto scene = scene::scene_of(metrics::random_timeline(random, 2));
    for (const scene::RankScene& rank : scene->ranks()) {
      const Nanoseconds start = static_cast<Nanoseconds>(random() % 100) - 10;
      const metrics::Window window{start, start + 1 + static_cast<Nanoseconds>(random() % 90)};
      const metrics::Partition partition = rank.partition(window);
      const Nanoseconds waiting = partition.exposed_communication_ns > 0 ? static_cast<Nanoseconds>(random()) % (partition.exposed_communication_ns + 1) : 0;
      const auto parts = bar_parts(partition, waiting, 40, 640);
      Nanoseconds sum = 0;
      float x = 40;
      for (const BarPart& part : parts) {
        EXPECT_GE(part.length, 0);
        EXPECT_EQ(part.x0, x);
        EXPECT_NEAR(part.x1 - part.x0, 600.0 * static_cast<double>(part.length) / static_cast<double>(window.length()), 1e-3);
        sum += part.length;
        x = part.x1;
      }
      EXPECT_EQ(sum, window.length());
      EXPECT_NEAR(x, 640, 1e-3);
      EXPECT_EQ(parts[1].length + parts[2].length, partition.exposed_communication_ns);
      EXPECT_EQ(parts[2].length, waiting);
      EXPECT_EQ(parts[2].paint, Paint::wait);
    }
  }
}

TEST(Bars, waiting_is_never_more_than_what_is_exposed) {
  metrics::Partition partition;
  partition.window = {0, 100};
  partition.compute_ns = 60;
  partition.exposed_communication_ns = 30;
  partition.idle_ns = 10;
  const auto parts = bar_parts(partition, 50, 0, 100);
  EXPECT_EQ(parts[1].length, 0);
  EXPECT_EQ(parts[2].length, 30);
  EXPECT_FLOAT_EQ(parts[4].x1, 100);
}

TEST(Bars, of_a_window_without_length_have_none) {
  for (const BarPart& part : bar_parts({}, 0, 0, 100)) EXPECT_EQ(part.x1 - part.x0, 0);
}

// --- Histograms -----------------------------------------------------------------------------------
// Spans of lengths from 1 ns to 1 s, as many small as large ones.
std::shared_ptr<const scene::Scene> of_lengths(const std::vector<Nanoseconds>& lengths) {
  scene::Sketch sketch(1);
  Nanoseconds now = 0;
  for (const Nanoseconds length : lengths) {
    sketch.compute(0, now, now + length);
    now += length;
  }
  return scene::scene_of(sketch.done());
}
std::vector<Nanoseconds> lengths_of_all_sizes(int count) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> power(0, 9);
  std::vector<Nanoseconds> lengths;
  for (int i = 0; i < count; ++i) lengths.push_back(static_cast<Nanoseconds>(std::pow(10, power(random))));
  return lengths;
}

TEST(Histograms, all_of_the_width_is_all_lengths) {
  for (const std::vector<Nanoseconds>& lengths : {lengths_of_all_sizes(500), {1000}, {1000, 1000}, {7, 8}, {999, 1'000'000}}) {
    const auto scene = of_lengths(lengths);
    const scene::Found found = scene::find(*scene, "gemm", false);
    ASSERT_EQ(found.total, static_cast<std::int64_t>(lengths.size()));
    for (const auto& [one, other] : {std::pair{0.0, 1.0}, {1.0, 0.0}, {-3.0, 42.0}}) {
      const auto [least, most] = lengths_between(found.histogram, one, other);
      EXPECT_EQ(scene::narrowed(*scene, found, least, most).total, found.total);
    }
  }
}

TEST(Histograms, a_drag_over_some_bars_finds_as_many_spans_as_they_stand_for) {
  const auto scene = of_lengths(lengths_of_all_sizes(2000));
  const scene::Found found = scene::find(*scene, "gemm", false);
  const std::vector<std::int64_t>& counts = found.histogram.counts;
  const auto bars = static_cast<double>(counts.size());
  for (std::size_t first = 0; first < counts.size(); ++first) {
    for (std::size_t last = first; last < counts.size(); last += 3) {
      const auto [least, most] = lengths_between(found.histogram, (static_cast<double>(first) + 0.4) / bars, (static_cast<double>(last) + 0.6) / bars);
      const std::int64_t expected = std::accumulate(counts.begin() + static_cast<std::ptrdiff_t>(first), counts.begin() + static_cast<std::ptrdiff_t>(last) + 1, std::int64_t{0});
      ASSERT_EQ(scene::narrowed(*scene, found, least, most).total, expected) << "bars " << first << " to " << last;
    }
  }
}

RankBar bar_of(base::Rank rank, base::Nanoseconds compute, bool apart = false) {
  RankBar bar{{rank}, {}, 0, apart};
  bar.partition.window = {0, 10'000};
  bar.partition.compute_ns = compute;
  bar.partition.idle_ns = 10'000 - compute;
  return bar;
}

TEST(RankBars, OfRanksThatDifferByAHundredthAreOne) {
  const std::vector<RankBar> bars = folded({bar_of(0, 5000), bar_of(1, 5100), bar_of(2, 5101), bar_of(3, 4900), bar_of(4, 5000, true), bar_of(5, 5100)});
  ASSERT_EQ(bars.size(), 3U);
  EXPECT_EQ(bars[0].ranks, (std::vector<base::Rank>{0, 1, 3, 5}));
  EXPECT_EQ(bars[1].ranks, (std::vector<base::Rank>{2})) << "alike with rank 1 is not alike with the first";
  EXPECT_EQ(bars[2].ranks, (std::vector<base::Rank>{4})) << "the one that all wait for stands apart";
  EXPECT_EQ(bars[0].partition.compute_ns, 5000);
}

TEST(RankBars, OfManyThoseWithTheMostExposedTimeAreShownAndTheLateOne) {
  std::vector<RankBar> bars;
  for (base::Rank rank = 0; rank < 6; ++rank) bars.push_back(bar_of(rank, 0, rank == 2));
  for (RankBar& bar : bars) bar.partition.exposed_communication_ns = 100 * bar.ranks.front();
  const auto ranks = [&](std::size_t most, bool with_apart) {
    std::vector<base::Rank> firsts;
    for (const RankBar& bar : most_exposed(bars, most, with_apart)) firsts.push_back(bar.ranks.front());
    return firsts;
  };
  EXPECT_EQ(ranks(3, false), (std::vector<base::Rank>{3, 4, 5}));
  EXPECT_EQ(ranks(3, true), (std::vector<base::Rank>{2, 4, 5}));
  EXPECT_EQ(ranks(6, false).size(), 6U);
}

TEST(RankBars, AreNamedByTheirRanks) {
  const auto name = [](std::vector<base::Rank> ranks) { return name_of({std::move(ranks), {}, 0, false}); };
  EXPECT_EQ(name({3}), "rank 3");
  EXPECT_EQ(name({0, 1, 2, 3, 4, 5, 6, 7}), "ranks 0–7 alike");
  EXPECT_EQ(name({0, 2, 3}), "ranks 0, 2–3 alike");
  EXPECT_EQ(name({0, 2, 4, 6}), "4 ranks like 0");
}

}  // namespace
}  // namespace shardbook::views
