// Is the row under the hand the row that is drawn there?
#include "viewer/lanes/placing.hpp"

#include <gtest/gtest.h>

#include "tests/viewer_ui/screen.hpp"
#include "viewer/lanes/area.hpp"

namespace shardbook::lanes {
namespace {

using scene::Row;
using scene::RowKind;

Row row_of(RowKind kind, int depth = 1) {
  Row row;
  row.kind = kind;
  row.depth = depth;
  return row;
}

const std::vector<Row> every_kind{row_of(RowKind::rank),  row_of(RowKind::exposed), row_of(RowKind::idle),    row_of(RowKind::critical),
                                  row_of(RowKind::stream), row_of(RowKind::marks),  row_of(RowKind::host, 4), row_of(RowKind::memory),
                                  row_of(RowKind::rank),  row_of(RowKind::stream)};

TEST(Placing, rows_follow_each_other_and_each_is_found_at_all_of_its_heights) {
  for (const float scale : {1.0f, 1.5f, 2.0f}) {
    ui::Screen screen(800, 600, scale);
    const std::vector<Placed> placed = place_rows(every_kind);
    ASSERT_EQ(placed.size(), every_kind.size());
    EXPECT_EQ(placed.front().top, 0);
    EXPECT_EQ(whole_height(placed), placed.back().bottom());
    for (std::size_t i = 0; i < placed.size(); ++i) {
      EXPECT_GE(placed[i].height, 14 * scale);
      if (i > 0) {
        EXPECT_GE(placed[i].top, placed[i - 1].bottom());
      }
      for (const float share : {0.0f, 0.5f, 0.999f}) {
        const float y = placed[i].top + share * placed[i].height;
        EXPECT_EQ(row_at(placed, y), static_cast<int>(i));
        EXPECT_EQ(nearest_row(placed, y), i);
      }
    }
    EXPECT_EQ(row_at(placed, -1), -1);
    EXPECT_EQ(row_at(placed, whole_height(placed)), -1);
    EXPECT_EQ(nearest_row(placed, -1e6f), 0U);
    EXPECT_EQ(nearest_row(placed, 1e6f), placed.size() - 1);
  }
}

TEST(Placing, the_air_above_a_rank_is_no_row_and_a_drag_into_it_reaches_the_row_above) {
  ui::Screen screen;
  const std::vector<Placed> placed = place_rows(every_kind);
  const float air = (placed[7].bottom() + placed[8].top) / 2;
  ASSERT_LT(placed[7].bottom(), placed[8].top);
  EXPECT_EQ(row_at(placed, air), -1);
  EXPECT_EQ(nearest_row(placed, air), 7U);
}

TEST(Placing, above_a_row_with_remarks_is_a_line_for_them) {
  ui::Screen screen;
  std::vector<Row> rows = every_kind;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].name = "row " + std::to_string(i);
  const std::vector<Placed> plain = place_rows(rows), remarked = place_rows(rows, {"row 4"});
  EXPECT_EQ(remarked[3].bottom(), plain[3].bottom());
  EXPECT_EQ(remarked[4].top, plain[4].top + remark_height());
  EXPECT_EQ(remarked[4].height, plain[4].height);
  EXPECT_EQ(whole_height(remarked), whole_height(plain) + remark_height());
}

TEST(Placing, labels_stay_in_the_whole_and_off_each_other) {
  const auto placed = [](const std::vector<Label>& wanted) {
    const std::vector<Label> labels = place_labels(wanted, 100);
    EXPECT_EQ(labels.size(), wanted.size());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      EXPECT_GE(labels[i].x, i > 0 ? labels[i - 1].x + labels[i - 1].width : 0);
      EXPECT_GE(labels[i].width, 0);
      EXPECT_LE(labels[i].width, wanted[i].width);
      EXPECT_LE(labels[i].x + labels[i].width, 100);
    }
    return labels;
  };
  // At its own place where there is room, further left at the edge, cut where the next one begins.
  EXPECT_EQ(placed({{10, 30}})[0].x, 10);
  EXPECT_EQ(placed({{90, 30}})[0].x, 70);
  EXPECT_EQ(placed({{90, 30}})[0].width, 30);
  EXPECT_EQ(placed({{50, 300}})[0].width, 100);
  EXPECT_EQ(placed({{10, 30}, {25, 30}})[0].width, 15);
  placed({{10, 30}, {90, 30}, {95, 30}, {99, 1}});
  placed({{0, 10}, {0, 10}, {100, 40}, {100, 40}});
}

