// Does each panel say what is the case, and answer to the hand?
#include "viewer/views/views.hpp"

#include <gtest/gtest.h>

#include "tests/viewer_ui/screen.hpp"
#include "tests/viewer_views/support.hpp"

namespace shardbook::views {
namespace {

using scene::Sketch;

// --- Find -----------------------------------------------------------------------------------------
TEST(Finding, a_drag_over_the_histogram_narrows_the_list_and_a_new_word_widens_it) {
  const auto scene = run_of(2, 3);
  ui::Screen screen(900, 700);
  FindState state;
  state.query = "gemm";
  Intents intents;
  const auto draw = [&] {
    for (ui::Intent& intent : draw_find(state, *scene)) intents.push_back(intent);
  };
  screen.frame(draw);
  EXPECT_EQ(argument_of(intents, "find.marks"), "");
  EXPECT_EQ(state.shown.total, 12);
  // Gemms take 500 us or 400 us: the last bar holds the longer ones.
  const ui::Spot histogram = *screen.spot("histogram");
  const float y = (histogram.from.y + histogram.to.y) / 2;
  ImGuiIO& io = ImGui::GetIO();
  const auto drag = [&](float from, float to) {
    io.MousePos = {from, y};
    screen.frame(draw);
    io.MouseDown[0] = true;
    screen.frame(draw);
    io.MousePos = {to, y};
    screen.frame(draw);
    screen.frame(draw);
    io.MouseDown[0] = false;
    screen.frame(draw);
  };
  drag(histogram.to.x - 60, histogram.to.x - 2);
  EXPECT_EQ(state.shown.total, 6);
  EXPECT_EQ(state.shown.least, 500'000);
  drag(histogram.from.x + 1, histogram.to.x - 1);
  EXPECT_EQ(state.shown.total, 12);
  state.query = "all_reduce";
  screen.frame(draw);
  EXPECT_EQ(state.shown.total, 6);
  EXPECT_FALSE(state.range.has_value());
}

TEST(Finding, where_no_span_takes_so_long_it_is_said_once_and_not_looked_for_again) {
  Sketch sketch(1);
  sketch.compute(0, 0, 1000);
  sketch.compute(0, 1000, 1'001'000);
  const auto scene = scene::scene_of(sketch.done());
  ui::Screen screen(900, 700);
  FindState state;
  state.query = "gemm";
  Intents intents;
  const auto draw = [&] { intents = draw_find(state, *scene); };
  screen.frame(draw);
  state.range = {2000, 900'000};
  screen.frame(draw);
  EXPECT_EQ(state.shown.total, 0);
  EXPECT_EQ(argument_of(intents, "find.marks"), "");
  screen.frame(draw);
  EXPECT_TRUE(is_said("Nothing of them takes so long."));
  EXPECT_EQ(argument_of(intents, "find.marks"), "there is no find.marks");
}

// --- Area -----------------------------------------------------------------------------------------
TEST(AreaPanels, give_the_figures_of_metrics_for_the_same_window_and_make_them_once) {
  const auto scene = run_of(2, 2);
  ui::Screen screen(1100, 700);
  PlotState plot = plot_of(*scene);
  plot.area = lanes::Area{{250'000, 750'000}, "r1", "r1"};
  AreaState state;
  screen.frame([&] { draw_area(state, *scene, plot); });
  ASSERT_EQ(state.figures.ranks.size(), 1U);
  EXPECT_EQ(state.figures.ranks.front().rank, 1);
  const metrics::Partition told = metrics::partition(scene->timeline(), 1, {250'000, 750'000});
  EXPECT_EQ(state.figures.ranks.front().partition.compute_ns, told.compute_ns);
  EXPECT_EQ(state.figures.ranks.front().partition.exposed_communication_ns, told.exposed_communication_ns);
  const auto* before = state.figures.ranks.data();
  screen.frame([&] { draw_area(state, *scene, plot); });
  EXPECT_EQ(state.figures.ranks.data(), before);
  plot.area->window.end += 1;
  screen.frame([&] { draw_area(state, *scene, plot); });
  EXPECT_EQ(state.figures.window.end, 750'001);
}

// --- Comparison -----------------------------------------------------------------------------------
TEST(Comparisons, need_two_runs_and_take_a_step_that_each_has) {
  const auto a = run_of(2, 2), b = run_of(2, 2, 1);
  ui::Screen screen(1100, 700);
  CompareState state;
  screen.frame([&] { draw_compare(state, {{a, "a"}}); });
  EXPECT_FALSE(state.made.has_value());
  state.step_a = 99;
  screen.frame([&] { draw_compare(state, {{a, "a"}, {b, "b"}}); });
  ASSERT_TRUE(state.made.has_value());
  EXPECT_EQ(state.made->step_a, 3);
  EXPECT_EQ(state.made->step_b, 3);
  EXPECT_TRUE(is_said("A: step 3 took 1 ms → B: step 3 took 1 ms (0)"));
}

TEST(Comparisons, are_of_the_steps_in_view_until_another_one_is_chosen) {
  const auto a = run_of(2, 3), b = run_of(2, 3, 1);
  ui::Screen screen(1100, 700);
  CompareState state;
  int in_view = 4;
  const auto draw = [&] { draw_compare(state, {{a, "a", 5}, {b, "b", in_view}}); };
  screen.frame(draw);
  EXPECT_EQ(state.made->step_a, 5);
  EXPECT_EQ(state.made->step_b, 4);
  in_view = 3;
  screen.frame(draw);
  EXPECT_EQ(state.made->step_b, 3);
  // A click on it takes the next one; after the last the first. From then on the view does not matter.
  ASSERT_TRUE(screen.click("step 5", draw));
  screen.frame(draw);
  EXPECT_EQ(state.made->step_a, 3);
  EXPECT_EQ(state.made->step_b, 3);
}

TEST(Comparisons, name_the_runs_in_columns_whichever_is_chosen) {
  const auto a = run_of(2, 2), b = run_of(2, 2, 1);
  ui::Screen screen(1100, 700);
  CompareState state;
  // Of each side the place of a name, as far from the side's first name as on the other side.
  const auto places = [&](const std::string& title) {
    std::vector<ImVec2> found;
    for (const ui::Spot& spot : ui::spots()) {
      if (spot.label == title) found.push_back(spot.from);
    }
    return found;
  };
  for (const float width : {1100.0f, 420.0f}) {
    ImGui::GetIO().DisplaySize.x = width;
    for (int i = 0; i < 2; ++i) screen.frame([&] { draw_compare(state, {{a, "one run"}, {b, "another run"}}); });
    const std::vector<ImVec2> one = places("one run"), another = places("another run");
    ASSERT_TRUE(one.size() == 2 && another.size() == 2) << width;
    EXPECT_NEAR(another[0].x - one[0].x, another[1].x - one[1].x, 0.01) << width;
    if (width > 1000) {
      EXPECT_EQ(one[0].y, one[1].y) << "beside each other where both have room";
      EXPECT_GT(one[1].x, another[0].x);
    } else {
      EXPECT_LT(one[0].y, one[1].y) << "else below each other";
      EXPECT_EQ(one[0].x, one[1].x);
    }
  }
}

// It has a count and a sum there, but nothing that lasts 0 ns.
TEST(Comparisons, leave_blank_how_long_an_op_takes_in_a_run_that_has_none_of_it) {
  const auto run = [](const char* op) {
    Sketch sketch(1);
    sketch.compute(0, 0, 250'000, sketch.detail("gemm", 0));
    sketch.compute(0, 250'000, 400'000, sketch.detail(op, 0));
    sketch.builder.add_step({0, 3, 0, 400'000, 0, 0});
    return scene::scene_of(sketch.done());
  };
  const auto a = run("softmax"), b = run("fused");
  ui::Screen screen(1100, 700);
  CompareState state;
  screen.frame([&] { draw_compare(state, {{a, "a"}, {b, "b"}}); });
  Cells rows = state.ops;
  std::sort(rows.begin(), rows.end());
  const Cells expected = {{"forward, fused", "0 / 1", "", "150 µs", "", "+150 µs", "0"},
                          {"forward, gemm", "1 / 1", "250 µs", "250 µs", "0", "0", "0"},
                          {"forward, softmax", "1 / 0", "150 µs", "", "", "−150 µs", "0"}};
  EXPECT_EQ(rows, expected);
}

// --- Palette --------------------------------------------------------------------------------------
TEST(Palettes, show_what_holds_every_word_in_any_order_and_case) {
  ui::Screen screen(900, 700);
  Palette palette;
  palette.open = true;
  palette.title = "Commands";
  palette.choices = {{"Show the critical path", "C", {"show.critical", ""}}, {"Show idle causes", "I", {"show.idle", ""}}, {"Next exposed span", "N", {"exposed.next", ""}}};
  const auto draw = [&] { draw_palette(palette, {900, 700}); };
  screen.frame(draw);
  for (const char* words : {"Show the critical path", "Show idle causes", "Next exposed span"}) EXPECT_NE(screen.spot(words), nullptr);
  palette.query = "PATH show";
  screen.frame(draw);
  EXPECT_NE(screen.spot("Show the critical path"), nullptr);
  EXPECT_EQ(screen.spot("Show idle causes"), nullptr);
  EXPECT_EQ(screen.spot("Next exposed span"), nullptr);
  palette.query = "no such thing";
  screen.frame(draw);
  EXPECT_TRUE(is_said("Nothing is called so."));
}

TEST(Palettes, are_headed_by_what_they_choose_from) {
  ui::Screen screen(900, 700);
  for (const char* title : {"Rows", "Commands"}) {
    Palette palette;
    palette.open = true;
    palette.title = title;
    screen.frame([&] { draw_palette(palette, {900, 700}); });
    EXPECT_TRUE(is_said(title));
    EXPECT_FALSE(is_said("Palette"));
  }
}

TEST(Palettes, close_with_the_intent_of_what_is_pressed) {
  ui::Screen screen(900, 700);
  Palette palette;
  palette.open = true;
  palette.choices = {{"Show idle causes", "I", {"show.idle", ""}}};
  Intents intents;
  const auto draw = [&] {
    for (ui::Intent& intent : draw_palette(palette, {900, 700})) intents.push_back(intent);
  };
  screen.frame(draw);
  ASSERT_TRUE(screen.click("Show idle causes", draw));
  EXPECT_EQ(argument_of(intents, "show.idle"), "");
  EXPECT_FALSE(palette.open);
}

// --- Provenance -----------------------------------------------------------------------------------
TEST(Provenance, is_one_phrase_for_ranks_of_one_clock_and_names_the_clocks_error) {
  Sketch modelled(3);
  for (const base::Rank rank : {0, 1, 2}) modelled.compute(rank, 0, 10);
  const std::string words = provenance_text(*scene::scene_of(modelled.done()));
  EXPECT_NE(words.find("h200x8"), std::string::npos);
  EXPECT_NE(words.find("3 ranks"), std::string::npos);
  EXPECT_EQ(words.find("±"), std::string::npos);
  Sketch measured(1, 1500, timeline::Clock::measured);
  measured.compute(0, 0, 10);
  const std::string other = provenance_text(*scene::scene_of(measured.done()));
  EXPECT_NE(other.find("1 rank"), std::string::npos);
  EXPECT_EQ(other.find("1 ranks"), std::string::npos);
  EXPECT_NE(other.find("clocks agree to ±1.5 µs"), std::string::npos);
}

}  // namespace
}  // namespace shardbook::views
