// Does each thing that can be clicked answer to its words, and to keys?
#include "viewer/ui/widgets.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/viewer_ui/screen.hpp"

namespace shardbook::ui {
namespace {

bool has_words(const std::string& wanted) { return std::count(words().begin(), words().end(), wanted) > 0; }

TEST(Widgets, a_button_is_known_by_its_words_and_pressed_once_a_click) {
  Screen screen;
  int pressed = 0;
  const auto draw = [&] { pressed += button("Open a run") ? 1 : 0; };
  screen.frame(draw);
  ASSERT_NE(screen.spot("Open a run"), nullptr);
  EXPECT_EQ(screen.spot("Open a run")->pane, "pane");
  ASSERT_TRUE(screen.click("Open a run", draw));
  EXPECT_EQ(pressed, 1);
}

TEST(Widgets, a_button_that_is_not_enabled_is_not_pressed) {
  Screen screen;
  bool pressed = false;
  const auto draw = [&] { pressed |= button("Zoom", "", false); };
  screen.frame(draw);
  screen.click("Zoom", draw);
  EXPECT_FALSE(pressed);
}

TEST(Widgets, two_of_the_same_words_are_two) {
  Screen screen;
  int first = 0, second = 0;
  const auto draw = [&] {
    first += small_button("Open") ? 1 : 0;
    second += small_button("Open") ? 1 : 0;
  };
  screen.frame(draw);
  screen.click("Open", draw);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);
}

TEST(Widgets, words_with_hashes_and_percent_signs_stay_as_they_are) {
  Screen screen;
  bool pressed = false;
  const auto draw = [&] { pressed |= row("run ##3 100 %s", false); };
  screen.frame(draw);
  EXPECT_TRUE(screen.click("run ##3 100 %s", draw));
  EXPECT_TRUE(pressed);
}

TEST(Widgets, a_line_of_words_has_the_colour_that_was_pushed) {
  Screen screen;
  ImU32 drawn = 0;
  screen.frame([&] {
    ImGui::PushStyleColor(ImGuiCol_Text, theme().bad);
    words_line("the run cannot be read");
    ImGui::PopStyleColor();
    drawn = ImGui::GetWindowDrawList()->VtxBuffer.back().col;
  });
  EXPECT_EQ(drawn, theme().bad);
}

TEST(Widgets, toggles_tabs_and_links_answer) {
  Screen screen;
  bool on = false, chosen = false, followed = false;
  const auto draw = [&] {
    toggle("Critical path", &on);
    chosen |= tab("Details", false);
    followed |= link("the note");
  };
  screen.frame(draw);
  screen.click("Critical path", draw);
  screen.click("Details", draw);
  screen.click("the note", draw);
  EXPECT_TRUE(on && chosen && followed);
}

TEST(Widgets, what_is_scrolled_away_has_an_empty_spot) {
  Screen screen;
  const auto draw = [&] {
    for (int i = 0; i < 100; ++i) row("row " + std::to_string(i), false);
  };
  screen.frame(draw);
  screen.frame(draw);
  ASSERT_NE(screen.spot("row 99"), nullptr);
  EXPECT_EQ(screen.spot("row 99")->from.x, screen.spot("row 99")->to.x);
  EXPECT_LT(screen.spot("row 0")->from.x, screen.spot("row 0")->to.x);
}

TEST(Widgets, rows_are_walked_with_arrows_and_pressed_with_space) {
  Screen screen;
  int pressed = -1;
  const auto draw = [&] {
    for (int i = 0; i < 5; ++i) {
      if (row("row " + std::to_string(i), false)) pressed = i;
    }
  };
  const auto tap = [&](const char* key) {
    screen.hold(parse_chord(key), true);
    screen.frame(draw);
    screen.hold(parse_chord(key), false);
    screen.frame(draw);
    screen.frame(draw);
  };
  focus_pane("pane");
  for (int i = 0; i < 4; ++i) screen.frame(draw);
  tap("Down");
  tap("Down");
  tap("Down");
  tap("Space");
  EXPECT_GT(pressed, 0);
}

TEST(Widgets, a_field_takes_words_and_says_when_enter_comes) {
  Screen screen;
  std::string text;
  bool entered = false;
  const auto draw = [&] { entered |= text_field("Find spans", &text, 200); };
  screen.frame(draw);
  screen.click("Find spans", draw);
  ImGui::GetIO().AddInputCharactersUTF8("all-gather ñ");
  screen.frame(draw);
  EXPECT_EQ(text, "all-gather ñ");
  EXPECT_FALSE(entered);
  screen.hold(parse_chord("Enter"), true);
  screen.frame(draw);
  EXPECT_TRUE(entered);
}

TEST(Widgets, a_fact_is_copied_by_a_click) {
  Screen screen;
  const auto draw = [&] { fact("duration", "1.234 ms", 100); };
  screen.frame(draw);
  EXPECT_TRUE(has_words("1.234 ms"));
  screen.click("duration", draw);
  EXPECT_STREQ(ImGui::GetClipboardText(), "1.234 ms");
}

TEST(Widgets, a_divider_moves_with_the_mouse_and_keeps_both_sides) {
  Screen screen;
  float left = 200;
  const auto draw = [&] {
    ImGui::SetCursorPosX(left);
    splitter("between", true, &left, 100, 150, 700);
  };
  screen.frame(draw);
  const Spot* spot = screen.spot("between");
  ASSERT_NE(spot, nullptr);
  ImGuiIO& io = ImGui::GetIO();
  io.MousePos = {(spot->from.x + spot->to.x) / 2, 300};
  screen.frame(draw);
  io.MouseDown[0] = true;
  screen.frame(draw);
  io.MousePos.x += 80;
  screen.frame(draw);
  EXPECT_NEAR(left, 280, 1);
  io.MousePos.x += 5000;
  screen.frame(draw);
  EXPECT_LE(left, 550);
  io.MousePos.x = 0;
  screen.frame(draw);
  EXPECT_EQ(left, 100);
}

TEST(Tables, are_sorted_by_value_with_unit_and_say_the_row_that_was_given) {
  Screen screen;
  const std::vector<Column> columns = {{"op", false, 0}, {"time", true, 120}};
  const std::vector<std::vector<std::string>> cells = {{"gather", "12 µs"}, {"gemm", "1.5 ms"}, {"norm", "900 ns"}, {"none", "—"}};
  int clicked = -1;
  const auto draw = [&] {
    const int row = table("ops", columns, cells, -1, 300);
    if (row >= 0) clicked = row;
  };
  screen.frame(draw);
  screen.frame(draw);
  screen.click("time", draw);   // numbers: the greatest first
  screen.frame(draw);
  const auto y = [&](const char* label) { return screen.spot(label)->from.y; };
  EXPECT_LT(y("gemm"), y("gather"));
  EXPECT_LT(y("gather"), y("norm"));
  EXPECT_LT(y("norm"), y("none"));
  screen.click("gather", draw);
  EXPECT_EQ(clicked, 0);
}

TEST(Tables, of_a_hundred_thousand_rows_draw_only_those_in_sight) {
  Screen screen;
  const std::vector<std::vector<std::string>> cells(100'000, {"op", "1 ms"});
  const auto draw = [&] { table("ops", {{"op", false, 0}, {"time", true, 120}}, cells, -1, 300); };
  screen.frame(draw);
  screen.frame(draw);
  EXPECT_LT(spots().size(), 60U);
}

// A name and six numbers, as wide as those of an area.
const std::vector<Column> op_columns = {{"what ran", false, 0}, {"count", true, 60}, {"inside", true, 90}, {"least", true, 76},
                                        {"median", true, 76}, {"p95", true, 76}, {"most", true, 76}};
const std::vector<std::vector<std::string>> op_cells = {{"causal_softmax_forward attention", "2", "236 µs", "118 µs", "118 µs", "118 µs", "118 µs"}};

TEST(Tables, in_a_narrow_pane_are_scrolled_sideways_and_cut_no_name) {
  Screen screen(520, 400);
  const auto draw = [&] { table("ops", op_columns, op_cells, -1, 200); };
  screen.frame(draw);
  screen.frame(draw);
  const Spot* name = screen.spot("what ran");
  ASSERT_NE(name, nullptr);
  EXPECT_GE(name->to.x - name->from.x, measure().width(op_cells[0][0], page::FontKind::body));
  const Spot* last = screen.spot("most");
  ASSERT_NE(last, nullptr);
  EXPECT_GE(last->from.x, last->to.x) << "out of sight until the table is scrolled";
}

TEST(Tables, in_a_wide_pane_keep_numbers_beside_the_name_of_their_row) {
  Screen screen(2560, 400);
  const auto draw = [&] { table("ops", op_columns, op_cells, -1, 200); };
  screen.frame(draw);
  screen.frame(draw);
  const Spot *name = screen.spot("what ran"), *last = screen.spot("most");
  ASSERT_TRUE(name != nullptr && last != nullptr);
  EXPECT_LT(name->to.x - name->from.x, 1.5F * measure().width(op_cells[0][0], page::FontKind::body));
  EXPECT_LT(last->to.x, 1000);
}

TEST(Panes, are_told_in_order_and_can_be_given_the_keys) {
  Screen screen;
  const auto draw = [&] {
    begin_pane("notes", ImVec2(0, 100));
    end_pane();
    begin_pane("trace", ImVec2(0, 100));
    end_pane();
  };
  screen.frame(draw);
  EXPECT_EQ(panes(), (std::vector<std::string>{"pane", "notes", "trace"}));
  focus_pane("trace");
  screen.frame(draw);
  screen.frame(draw);
  EXPECT_EQ(focused_pane(), "trace");
}

}  // namespace
}  // namespace shardbook::ui
