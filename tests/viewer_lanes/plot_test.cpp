// Does the plot follow the hand, say what it shows, and cost what is on the screen?
#include "viewer/lanes/plot.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/viewer_scene/support.hpp"
#include "tests/viewer_ui/screen.hpp"
#include "viewer/lanes/placing.hpp"
#include "viewer/scene/roles.hpp"

namespace shardbook::lanes {
namespace {

using scene::Sketch;
using scene::SpanRef;

// A plot over the whole screen, and a hand on it.
struct Table {
  explicit Table(std::shared_ptr<const scene::Scene> of, float width = 1000, float height = 600) : screen(width, height), scene(std::move(of)) {
    state.choices = scene->first_choices();
    show(state.view, scene->whole(), scene->whole(), 0);
    frame();
    frame();
  }

  void frame() {
    screen.frame([&] {
      for (ui::Intent& intent : draw_plot(*scene, state, ImGui::GetContentRegionAvail())) intents.push_back(intent);
    });
  }
  ImVec2 origin() const { return screen.spot("timeline")->from; }
  // The middle of a row at a time, on the screen.
  ImVec2 at(const std::string& row, base::Nanoseconds time) const {
    const ui::Spot* name = screen.spot(row);
    if (name == nullptr) {
      ADD_FAILURE() << "no row " << row;
      return {};
    }
    return {origin().x + state.view.x_of(time), (name->from.y + name->to.y) / 2};
  }
  double time_under_pointer() const { return state.view.start + (ImGui::GetIO().MousePos.x - origin().x) * state.view.per_pixel(); }
  void point(ImVec2 to) {
    ImGui::GetIO().MousePos = to;
    frame();
  }
  void press(int button, bool down) {
    ImGui::GetIO().MouseDown[button] = down;
    frame();
  }
  void drag(int button, ImVec2 from, ImVec2 to) {
    point(from);
    press(button, true);
    point({(from.x + to.x) / 2, (from.y + to.y) / 2});
    point(to);
    press(button, false);
  }
  std::string argument_of(const std::string& id) const {
    for (const ui::Intent& intent : intents) {
      if (intent.id == id) return intent.argument;
    }
    return "there is no " + id;
  }

