// Does the view go where it is sent, and stay within the run?
#include "viewer/lanes/camera.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace shardbook::lanes {
namespace {

// From a short run to what the reader of timelines lets pass: 6 years before the base to 73 after it, and times from 1970.
const std::vector<Interval> runs{{0, 50},
                                 {0, 1'000'000},
                                 {-3'000'000, 80'000'000'000},
                                 {8'640'000'000'000'000, 8'640'010'000'000'000},
                                 {1'732'000'000'000'000'000, 1'732'000'060'000'000'000},
                                 {-400'000'000'000'000'000, 2'300'000'000'000'000'000}};

double middle_of(const TimeView& view) { return (view.start + view.end) / 2; }
double length_of(const TimeView& view) { return view.end - view.start; }

TimeView of_share(Interval run, double from, double to, float width = 1000) {
  const auto length = static_cast<double>(run.length()), start = static_cast<double>(run.start);
  return {start + from * length, start + to * length, width};
}

// What the head of camera.hpp promises; ends are rounded to a 1024th of the least view.
void expect_allowed(const TimeView& view, Interval run) {
  const double least = least_view_ns(run), hair = least / 500;
  EXPECT_GE(length_of(view), least - hair);
  EXPECT_LE(length_of(view), 2 * std::max(static_cast<double>(run.length()), least) * (1 + 1e-9) + hair);
  EXPECT_GE(middle_of(view), static_cast<double>(run.start) - hair);
  EXPECT_LE(middle_of(view), static_cast<double>(run.end) + hair);
}

TEST(Camera, zooming_keeps_the_time_under_the_pointer_where_it_is) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> any(0, 1);
  for (const Interval& run : runs) {
    for (int i = 0; i < 200; ++i) {
      TimeView view = of_share(run, 0.4, 0.6);
      if (length_of(view) * 0.5 < least_view_ns(run)) continue;
      const auto x = static_cast<float>(any(random) * 1000);
      const double before = view.start + x * view.per_pixel();
      zoom(view, 0.5 + any(random), x, run);
      const double after = view.start + x * view.per_pixel();
      EXPECT_NEAR(after, before, view.per_pixel() / 100 + least_view_ns(run) / 500);
    }
  }
}

TEST(Camera, zooming_in_and_out_again_shows_what_it_showed) {
  for (const Interval& run : runs) {
    TimeView view = of_share(run, 0.45, 0.55);
    if (length_of(view) * 0.1 < least_view_ns(run)) continue;
    const TimeView before = view;
    zoom(view, 0.1, 700, run);
    EXPECT_NEAR(length_of(view), 0.1 * length_of(before), length_of(before) * 1e-3);
    zoom(view, 10, 700, run);
    EXPECT_NEAR(view.start, before.start, length_of(before) * 1e-3);
    EXPECT_NEAR(view.end, before.end, length_of(before) * 1e-3);
  }
}

TEST(Camera, going_right_and_left_again_shows_what_it_showed) {
  for (const Interval& run : runs) {
    TimeView view = of_share(run, 0.2, 0.4);
    if (length_of(view) < least_view_ns(run)) continue;
    const TimeView before = view;
    pan(view, 0.7, run);
    EXPECT_GT(view.start, before.start);
    pan_pixels(view, -700, run);
    EXPECT_NEAR(view.start, before.start, length_of(before) * 1e-3);
    EXPECT_NEAR(length_of(view), length_of(before), length_of(before) * 1e-3);
  }
}

TEST(Camera, whatever_is_done_the_view_stays_at_the_run_and_has_a_width) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> any(0, 1);
  for (const Interval& run : runs) {
    TimeView view = of_share(run, 0, 1);
    for (int i = 0; i < 2000; ++i) {
      const Interval part{run.start + static_cast<base::Nanoseconds>(any(random) * static_cast<double>(run.length())), run.end};
      switch (random() % 5) {
        case 0: zoom(view, std::exp(12 * any(random) - 8), static_cast<float>(1000 * any(random)), run); break;
        case 1: pan(view, 20 * any(random) - 10, run); break;
        case 2: show(view, {part.start, part.start + 1}, run, any(random)); break;
        case 3: center(view, part, run); break;
        default: look_at(view, 9e18 * (any(random) - 0.5), run);
      }
      ASSERT_LT(view.start, view.end);
      expect_allowed(view, run);
      if (HasFailure()) return;
    }
  }
}

// 1024 columns are 1024 times however far from zero: a double near 1.7e18 is a multiple of 256 ns.
TEST(Camera, neighbouring_pixels_are_different_times_as_far_as_one_can_zoom_in) {
  for (const Interval& run : runs) {
    TimeView view = of_share(run, 0.49, 0.51, 1024);
    for (int i = 0; i < 200; ++i) zoom(view, 0.5, 512, run);
    for (int x = 0; x < 1000; ++x) ASSERT_LT(view.start + x * view.per_pixel(), view.start + (x + 1) * view.per_pixel()) << run.start;
  }
  EXPECT_EQ(least_view_ns({0, 600'000'000'000}), 100);
}

TEST(Camera, a_time_comes_back_from_its_pixel) {
  std::mt19937 random(3);
  for (const Interval& run : runs) {
    for (double half = 0.5; half > 1e-9; half /= 3) {
      const TimeView view = of_share(run, 0.5 - half, 0.5 + half);
      if (length_of(view) < least_view_ns(run)) break;
      std::uniform_int_distribution<base::Nanoseconds> any(static_cast<base::Nanoseconds>(view.start) + 1, static_cast<base::Nanoseconds>(view.end) - 1);
      for (int i = 0; i < 50; ++i) {
        const base::Nanoseconds time = any(random);
        ASSERT_NEAR(static_cast<double>(view.time_at(view.x_of(time)) - time), 0, view.per_pixel() / 100 + 1 + least_view_ns(run) / 500);
      }
    }
  }
}

TEST(Camera, a_window_is_shown_whole_and_in_the_middle) {
  const Interval run{0, 1'000'000}, window{400'000, 500'000};
  TimeView view{0, 1, 1000};
  show(view, window, run, 0.1);
  EXPECT_DOUBLE_EQ(view.start, 390'000);
  EXPECT_DOUBLE_EQ(view.end, 510'000);
  // A span of no length is shown at the least width.
  show(view, {400'000, 400'000}, run, 0);
  EXPECT_LE(view.start, 400'000);
  EXPECT_NEAR(length_of(view), 100, 1e-6);
}

TEST(Camera, what_comes_to_the_middle_is_zoomed_only_if_it_is_wider_than_the_view) {
  const Interval run{0, 1'000'000};
  TimeView view{0, 10'000, 1000};
  center(view, {700'000, 702'000}, run);
  EXPECT_DOUBLE_EQ(middle_of(view), 701'000);
  EXPECT_DOUBLE_EQ(length_of(view), 10'000);
  center(view, {200'000, 300'000}, run);
  EXPECT_DOUBLE_EQ(middle_of(view), 250'000);
  EXPECT_GT(length_of(view), 100'000);
}

TEST(Camera, a_kept_view_is_left_alone_if_it_is_a_view_of_this_run_and_mended_if_not) {
  const Interval run{0, 1'000'000};
  for (const TimeView good : {TimeView{0, 1'000'000, 800}, TimeView{-500'000, 500'000, 800}, TimeView{999'950, 1'000'050, 800}}) {
    TimeView view = good;
    keep_within(view, run);
    EXPECT_EQ(view.start, good.start);
    EXPECT_EQ(view.end, good.end);
  }
  for (const TimeView bad : {TimeView{5, 5.001, 800}, TimeView{-1e300, 1e300, 800}, TimeView{2e9, 3e9, 800}, TimeView{-1e18, -1e17, 800}}) {
    TimeView view = bad;
    keep_within(view, run);
    ASSERT_LT(view.start, view.end);
    expect_allowed(view, run);
  }
}

}  // namespace
}  // namespace shardbook::lanes
