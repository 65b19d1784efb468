// Is all drawn that can be seen, and no more looked at than that?
#include "viewer/lanes/sight.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace shardbook::lanes {
namespace {

using base::Interval;
using scene::TimeView;

const auto itself = [](const Interval& one) { return one; };

std::vector<Interval> random_intervals(unsigned seed, int count) {
  std::mt19937 random(seed);
  std::vector<Interval> out;
  base::Nanoseconds now = 0;
  for (int i = 0; i < count; ++i) {
    now += random() % 50 == 0 ? random() % 20'000 : random() % 40;
    const base::Nanoseconds end = now + (random() % 30 == 0 ? random() % 5000 : random() % 60);
    out.push_back({now, end});
    now = end;
  }
  return out;
}

std::vector<TimeView> views_of(base::Nanoseconds length) {
  std::vector<TimeView> views;
  for (double width = static_cast<double>(length); width > 20; width /= 4) {
    for (const double at : {-0.3, 0.0, 0.41, 0.9}) views.push_back({at * static_cast<double>(length), at * static_cast<double>(length) + width, 300});
  }
  return views;
}

TEST(Sight, draws_in_order_all_that_touch_the_view_where_nothing_is_passed_over) {
  const std::vector<Interval> list = random_intervals(1, 3000);
  for (const TimeView& view : views_of(list.back().end)) {
    std::vector<Interval> expected, drawn;
    for (const Interval& one : list) {
      if (static_cast<double>(one.end) >= view.start && static_cast<double>(one.start) <= view.end) expected.push_back(one);
    }
    each_in_sight(list.begin(), list.end(), view, itself, [&](const Interval& one, float, float) {
      drawn.push_back(one);
      return 0.0f;
    });
    // Those that end where another ends, without length, may be passed over with it.
    std::set<base::Nanoseconds> seen;
    for (const Interval& one : drawn) seen.insert(one.end);
    for (const Interval& one : expected) ASSERT_TRUE(seen.count(one.end)) << one.start << " to " << one.end;
    for (const Interval& one : drawn) ASSERT_NE(std::find(expected.begin(), expected.end(), one), expected.end());
  }
}

TEST(Sight, looks_at_a_few_things_a_pixel_and_passes_over_none_that_is_wider) {
  const std::vector<Interval> list = random_intervals(2, 200'000);
  for (const TimeView& view : views_of(list.back().end)) {
    for (const float taken : {0.125f, 1.0f, 2.0f}) {
      std::set<base::Nanoseconds> drawn;
      int looked_at = 0;
      each_in_sight(list.begin(), list.end(), view, itself, [&](const Interval& one, float x0, float x1) {
        EXPECT_LE(x0, x1);
        drawn.insert(one.start);
        ++looked_at;
        return taken;
      });
      ASSERT_LE(static_cast<float>(looked_at), view.width / taken + 3);
      for (const Interval& one : list) {
        const bool in_view = static_cast<double>(one.end) > view.start && static_cast<double>(one.start) < view.end;
        if (in_view && static_cast<double>(one.length()) > taken * view.per_pixel()) {
          ASSERT_TRUE(drawn.count(one.start));
        }
      }
    }
  }
}

TEST(Sight, of_an_empty_list_or_one_that_is_elsewhere_nothing_is_looked_at) {
  const auto never = [](const Interval&, float, float) {
    ADD_FAILURE();
    return 1.0f;
  };
  std::vector<Interval> list;
  each_in_sight(list.begin(), list.end(), {0, 100, 300}, itself, never);
  list = {{0, 10}, {500, 600}};
  each_in_sight(list.begin(), list.end(), {20, 400, 300}, itself, never);
}

TEST(Sight, a_pixel_is_where_the_time_is_and_never_far_outside_of_the_view) {
  const TimeView view{1e9, 1e9 + 1000, 500};
  for (base::Nanoseconds time = 1'000'000'000; time <= 1'000'001'000; time += 50) EXPECT_NEAR(near_x(view, time), view.x_of(time), 0.01);
  EXPECT_EQ(near_x(view, 0), -500);
  EXPECT_EQ(near_x(view, 2'000'000'000'000'000'000), 1000);
}

}  // namespace
}  // namespace shardbook::lanes