TEST(Placing, of_nested_calls_each_depth_has_its_part_of_the_row) {
  ui::Screen screen;
  for (int depth = 1; depth <= 16; ++depth) {
    const Row row = row_of(RowKind::host, depth);
    const RowRect rect = rect_of(place_rows({row}).front(), 10, 100);
    EXPECT_GT(rect.top, 100);
    float last = rect.top;
    for (int level = 0; level < std::min(depth, 6); ++level) {
      const RowRect part = level_of(row, rect, level);
      EXPECT_GE(part.top, last - 0.01f);
      EXPECT_GT(part.height(), 5);
      EXPECT_LE(part.bottom, rect.bottom);
      EXPECT_EQ(level_at(row, rect, (part.top + part.bottom) / 2), level);
      last = part.bottom;
    }
    // What lies deeper is drawn, and found, on the last.
    EXPECT_EQ(level_of(row, rect, 40).top, level_of(row, rect, std::min(depth, 6) - 1).top);
    EXPECT_EQ(level_at(row, rect, 1e6f), std::min(depth, 6) - 1);
    EXPECT_EQ(level_at(row, rect, -1e6f), 0);
  }
}

TEST(Placing, a_row_is_brought_into_sight_with_the_least_move) {
  const Placed row{500, 30};
  EXPECT_EQ(scroll_to(row, 400, 300, 20), 400);             // it was in sight
  EXPECT_EQ(scroll_to(row, 0, 300, 20), 250);               // from below: its foot, and air
  EXPECT_EQ(scroll_to(row, 900, 300, 20), 480);             // from above: its top, and air
  EXPECT_EQ(scroll_to({5, 30}, 900, 300, 20), 0);           // never beyond the first row
  const float tall = scroll_to({500, 1000}, 0, 300, 20);    // higher than the pane: its top
  EXPECT_LE(tall, 500);
  EXPECT_GE(tall, 200);
}

TEST(Placing, a_row_that_was_brought_into_sight_has_whole_rows_above_it) {
  const std::vector<Placed> placed{{0, 30}, {34, 30}, {68, 20}, {88, 20}, {108, 90}};
  for (const Placed& row : placed) {
    for (float scroll = 0; scroll <= row.top; scroll += 1) {
      const float further = from_a_whole_row(placed, row, scroll);
      EXPECT_GE(further, scroll);
      EXPECT_LE(further, row.top) << "the row itself stays whole";
      for (const Placed& other : placed) EXPECT_FALSE(other.top < further && other.bottom() > further) << "cut at " << further;
      // No further than the end of the row that was cut.
      for (const Placed& other : placed) EXPECT_FALSE(other.top >= scroll && other.bottom() <= further) << scroll << " passed over a whole row";
    }
  }
}

TEST(Placing, the_handle_of_the_scrollbar_is_always_within_it_and_follows_the_hand) {
  for (const float whole : {301.0f, 500.0f, 4000.0f, 1e6f}) {
    const float pane = 300, least = 20;
    float last = -1;
    for (int i = 0; i <= 10; ++i) {
      const float scroll = (whole - pane) * static_cast<float>(i) / 10;
      const Handle handle = handle_of(scroll, whole, pane, least);
      EXPECT_GE(handle.from, -0.01f);
      EXPECT_LE(handle.from + handle.length, pane + 0.01f);
      EXPECT_GE(handle.length, least);
      EXPECT_GT(handle.from, last);
      last = handle.from;
      EXPECT_NEAR(scroll_of_handle(handle.from + handle.length / 2, whole, pane, least), scroll, (whole - pane) * 1e-4);
    }
    EXPECT_EQ(scroll_of_handle(-1000, whole, pane, least), 0);
    EXPECT_EQ(scroll_of_handle(1000, whole, pane, least), whole - pane);
  }
}