  ui::Screen screen;
  std::shared_ptr<const scene::Scene> scene;
  PlotState state;
  ui::Intents intents;
};

// Two ranks: compute on stream 7, a gather on stream 20 that both join.
std::shared_ptr<const scene::Scene> small_run() {
  Sketch sketch(2);
  for (const base::Rank rank : {0, 1}) {
    sketch.compute(rank, 0, 400'000, sketch.detail("gemm", 0));
    sketch.collective(rank, 300'000, 600'000, 0, sketch.detail("all_gather", 1));
    sketch.compute(rank, 600'000, 1'000'000, sketch.detail("gemm", 1));
  }
  return scene::scene_of(sketch.done());
}

TEST(Plot, the_wheel_zooms_and_keeps_the_time_under_the_pointer) {
  Table table(small_run());
  table.point(table.at("r0.s20", 450'000));
  const double time = table.time_under_pointer(), width = table.state.view.per_pixel();
  for (int i = 0; i < 6; ++i) {
    ImGui::GetIO().MouseWheel = 1;
    table.frame();
    EXPECT_NEAR(table.time_under_pointer(), time, width);
  }
  EXPECT_LT(table.state.view.per_pixel(), width / 3);
  for (int i = 0; i < 6; ++i) {
    ImGui::GetIO().MouseWheel = -1;
    table.frame();
  }
  EXPECT_NEAR(table.state.view.per_pixel(), width, width * 1e-6);
}

TEST(Plot, the_right_button_moves_what_is_seen_with_the_hand) {
  Table table(small_run());
  table.point(table.at("r0.s20", 450'000));
  ImGui::GetIO().MouseWheel = 5;
  table.frame();
  const double time = table.time_under_pointer();
  const ImVec2 from = ImGui::GetIO().MousePos;
  table.drag(1, from, {from.x + 120, from.y});
  EXPECT_NEAR(table.time_under_pointer(), time, 3 * table.state.view.per_pixel());
}

TEST(Plot, a_click_selects_the_span_that_is_drawn_there) {
  Table table(small_run());
  table.point(table.at("r0.s20", 450'000));
  ASSERT_TRUE(table.state.hovered.valid());
  EXPECT_EQ(table.scene->timeline().start(table.state.hovered), 300'000);
  table.press(0, true);
  table.press(0, false);
  EXPECT_EQ(table.argument_of("select"), "r0.s20/0");
  EXPECT_EQ(table.argument_of("row.focus"), "r0.s20");
  // Where nothing is, nothing is selected.
  table.intents.clear();
  table.point(table.at("r0.s20", 900'000));
  table.press(0, true);
  table.press(0, false);
  EXPECT_EQ(table.argument_of("select"), "");
}

TEST(Plot, a_drag_selects_the_times_and_rows_between_both_ends) {
  for (const bool backwards : {false, true}) {
    Table table(small_run());
    ImVec2 from = table.at("r0.s7", 200'000), to = table.at("r0.s20", 700'000);
    if (backwards) std::swap(from, to);
    table.drag(0, from, to);
    ASSERT_TRUE(table.state.area.has_value());
    const double pixel = table.state.view.per_pixel();
    EXPECT_NEAR(static_cast<double>(table.state.area->window.start), 200'000, 2 * pixel);
    EXPECT_NEAR(static_cast<double>(table.state.area->window.end), 700'000, 2 * pixel);
    EXPECT_EQ(table.state.area->first_row, "r0.s7");
    EXPECT_EQ(table.state.area->last_row, "r0.s20");
    EXPECT_EQ(table.argument_of("area.done"), "");
    EXPECT_EQ(table.argument_of("select"), "there is no select");
  }
}

TEST(Plot, a_drag_that_ends_in_the_air_between_two_ranks_takes_no_row_below_it) {
  Table table(small_run());
  const ui::Spot* below = table.screen.spot("r1");
  ASSERT_NE(below, nullptr);
  table.drag(0, table.at("r0.s7", 200'000), {table.at("r0.s7", 700'000).x, below->from.y - 2});
  ASSERT_TRUE(table.state.area.has_value());
  EXPECT_EQ(table.state.area->first_row, "r0.s7");
  EXPECT_EQ(table.state.area->last_row, "r0.s20");
}

TEST(Plot, the_middle_button_asks_for_its_area_in_full_width) {
  Table table(small_run());
  table.drag(2, table.at("r0.s7", 200'000), table.at("r0.s7", 700'000));
  EXPECT_EQ(table.argument_of("view.zoom_area"), "");
}

TEST(Plot, pressing_the_minimap_goes_there) {
  Table table(small_run());
  show(table.state.view, {0, 10'000}, table.scene->whole(), 0);
  table.frame();
  const ui::Spot minimap = *table.screen.spot("minimap");
  table.point({minimap.from.x + (minimap.to.x - minimap.from.x) * 0.75f, (minimap.from.y + minimap.to.y) / 2});
  table.press(0, true);
  table.press(0, false);
  EXPECT_NEAR((table.state.view.start + table.state.view.end) / 2, 750'000, 5000);
  EXPECT_NEAR(table.state.view.end - table.state.view.start, 10'000, 1);
}

TEST(Plot, in_any_size_down_to_none_it_draws_what_there_is_room_for) {
  const auto scene = small_run();
  ui::Screen screen(1200, 800);
  for (float width = 0; width < 400; width += 4) {
    for (const float height : {0.0f, 60.0f, 64.0f, 90.0f, 300.0f}) {
      PlotState state;
      show(state.view, scene->whole(), scene->whole());
      state.area = Area{{200'000, 700'000}, "r0", "r1"};
      state.ranges.push_back({{100, 200'000}, "a kept range"});
      screen.frame([&] { draw_plot(*scene, state, {width, height}); });
    }
  }
  EXPECT_NE(screen.spot("timeline"), nullptr);
}

bool is_written(const std::string& words) { return std::find(ui::words().begin(), ui::words().end(), words) != ui::words().end(); }

TEST(Plot, a_time_on_the_ruler_is_written_whole_or_not_at_all) {
  Table table(small_run());
  EXPECT_TRUE(is_written("0.8 ms") || is_written("800 µs"));
  // The tick of 800 us comes ever nearer to the right edge, and is still in view at the last.
  float room_of_last = 1e9f;
  bool was_left_out = false;
  for (double end = 900'000; end > 800'100; end -= 500) {
    table.state.view.start = end - 900'000;
    table.state.view.end = end;
    table.frame();
    const float room = table.state.view.width - table.state.view.x_of(800'000);
    const bool written = is_written("0.8 ms") || is_written("800 µs");
    if (written) room_of_last = std::min(room_of_last, room);
    was_left_out |= !written;
  }
  EXPECT_TRUE(was_left_out);
  EXPECT_GE(room_of_last, ui::measure().width("800 µs", page::FontKind::small));
}

TEST(Plot, remarks_stand_above_their_row_and_move_no_span_out_of_it) {
  Table table(small_run());
  const float before = table.screen.spot("r0.s20")->from.y;
  table.state.annotations.push_back({"r0.s20", 990'000, "a long remark near the right edge of the run"});
  table.frame();
  const ui::Spot row = *table.screen.spot("r0.s20");
  EXPECT_NEAR(row.from.y, before + remark_height(), 0.5f);
  // The row is where its name stands, and the air above it is no row.
  table.point(table.at("r0.s20", 450'000));
  EXPECT_TRUE(table.state.hovered.valid());
  table.point({table.at("r0.s20", 450'000).x, row.from.y - remark_height() / 2});
  EXPECT_FALSE(table.state.hovered.valid());
}

TEST(Plot, a_view_kept_from_another_run_is_brought_back_to_this_one) {
  const auto scene = small_run();
  ui::Screen screen;
  PlotState state;
  state.view = {1.7e18, 1.7e18 + 1e9, 1};
  screen.frame([&] { draw_plot(*scene, state, ImGui::GetContentRegionAvail()); });
  EXPECT_LE(state.view.start, 1'000'000);
  EXPECT_GE(state.view.end, 0);
}

// Times of old traces count from 1970: a nanosecond is less than a double can tell there.
TEST(Plot, of_a_trace_that_counts_from_1970_zooms_in_as_far_as_times_can_be_told_apart) {
  Sketch sketch(1);
  const base::Nanoseconds zero = 1'732'000'000'000'000'000;
  for (int i = 0; i < 1000; ++i) sketch.compute(0, zero + i * 10'000, zero + i * 10'000 + 7000);
  Table table(scene::scene_of(sketch.done()));
  table.point(table.at("r0.s7", zero + 5'003'000));
  const double time = table.time_under_pointer();
  for (int i = 0; i < 80; ++i) {
    ImGui::GetIO().MouseWheel = 1;
    table.frame();
  }
  EXPECT_LT(table.state.view.end - table.state.view.start, 1e6);
  EXPECT_NEAR(table.time_under_pointer(), time, 4 * table.state.view.per_pixel());
}

// --- What a frame costs ---------------------------------------------------------------------------
struct Cost {
  int vertices = 0, items = 0;
};
Cost cost_of(int spans, bool everything) {
  Sketch sketch(1);
  for (int i = 0; i < spans; ++i) {
    sketch.compute(0, i * 1000, i * 1000 + 600);
    if (i % 10 == 0) sketch.collective(0, i * 1000 + 600, i * 1000 + 900, i);
    if (i % 100 == 0) sketch.builder.add_step({0, i / 100, i * 1000, (i + 100) * 1000, 0, 0});
  }
  Table table(scene::scene_of(sketch.done()));
  std::vector<SpanRef> all;
  for (std::uint32_t track = 0; track < table.scene->timeline().tracks.size(); ++track) {
    for (std::uint32_t i = 0; i < table.scene->timeline().tracks[track].size(); ++i) all.push_back({track, i});
  }
  if (everything) {
    table.state.marked = all;
    table.state.show_critical = table.state.show_idle_causes = true;
    table.state.selected = {0, 0};
  }
  table.frame();
  return {ImGui::GetDrawData()->TotalVtxCount, table.state.items};
}

TEST(Plot, of_a_hundred_times_as_many_spans_draws_no_more_than_fills_the_screen) {
  for (const bool everything : {false, true}) {
    const Cost some = cost_of(4000, everything), many = cost_of(400'000, everything);
    EXPECT_LE(many.items, 5000);
    EXPECT_LT(many.vertices, some.vertices * 3 / 2 + 2000) << (everything ? "with marks, path and reasons" : "spans alone");
  }
}

TEST(Plot, what_is_found_is_marked_on_its_own_row_however_much_is_found_on_another) {
  Sketch sketch(1);
  for (int i = 0; i < 50'000; ++i) sketch.compute(0, i * 100, i * 100 + 90);
  sketch.collective(0, 2'500'000, 2'500'050, 0);
  Table table(scene::scene_of(sketch.done()));
  const timeline::Timeline& timeline = table.scene->timeline();
  std::vector<SpanRef> found;
  std::uint32_t gather = 0;
  for (std::uint32_t track = 0; track < timeline.tracks.size(); ++track) {
    if (timeline.tracks[track].id == 20) gather = track;
    for (std::uint32_t i = 0; i < timeline.tracks[track].size(); ++i) found.push_back({track, i});
  }
  table.state.marked = found;
  EXPECT_EQ(table.state.marked.size(), 50'001U);
  EXPECT_EQ(table.state.marked.on(static_cast<std::int32_t>(gather)), (std::vector<std::uint32_t>{0}));
  EXPECT_TRUE(table.state.marked.on(-1).empty());
  table.state.marked.clear();
  EXPECT_TRUE(table.state.marked.empty());
  EXPECT_TRUE(table.state.marked.on(0).empty());
}

}  // namespace
}  // namespace shardbook::lanes
