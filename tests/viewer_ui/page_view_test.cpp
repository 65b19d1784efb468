// Can a page be read, selected, searched, and left by its links, with mouse and with keys alone?
#include "viewer/ui/page_view.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/viewer_ui/screen.hpp"
#include "viewer/page/markdown.hpp"

namespace shardbook::ui {
namespace {

class Pages : public testing::Test {
 protected:
  Screen screen{700, 500};
  PageView page;
  std::string clicked;

  void show(const std::string& markdown) {
    page.set(page::parse_markdown(markdown, "test.md", {}), "");
    frame();
    frame();
  }
  void frame() {
    screen.frame([&] {
      const std::string target = page.draw();
      if (!target.empty()) clicked = target;
    });
  }
  void tap(const char* key) {
    screen.hold(parse_chord(key), true);
    frame();
    screen.hold(parse_chord(key), false);
    frame();
  }
  void mouse(ImVec2 at, bool down) {
    ImGui::GetIO().MousePos = at;
    ImGui::GetIO().MouseDown[0] = down;
    frame();
  }
  void focus() {
    focus_pane("pane");
    frame();
    frame();
  }
  std::string seen() const {
    std::string all;
    for (const std::string& one : words()) all += one + "\n";
    return all;
  }
};

std::string long_page() {
  std::string text = "# Begin\n\n";
  for (int i = 0; i < 2000; ++i) text += "Paragraph number " + std::to_string(i) + " says little.\n\n";
  return text + "## The end\n\nlast words\n";
}

TEST_F(Pages, only_what_is_in_sight_is_drawn) {
  show(long_page());
  EXPECT_NE(seen().find("Paragraph number 3 says"), std::string::npos);
  EXPECT_EQ(seen().find("Paragraph number 300 says"), std::string::npos);
  EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, 20'000);
}

TEST_F(Pages, an_anchor_is_gone_to_and_known_as_the_top) {
  show(long_page());
  EXPECT_EQ(page.top_anchor(), "begin");
  page.scroll_to("the-end");
  frame();
  frame();
  frame();
  EXPECT_NE(seen().find("last words"), std::string::npos);
  EXPECT_EQ(page.top_anchor(), "begin") << "the last heading cannot come to the top; what is there is still the first part";
}

TEST_F(Pages, a_link_gives_its_target_by_a_click) {
  show("See [the words](words.md#exposed) for more.");
  ASSERT_NE(screen.spot("the words"), nullptr);
  const Spot spot = *screen.spot("the words");
  const ImVec2 middle((spot.from.x + spot.to.x) / 2, (spot.from.y + spot.to.y) / 2);
  mouse(middle, false);
  mouse(middle, true);
  EXPECT_EQ(clicked, "");
  mouse(middle, false);
  EXPECT_EQ(clicked, "words.md#exposed");
}

TEST_F(Pages, links_are_reached_by_tab_and_followed_by_enter) {
  show("See [one](a.md) and [two](b.md).");
  focus();
  tap("Tab");
  tap("Tab");
  EXPECT_EQ(clicked, "");
  tap("Enter");
  EXPECT_EQ(clicked, "b.md");
  tap("Shift+Tab");
  tap("Enter");
  EXPECT_EQ(clicked, "a.md");
}

TEST_F(Pages, dragging_over_a_link_selects_and_does_not_follow) {
  show("Before [the words](words.md) after.");
  const Spot spot = *screen.spot("the words");
  const float y = (spot.from.y + spot.to.y) / 2;
  mouse({spot.from.x + 1, y}, false);
  mouse({spot.from.x + 1, y}, true);
  mouse({spot.to.x - 1, y}, true);
  mouse({spot.to.x - 1, y}, false);
  EXPECT_EQ(clicked, "");
  EXPECT_EQ(page.selected_text(), "the words");
  tap("Ctrl+C");
  EXPECT_STREQ(ImGui::GetClipboardText(), "the words");
}

TEST_F(Pages, all_of_it_is_selected_and_copied) {
  show("# Title\n\nfirst **bold** words\n\n- item\n");
  focus();
  tap("Ctrl+A");
  tap("Ctrl+C");
  const std::string copied = ImGui::GetClipboardText();
  for (const char* part : {"Title", "first bold words", "item"}) EXPECT_NE(copied.find(part), std::string::npos) << copied;
}

TEST_F(Pages, a_double_click_takes_a_word) {
  show("See [alpha beta_gamma](words.md), delta");   // a link, as its place is known
  const Spot spot = *screen.spot("alpha beta_gamma");
  const ImVec2 place(spot.to.x - 8, (spot.from.y + spot.to.y) / 2);
  for (bool down : {false, true, false, true, false}) mouse(place, down);
  EXPECT_EQ(page.selected_text(), "beta_gamma");
}

TEST_F(Pages, finding_counts_all_hits_and_goes_to_each) {
  show(long_page());
  page.find("number 17");
  EXPECT_EQ(page.found(), 1 + 10 + 100);
  page.find("number 1999 ");
  ASSERT_EQ(page.found(), 1);
  page.next_found(1);
  frame();
  frame();
  frame();
  EXPECT_NE(seen().find("Paragraph number 1999 says"), std::string::npos);
  page.find("");
  EXPECT_EQ(page.found(), 0);
  page.next_found(1);   // nothing to go to
}

TEST_F(Pages, a_narrower_page_keeps_its_place) {
  show(long_page());
  page.find("number 1000 ");
  page.next_found(1);
  frame();
  frame();
  frame();
  ASSERT_NE(seen().find("number 1000 says"), std::string::npos);
  ImGui::GetIO().DisplaySize.x = 330;
  for (int i = 0; i < 4; ++i) frame();
  EXPECT_NE(seen().find("number 1000 says"), std::string::npos);
}

TEST_F(Pages, keys_scroll_it) {
  show(long_page());
  focus();
  for (int i = 0; i < 3; ++i) tap("PageDown");
  frame();
  EXPECT_EQ(seen().find("Paragraph number 0 says"), std::string::npos);
  for (int i = 0; i < 4; ++i) tap("PageUp");
  frame();
  EXPECT_NE(seen().find("Paragraph number 0 says"), std::string::npos);
}

TEST_F(Pages, a_diagram_is_drawn_and_its_node_is_a_link) {
  show("```mermaid\nflowchart LR\n  A[gather] --> B[reduce]\n  click A \"lab:02\"\n```\n");
  EXPECT_NE(seen().find("gather"), std::string::npos);
  ASSERT_NE(screen.spot("lab:02"), nullptr);
  const Spot spot = *screen.spot("lab:02");
  mouse({(spot.from.x + spot.to.x) / 2, (spot.from.y + spot.to.y) / 2}, false);
  mouse({(spot.from.x + spot.to.x) / 2, (spot.from.y + spot.to.y) / 2}, true);
  EXPECT_EQ(clicked, "lab:02");
}

TEST_F(Pages, a_row_of_a_diagram_that_is_too_long_is_made_smaller_and_stays_a_row) {
  const std::string row = "flowchart LR\n  first[the first of them] --> b[a second one] --> c[a third one] --> last[the last of them]\n";
  const auto last = [&] {
    const Spot* spot = screen.spot("note:03");
    return spot != nullptr ? *spot : Spot{};
  };
  const std::string linked = row + "  click last \"note:03\"\n";
  show("```mermaid\n" + linked + "```\n");
  const Spot beside = last();
  EXPECT_GT(beside.from.x, 300) << "there is room for it";
  ImGui::GetIO().DisplaySize.x = 360;
  frame();
  frame();
  const Spot below = last();
  EXPECT_LT(below.from.x, below.to.x);
  EXPECT_LT(below.to.x, 360) << "not cut off";
  EXPECT_LT(below.to.x - below.from.x, beside.to.x - beside.from.x) << "smaller";
  EXPECT_LT(below.from.y, beside.from.y + 50) << "still a row";
  EXPECT_GT(below.from.x, 180) << "its last node is at the right";
}

TEST_F(Pages, a_diagram_that_is_not_understood_says_line_and_reason) {
  show("```mermaid\nflowchart LR\n  A -->\n```\n");
  EXPECT_NE(seen().find("line 2"), std::string::npos) << seen();
  EXPECT_NE(seen().find("expected"), std::string::npos) << seen();
}

TEST_F(Pages, everything_that_markdown_has_is_drawn_at_every_width) {
  const std::string all = "# A\n\n> [!WARNING]\n> careful\n\n| a | b |\n|:-|-:|\n| 1 | a very long cell of a table that is wider than it can be |\n\n"
                          "- [x] done\n- [ ] open\n\n1. one\n   - two\n\n```cpp\nint main() { return 0; } // a long line that goes on and on and on and on\n```\n\n"
                          "![picture](x.png)\n\n---\n\n$a_i^2 \\le \\frac{1}{2}$ ~~no~~\n";
  for (float width : {320.0F, 500.0F, 1400.0F}) {
    ImGui::GetIO().DisplaySize.x = width;
    show(all);
    EXPECT_NE(seen().find("careful"), std::string::npos);
  }
}

TEST_F(Pages, an_empty_page_is_no_trouble) {
  show("");
  focus();
  for (const char* key : {"Tab", "Enter", "Ctrl+A", "Ctrl+C", "Down"}) tap(key);
  EXPECT_EQ(page.selected_text(), "");
}

// --- Source ---------------------------------------------------------------------------------------
TEST(Code, shows_the_marked_line_with_its_number_and_only_what_is_in_sight) {
  Screen screen(700, 400);
  CodeView code;
  for (int i = 1; i <= 5000; ++i) code.text += "int line_" + std::to_string(i) + " = " + std::to_string(i) + ";\n";
  code.language = "cpp";
  code.first_line = 101;
  code.marked = 3100;     // line_3000
  code.scroll = true;
  const auto draw = [&] { draw_code(code, ImVec2(0, 0)); };
  for (int i = 0; i < 3; ++i) screen.frame(draw);
  const auto is_seen = [](const std::string& words_wanted) { return std::count(words().begin(), words().end(), words_wanted) > 0; };
  EXPECT_TRUE(is_seen("int line_3000 = 3000;"));
  EXPECT_FALSE(is_seen("int line_1 = 1;"));
  EXPECT_FALSE(code.scroll);
  EXPECT_LT(words().size(), 60U);
}

TEST(Code, lines_are_selected_by_dragging_and_copied) {
  Screen screen(700, 400);
  CodeView code;
  code.text = "one\n  two\nthree\nfour\n";
  const auto draw = [&] { draw_code(code, ImVec2(0, 0)); };
  screen.frame(draw);
  screen.frame(draw);
  const float top = screen.spot("pane")->from.y + 42, line = measure().line_height(page::FontKind::mono);
  const auto mouse = [&](float y, bool down) {
    ImGui::GetIO().MousePos = {200, y};
    ImGui::GetIO().MouseDown[0] = down;
    screen.frame(draw);
  };
  mouse(top + line * 1.5F, false);
  mouse(top + line * 1.5F, true);
  mouse(top + line * 2.5F, true);
  mouse(top + line * 2.5F, false);
  screen.hold(parse_chord("Ctrl+C"), true);
  screen.frame(draw);
  EXPECT_STREQ(ImGui::GetClipboardText(), "  two\nthree\n");
}

}  // namespace
}  // namespace shardbook::ui