// --- Areas ----------------------------------------------------------------------------------------
std::vector<Row> named(const std::vector<std::string>& names) {
  std::vector<Row> rows;
  for (const std::string& name : names) {
    rows.emplace_back();
    rows.back().name = name;
  }
  return rows;
}
std::vector<std::string> names_of(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}
using Names = std::vector<std::string>;

TEST(Areas, cover_the_rows_between_two_names_in_the_order_of_the_picture) {
  const std::vector<Row> rows = named({"r0", "r0.s7", "r0.s20", "r1", "r1.s7"});
  EXPECT_EQ(names_of(rows_of_area(rows, {{0, 9}, "r0.s7", "r1"})), (Names{"r0.s7", "r0.s20", "r1"}));
  EXPECT_EQ(names_of(rows_of_area(rows, {{0, 9}, "r1", "r0.s7"})), (Names{"r0.s7", "r0.s20", "r1"}));
  EXPECT_EQ(names_of(rows_of_area(rows, {{0, 9}, "r0.s20", "r0.s20"})), (Names{"r0.s20"}));
  EXPECT_EQ(rows_of_area(rows, {{0, 9}, "", ""}).size(), 5U);
}

TEST(Areas, of_a_pinned_row_mean_the_pair_that_lies_closest) {
  const std::vector<Row> rows = named({"r0.s7", "r1.s7", "r0", "r0.s7", "r0.s20", "r1", "r1.s7"});
  EXPECT_EQ(names_of(rows_of_area(rows, {{0, 9}, "r0.s7", "r0.s20"})), (Names{"r0.s7", "r0.s20"}));
  EXPECT_EQ(names_of(rows_of_area(rows, {{0, 9}, "r0.s7", "r1.s7"})), (Names{"r0.s7", "r1.s7"}));
  EXPECT_EQ(places_of_area(rows, {{0, 9}, "r0.s7", "r0.s7"}), (std::pair<std::size_t, std::size_t>{3, 3}));
}

TEST(Areas, keep_the_row_that_is_left_when_the_other_is_closed) {
  const std::vector<Row> rows = named({"r0", "r1"});
  EXPECT_EQ(names_of(rows_of_area(rows, {{0, 9}, "r0", "r0.s20"})), (Names{"r0"}));
  EXPECT_EQ(names_of(rows_of_area(rows, {{0, 9}, "r0.s7", "r1"})), (Names{"r1"}));
  EXPECT_TRUE(rows_of_area(rows, {{0, 9}, "r7", "r8"}).empty());
  EXPECT_TRUE(rows_of_area({}, {{0, 9}, "", ""}).empty());
}

TEST(Placing, the_first_row_in_sight_is_whole_and_the_end_is_reached) {
  ui::Screen screen(800, 600, 1);
  const std::vector<Placed> placed = place_rows(every_kind);
  const float whole = whole_height(placed), pane = 120;
  EXPECT_EQ(whole_rows_from(placed, 0, pane), 0);
  bool last_is_whole = false;
  for (float scroll = 0; scroll <= whole - pane; scroll += 0.5f) {
    const float from = whole_rows_from(placed, scroll, pane);
    // No row begins above and ends below the upper edge, but for one higher than half of the pane.
    for (const Placed& row : placed) {
      if (row.height <= pane / 2) {
        EXPECT_FALSE(row.top < from - 0.5f && row.bottom() > from + 0.5f) << scroll;
      }
    }
    EXPECT_LT(std::abs(from - scroll), pane / 2 + 8);
    last_is_whole |= placed.back().bottom() <= from + pane + 0.5f;
  }
  EXPECT_TRUE(last_is_whole || placed.back().bottom() <= whole_rows_from(placed, whole - pane, pane) + pane + 0.5f);
}

}  // namespace
}  // namespace shardbook::lanes
