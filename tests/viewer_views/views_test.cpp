// Does each panel say what is the case, and answer to the hand?
#include "viewer/views/views.hpp"

#include <gtest/gtest.h>

#include "tests/viewer_scene/support.hpp"
#include "tests/viewer_ui/screen.hpp"

namespace shardbook::views {
namespace {

using base::Nanoseconds;
using scene::Sketch;

bool is_said(const std::string& part) {
  const std::vector<std::string>& all = ui::words();
  return std::any_of(all.begin(), all.end(), [&](const std::string& words) { return words.find(part) != std::string::npos; });
}
std::string argument_of(const Intents& intents, const std::string& id) {
  for (const ui::Intent& intent : intents) {
    if (intent.id == id) return intent.argument;
  }
  return "there is no " + id;
}

// Steps of 1 ms; rank `late` computes twice as long before it comes to the collective, which then takes 100 us.
std::shared_ptr<const Scene> run_of(int ranks, int steps, int late = -1) {
  Sketch sketch(ranks);
  for (int step = 0; step < steps; ++step) {
    const Nanoseconds zero = step * 1'000'000;
    for (base::Rank rank = 0; rank < ranks; ++rank) {
      const Nanoseconds compute = late < 0 ? 500'000 : rank == late ? 800'000 : 400'000;
      const Nanoseconds end = late < 0 ? 600'000 : 900'000;
      sketch.compute(rank, zero, zero + compute, sketch.detail("gemm", 0));
      sketch.collective(rank, zero + compute, zero + end, step, sketch.detail("all_reduce", 0), timeline::CollectiveOp::all_reduce);
      sketch.compute(rank, zero + end, zero + 1'000'000, sketch.detail("gemm", 1));
      sketch.builder.add_step({rank, step + 3, zero, zero + 1'000'000, 0, 0});
    }
  }
  return scene::scene_of(sketch.done());
}

PlotState plot_of(const Scene& scene) {
  PlotState plot;
  plot.choices = scene.first_choices();
  plot.rows = scene.rows(plot.choices);
  lanes::show(plot.view, scene.whole(), scene.whole(), 0);
  return plot;
}

// --- Overview -------------------------------------------------------------------------------------
TEST(Overviews, are_of_the_step_in_the_middle_of_the_view_or_of_the_whole_run) {
  const auto scene = run_of(2, 4);
  PlotState plot = plot_of(*scene);
  EXPECT_EQ(step_in_view(*scene, plot).number, -1);
  EXPECT_EQ(step_in_view(*scene, plot).window, scene->whole());
  for (int step = 0; step < 4; ++step) {
    plot.view.start = step * 1e6 + 400'000;
    plot.view.end = step * 1e6 + 500'000;
    EXPECT_EQ(step_in_view(*scene, plot).number, step + 3);
    EXPECT_EQ(step_in_view(*scene, plot).window, (metrics::Window{step * 1'000'000, (step + 1) * 1'000'000}));
  }
}

TEST(Overviews, say_for_each_rank_where_its_time_went) {
  const auto scene = run_of(2, 1);
  ui::Screen screen(1200, 800);
  Overview overview;
  const PlotState plot = plot_of(*scene);
  screen.frame([&] { draw_overview(*scene, overview, plot, overview_height(*scene, overview, plot, 1200)); });
  EXPECT_TRUE(is_said("rank 0 compute 90.0 % exposed 10.0 % idle 0.0 %"));
  // Nobody is late, so nothing is said of it.
  EXPECT_EQ(overview.straggler, "");
}

TEST(Overviews, name_the_rank_that_the_others_wait_for_and_what_it_did) {
  const auto scene = run_of(4, 3, 2);
  ui::Screen screen(1200, 800);
  Overview overview;
  const PlotState plot = plot_of(*scene);
  const auto draw = [&] { draw_overview(*scene, overview, plot, overview_height(*scene, overview, plot, 1200)); };
  screen.frame(draw);
  EXPECT_TRUE(is_said("Rank 2 is the straggler")) << "in the one line, too";
  overview.unfolded = true;
  screen.frame(draw);
  EXPECT_TRUE(is_said("Rank 2 is the straggler."));
  // 900 us of compute each step where the others have 500.
  EXPECT_TRUE(is_said("Its compute took 1.80 times as long as theirs."));
  // The others stand 400 us of each step in a collective that rank 2 has not come to; rank 2 never does.
  for (const base::Rank rank : {0, 1, 3}) EXPECT_EQ(metrics::length(overview.waiting.at(rank)), 3 * 400'000);
  EXPECT_TRUE(overview.waiting.count(2) == 0 || overview.waiting.at(2).empty());
}

TEST(Overviews, time_in_which_a_rank_computes_is_no_waiting) {
  Sketch sketch(2);
  for (const base::Rank rank : {0, 1}) {
    sketch.collective(rank, rank == 0 ? 0 : 800'000, 1'000'000, 0);
    sketch.compute(rank, 100'000, 700'000);
  }
  const auto scene = scene::scene_of(sketch.done());
  ui::Screen screen(1200, 800);
  Overview overview;
  const PlotState plot = plot_of(*scene);
  overview_height(*scene, overview, plot, 1200);
  EXPECT_EQ(overview.waiting.at(0), (metrics::Intervals{{0, 100'000}, {700'000, 800'000}}));
}

// How far down the overview's things reach.
float reach_of_overview() {
  float lowest = 0;
  for (const ui::Spot& spot : ui::spots()) {
    if (spot.pane == "overview") lowest = std::max(lowest, spot.to.y);
  }
  return lowest;
}

TEST(Overviews, in_every_width_the_height_that_they_ask_for_is_enough_for_their_last_line) {
  for (const int ranks : {1, 4, 16}) {
    const auto scene = run_of(ranks, 3, ranks > 1 ? 1 : -1);
    for (const float scale : {1.0f, 2.0f}) {
      ui::Screen screen(320, 2400, scale);
      for (float width = 320 * scale; width <= 1600 * scale; width += 64 * scale) {
        ImGui::GetIO().DisplaySize.x = width;
        Overview overview;
        overview.unfolded = true;
        const PlotState plot = plot_of(*scene);
        float top = 0, height = 0;
        for (int i = 0; i < 2; ++i) {
          screen.frame([&] {
            top = ImGui::GetCursorScreenPos().y;
            height = overview_height(*scene, overview, plot, ImGui::GetContentRegionAvail().x);
            draw_overview(*scene, overview, plot, height);
          });
        }
        // Spots are cut to what can be seen: the last link is there in full height.
        const ui::Spot* last = screen.spot("C: critical path");
        const ui::Spot* first = screen.spot("rank 0");
        ASSERT_TRUE(last != nullptr && first != nullptr);
        EXPECT_GE(last->to.y - last->from.y, first->to.y - first->from.y - 1) << ranks << " ranks, " << width << " wide";
        EXPECT_LE(reach_of_overview() - top, height + 1);
        // Nor is much more asked for than that: a line at most.
        EXPECT_LT(top + height - last->to.y, 26 * scale) << ranks << " ranks, " << width << " wide";
      }
    }
  }
}

// What is exposed most: in brief where there is little room, and no title where there is room for none.
TEST(Overviews, name_what_is_exposed_most_where_there_is_room_for_it) {
  const auto scene = run_of(2, 1);
  ui::Screen screen(1200, 900);
  Overview overview;
  overview.unfolded = true;
  const PlotState plot = plot_of(*scene);
  overview_height(*scene, overview, plot, 1200);
  ASSERT_EQ(overview.kinds.size(), 1U);
  overview.kinds.front().words = overview.kinds.front().brief + " and much more about it than a narrow pane has room for";
  bool was_whole = false, was_brief = false, was_none = false;
  for (float width = 1000; width > 100; width -= 30) {
    ImGui::GetIO().DisplaySize.x = width;
    for (int i = 0; i < 2; ++i) {
      screen.frame([&] { draw_overview(*scene, overview, plot, overview_height(*scene, overview, plot, ImGui::GetContentRegionAvail().x)); });
    }
    const bool whole = screen.spot(overview.kinds.front().words) != nullptr, brief = screen.spot(overview.kinds.front().brief) != nullptr;
    EXPECT_EQ(is_said("Exposed time of all ranks is:"), whole || brief) << width;
    was_whole |= whole;
    was_brief |= brief;
    was_none |= !whole && !brief;
  }
  EXPECT_TRUE(was_whole && was_brief && was_none);
}

TEST(Overviews, of_many_ranks_show_those_with_the_most_exposed_time_and_say_so) {
  const auto scene = run_of(16, 2, 5);
  ui::Screen screen(1200, 900);
  Overview overview;
  overview.unfolded = true;
  const PlotState plot = plot_of(*scene);
  const auto draw_in = [&](float less) {
    screen.frame([&] { draw_overview(*scene, overview, plot, overview_height(*scene, overview, plot, ImGui::GetContentRegionAvail().x) - less); });
  };
  draw_in(0);
  EXPECT_TRUE(is_said("of 16 ranks the 8 with the most exposed time"));
  // The one that all wait for has the least.
  EXPECT_EQ(screen.spot("rank 5"), nullptr);
  EXPECT_NE(screen.spot("rank 4"), nullptr);
  // A bar of many ranks is 14 high: three fewer.
  draw_in(3 * 14);
  EXPECT_TRUE(is_said("of 16 ranks the 5 with the most exposed time"));
  EXPECT_NE(screen.spot("C: critical path"), nullptr);
}

TEST(Overviews, folded_are_the_bars_and_one_line) {
  for (const int ranks : {1, 4, 8}) {
    const auto scene = run_of(ranks, 3, ranks > 1 ? 1 : -1);
    ui::Screen screen(1280, 800);
    Overview overview;
    const PlotState plot = plot_of(*scene);
    Intents intents;
    const auto draw = [&] {
      for (ui::Intent& intent : draw_overview(*scene, overview, plot, overview_height(*scene, overview, plot, 1280))) intents.push_back(intent);
    };
    for (int i = 0; i < 2; ++i) screen.frame(draw);
    const float height = overview_height(*scene, overview, plot, 1280);
    // No more than a bar for the late rank, one for all others, which are alike, and a line.
    EXPECT_LE(height, 17 * static_cast<float>(std::min(ranks, 2)) + 34) << ranks;
    const char* name = ranks == 1 ? "rank 0" : ranks == 4 ? "ranks 0, 2–3 alike" : "ranks 0, 2–7 alike";
    EXPECT_NE(screen.spot(name), nullptr);
    EXPECT_EQ(screen.spot("rank 1") != nullptr, ranks > 1);
    EXPECT_EQ(screen.spot("rank 2"), nullptr);
    EXPECT_EQ(screen.spot("C: critical path"), nullptr);
    if (ranks > 1) {
      EXPECT_TRUE(is_said("Rank 1 is the straggler"));
    }
    ASSERT_TRUE(screen.click("more", draw));
    EXPECT_EQ(argument_of(intents, "show.header"), "");
    overview.unfolded = true;
    for (int i = 0; i < 2; ++i) screen.frame(draw);
    EXPECT_NE(screen.spot("less"), nullptr);
    for (int rank = 0; rank < ranks; ++rank) EXPECT_NE(screen.spot("rank " + std::to_string(rank)), nullptr) << "each rank has its bar";
    EXPECT_GT(overview_height(*scene, overview, plot, 1280), height);
  }
}

// Eight ranks of which no two are alike leave the rows their two thirds: four bars, and the way to the others.
TEST(Overviews, folded_show_four_bars_and_say_how_many_more_there_are) {
  Sketch sketch(8);
  for (base::Rank rank = 0; rank < 8; ++rank) {
    sketch.compute(rank, 0, 500'000 - 40'000 * rank);
    sketch.collective(rank, 500'000 - 40'000 * rank, 1'000'000, 0);
  }
  const auto scene = scene::scene_of(sketch.done());
  ui::Screen screen(1280, 800);
  Overview overview;
  const PlotState plot = plot_of(*scene);
  const auto draw = [&] { draw_overview(*scene, overview, plot, overview_height(*scene, overview, plot, 1280)); };
  for (int i = 0; i < 2; ++i) screen.frame(draw);
  EXPECT_NE(screen.spot("+4 bars"), nullptr);
  EXPECT_EQ(screen.spot("more"), nullptr);
  const float height = overview_height(*scene, overview, plot, 1280);
  EXPECT_LE(height, 14 * 4 + 34);
  overview.unfolded = true;
  for (int i = 0; i < 2; ++i) screen.frame(draw);
  for (int rank = 0; rank < 8; ++rank) EXPECT_NE(screen.spot("rank " + std::to_string(rank)), nullptr);
}

TEST(Overviews, a_rank_is_opened_by_its_name) {
  const auto scene = run_of(2, 1);
  ui::Screen screen(1200, 800);
  Overview overview;
  const PlotState plot = plot_of(*scene);
  Intents intents;
  const auto draw = [&] {
    for (ui::Intent& intent : draw_overview(*scene, overview, plot, 300)) intents.push_back(intent);
  };
  screen.frame(draw);
  // Both are alike, so there is one bar, and a click on its name gives each its own.
  ASSERT_TRUE(screen.click("ranks 0–1 alike", draw));
  EXPECT_EQ(argument_of(intents, "show.header"), "");
  overview.unfolded = true;
  screen.frame(draw);
  ASSERT_TRUE(screen.click("rank 1", draw));
  EXPECT_EQ(argument_of(intents, "rank.show"), "1");
}

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
