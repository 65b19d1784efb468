// Does the header say where each rank's time went, who is late and why, in the room that it has?
#include <gtest/gtest.h>

#include "tests/viewer_ui/screen.hpp"
#include "tests/viewer_views/support.hpp"

namespace shardbook::views {
namespace {

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
  for (const base::Rank rank : {0, 1, 3}) EXPECT_EQ(base::length(overview.waiting.at(rank)), 3 * 400'000);
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
  EXPECT_EQ(overview.waiting.at(0), (base::Intervals{{0, 100'000}, {700'000, 800'000}}));
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

// Which words a frame drew that begin so; "" if none did.
std::string said_from(const std::string& begin) {
  for (const std::string& words : ui::words()) {
    if (words.starts_with(begin)) return words;
  }
  return "";
}

TEST(Overviews, folded_say_the_cause_whole_where_it_has_room_and_else_as_many_words_as_fit) {
  const auto scene = run_of(2, 1);
  const std::string cause = "This step is bandwidth-bound: 47 all-gathers wait that nothing hides, 18.5 of 66.9 ms, because none is issued before what needs it "
                            "(engine/fsdp/schedule.cpp:20); --set fsdp.prefetch=1 would give 48.1 ms, and more words stand behind it than any header has room for.";
  bool was_whole = false, was_cut = false;
  for (const float width : {1600.0f, 1280.0f, 800.0f, 500.0f, 400.0f}) {
    ui::Screen screen(width, 900);
    Overview overview;
    overview.cause = cause;
    const PlotState plot = plot_of(*scene);
    float height = 0;
    const auto draw = [&] {
      height = overview_height(*scene, overview, plot, ImGui::GetContentRegionAvail().x);
      draw_overview(*scene, overview, plot, height);
    };
    for (int i = 0; i < 2; ++i) screen.frame(draw);
    EXPECT_NE(screen.spot("more"), nullptr) << width << ": the way to the rest stands beside it";
    EXPECT_LE(overview.folded_cause.lines, width > 1000 ? 2 : 4) << width;
    const std::string said = said_from("This step is");
    const std::size_t kept = said.ends_with("…") ? said.size() - std::string("…").size() : said.size();
    EXPECT_EQ(said.substr(0, kept), cause.substr(0, kept)) << width;
    if (said == cause) {
      was_whole = true;
    } else {
      was_cut = true;
      EXPECT_TRUE(said.ends_with("…")) << width << ": " << said;
      EXPECT_EQ(cause[kept], ' ') << "a word is there whole or not at all: " << said;
      // One word more would need a line more
      Overview more;
      more.cause = cause.substr(0, cause.find(' ', kept + 1)) + "…";
      screen.frame([&] { overview_height(*scene, more, plot, ImGui::GetContentRegionAvail().x); });
      EXPECT_NE(more.folded_cause.words, more.cause) << width;
    }
    // All words are measured once, and again when the cause is another
    const char* const before = overview.folded_cause.words.data();
    screen.frame(draw);
    EXPECT_EQ(overview.folded_cause.words.data(), before) << width;
    const float tall = height;
    overview.cause = "This step is compute-bound.";
    screen.frame(draw);
    EXPECT_EQ(said_from("This step is"), overview.cause);
    EXPECT_EQ(overview.folded_cause.lines, 1);
    EXPECT_LT(height, tall) << width;
  }
  EXPECT_TRUE(was_whole && was_cut);
  // In a pane that has no room for it beside the link, too, the words come to an end
  ui::Screen screen(1280, 800);
  Overview overview;
  overview.cause = cause;
  screen.frame([&] { overview_height(*scene, overview, plot_of(*scene), 60); });
  EXPECT_GE(overview.folded_cause.lines, 1);
  EXPECT_LE(overview.folded_cause.lines, 4);
}

}  // namespace
}  // namespace shardbook::views
