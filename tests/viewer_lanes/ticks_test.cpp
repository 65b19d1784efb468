// Can the ruler be read at every scale?
#include "viewer/lanes/ticks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

namespace shardbook::lanes {
namespace {

// Scales from a ten-thousandth of a nanosecond to two days a pixel.
template <typename Do>
void at_every_scale(Do what) {
  for (double ns_per_pixel = 1e-4; ns_per_pixel < 2e14; ns_per_pixel *= 1.07) what(ns_per_pixel);
}

TEST(Ticks, are_one_two_or_five_times_a_power_of_ten_and_far_enough_apart) {
  at_every_scale([](double scale) {
    for (const float least_px : {1.0f, 40.0f, 96.0f, 300.0f}) {
      const double distance = tick_ns(scale, least_px);
      const double power = std::pow(10, std::floor(std::log10(distance) + 1e-6)), times = distance / power;
      ASSERT_TRUE(std::abs(times - 1) < 1e-6 || std::abs(times - 2) < 1e-6 || std::abs(times - 5) < 1e-6) << distance;
      ASSERT_GE(distance, 1);
      ASSERT_GE(distance / scale, least_px * (1 - 1e-6));
      // Nor farther apart than the next such distance asks for.
      if (distance > 1) {
        ASSERT_LE(distance / scale, least_px * 2.5 * (1 + 1e-6));
      }
    }
  });
}

TEST(Ticks, are_all_the_multiples_in_view_and_none_besides) {
  at_every_scale([](double scale) {
    const double distance = tick_ns(scale, 96);
    for (const double zero : {0.0, 123'456'789.0, -5e9}) {
      const scene::TimeView view{zero - 300 * scale, zero + 700 * scale, 1000};
      const std::vector<double> ticks = ticks_of(view, zero, distance);
      const double tiny = 1e-6 * distance + std::abs(zero) * 1e-15;
      if (!ticks.empty()) {
        ASSERT_GE(zero + ticks.front(), view.start - tiny);
        ASSERT_LT(zero + ticks.front() - distance, view.start + tiny);
        ASSERT_LE(zero + ticks.back(), view.end + tiny);
        ASSERT_GT(zero + ticks.back() + distance, view.end - tiny);
      }
      for (std::size_t i = 0; i < ticks.size(); ++i) {
        ASSERT_NEAR(std::remainder(ticks[i], distance), 0, 1e-6 * distance);
        if (i > 0) {
          ASSERT_NEAR(ticks[i] - ticks[i - 1], distance, 1e-6 * distance);
        }
      }
      ASSERT_LE(ticks.size(), 12U);
    }
  });
}

// Adding a distance of some ns to a time near 2^61 may change nothing: it must end all the same.
TEST(Ticks, come_to_an_end_years_away_from_the_start_of_the_run) {
  const scene::TimeView view{1.732e18, 1.732e18 + 262'144, 1000};
  EXPECT_LE(ticks_of(view, 0, tick_ns(view.per_pixel(), 96)).size(), 12U);
  EXPECT_LE(ticks_of(view, -4e17, 1).size(), 300'000U);
}

TEST(Ticks, that_stand_beside_each_other_never_read_the_same) {
  // At a moment of the run: its start, a millisecond, a second, an hour.
  for (const double moment : {0.0, 1e6, 1.5e9, 3.6e12}) {
    at_every_scale([&](double scale) {
      const double distance = tick_ns(scale, 96);
      const double first = std::floor(moment / distance) * distance;
      std::set<std::string> words;
      for (int i = -4; i < 8; ++i) words.insert(tick_text(first + i * distance, distance));
      ASSERT_EQ(words.size(), 12U) << "every " << distance << " ns at " << moment << ": " << *words.begin();
    });
  }
}

TEST(Ticks, say_their_time) {
  at_every_scale([](double scale) {
    const double distance = tick_ns(scale, 96);
    for (int i = -7; i < 30; ++i) {
      const std::string words = tick_text(i * distance, distance);
      const std::string unit = words.substr(words.find(' ') + 1);
      const double ns = std::atof(words.c_str()) * (unit == "s" ? 1e9 : unit == "ms" ? 1e6 : unit == "µs" ? 1e3 : 1);
      ASSERT_NEAR(ns, i * distance, distance * 1e-6) << words;
    }
  });
  EXPECT_EQ(tick_text(0, 1e6), "0 ms");
  EXPECT_EQ(tick_text(-1e-9, 1e6), "0 ms");
  EXPECT_EQ(tick_text(12.4e6, 2e5), "12.4 ms");
  EXPECT_EQ(tick_text(2e9, 1e9), "2 s");
  EXPECT_EQ(tick_text(950, 50), "950 ns");
}

}  // namespace
}  // namespace shardbook::lanes
