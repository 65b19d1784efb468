// Does each word of a page stand where it can be read, and can it be found again?
#include <gtest/gtest.h>

#include "page_support.hpp"
#include "viewer/page/flow.hpp"

namespace shardbook::page {
namespace {

using test::measure;
using Deco = Decoration::Kind;

struct Page {
  Document document;
  FlowLayout layout;
};

Page lay_out(const std::string& text, float width = 400) {
  Page page;
  page.document = parse_markdown(text, "test.md", {{"a.b", "A title.", "engine/a/b.cpp", 7, {"int x = 1;"}}});
  FlowOptions options;
  options.width = width;
  options.size_of = [](const Block& block, float) { return block.kind == Block::Kind::diagram ? std::pair{900.0f, 300.0f} : std::pair{0.0f, 0.0f}; };
  page.layout = flow(page.document, options, measure);
  return page;
}

const TextBox& box_with(const FlowLayout& layout, std::string_view words) {
  for (const TextBox& box : layout.boxes) {
    if (layout.text_of(box).find(words) != std::string_view::npos) return box;
  }
  ADD_FAILURE() << "no box holds " << words;
  static const TextBox none;
  return none;
}

TEST(Flow, WordsBreakIntoLinesThatFit) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "word" + std::to_string(i) + " ";
  const Page page = lay_out(text, 300);
  EXPECT_GT(page.layout.boxes.size(), 20u);
  for (const TextBox& box : page.layout.boxes) EXPECT_LE(box.x + box.w, 300.5f) << page.layout.text_of(box);
  EXPECT_NEAR(page.layout.height, page.layout.boxes.back().y + page.layout.boxes.back().h, 1);
}

TEST(Flow, AWordThatIsTooLongIsBroken) {
  const Page page = lay_out("short " + std::string(500, 'x') + " **" + std::string(100, 'y') + "**z", 200);
  std::string all;
  for (const std::uint32_t index : page.layout.by_offset) {
    const TextBox& box = page.layout.boxes[index];
    EXPECT_LE(box.x + box.w, 200.5f);
    all += page.layout.text_of(box);
  }
  EXPECT_EQ(std::count(all.begin(), all.end(), 'x'), 500);
  EXPECT_EQ(std::count(all.begin(), all.end(), 'y'), 100);
}

// Sums of widths are rounded differently at each size.
TEST(Flow, NoWordOfATableIsBrokenAtAnySizeOrWidth) {
  const std::string text = "| what | all-reduces | bytes of each |\n|---|---|---|\n| all-reduce of the input gradient | four of a layer, two of them in backward | 33554432 |\n";
  for (float size = 9; size < 48; size += 0.37f) {
    const PlainMeasure sized(size);
    const Document document = parse_markdown(text, "test.md", {});
    for (float ems = 6; ems < 60; ems += 1.7f) {
      FlowOptions options;
      options.width = ems * size;
      const FlowLayout layout = flow(document, options, sized);
      for (const char* word : {"what", "all-reduces", "all-reduce", "gradient", "33554432", "backward"}) {
        const bool whole = std::any_of(layout.boxes.begin(), layout.boxes.end(), [&](const TextBox& box) { return layout.text_of(box).find(word) != std::string_view::npos; });
        ASSERT_TRUE(whole) << word << " is broken at size " << size << " in " << ems << " ems";
      }
    }
  }
}

TEST(Flow, AColumnOfFewWordsKeepsThemOnOneLineBesideAColumnOfMany) {
  std::string many;
  for (int i = 0; i < 60; ++i) many += "words and ";
  const Page page = lay_out("| | |\n|---|---|\n| You end with | " + many + "|\n", 600);
  EXPECT_EQ(page.layout.text_of(box_with(page.layout, "You")), "You end with");
  for (const TextBox& box : page.layout.boxes) EXPECT_LE(box.x + box.w, 600.5f);
}

TEST(Flow, WordsThatChangeStyleInTheMiddleStayTogether) {
  // The line has room for "aaaa" but not for "aaaabbbb", so both go to the next.
  const Page page = lay_out("xxxxxxxxxxxxxxxxxxxx **aaaa**bbbb", 20 * 16 * 0.55f + 16 * 0.55f * 6);
  EXPECT_EQ(box_with(page.layout, "aaaa").y, box_with(page.layout, "bbbb").y);
  EXPECT_GT(box_with(page.layout, "aaaa").y, box_with(page.layout, "xxxx").y);
}

TEST(Flow, BoxesAreSortedAndVisibleOnesAreFoundBySearch) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "# Heading " + std::to_string(i) + "\n\nSome words in a paragraph.\n\n- item\n\n| a | b |\n|---|---|\n| c $x^2$ | d |\n\n";
  const Page page = lay_out(text);
  const FlowLayout& layout = page.layout;
  EXPECT_TRUE(std::is_sorted(layout.boxes.begin(), layout.boxes.end(), [](const TextBox& a, const TextBox& b) { return a.y < b.y; }));
  const float top = layout.height / 2, bottom = top + 200;
  const auto [first, last] = layout.visible(top, bottom);
  EXPECT_LT(last - first, 60u);
  for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
    const TextBox& box = layout.boxes[i];
    const bool shows = box.y < bottom && box.y + box.h > top;
    EXPECT_TRUE(!shows || (i >= first && i < last));
  }
  const auto [from, to] = layout.visible_decorations(top, bottom);
  for (std::size_t i = 0; i < layout.decorations.size(); ++i) {
    const Decoration& one = layout.decorations[i];
    const bool shows = one.y < bottom && one.y + one.h > top;
    EXPECT_TRUE(!shows || (i >= from && i < to));
  }
}

TEST(Flow, TextIsCopiedAsItReads) {
  const Page page = lay_out("# Title\n\nFirst *line*\nand more.\n\n1. one\n2. two\n\n- [x] done\n\n| a | b |\n|---|---|\n| c | d |\n\n```cpp\nint x;\n  y\n```\n");
  EXPECT_EQ(page.layout.text, "Title\nFirst line and more.\n1. one\n2. two\n[x] done\na\tb\nc\td\nint x;\n  y\n");
  const auto found = page.layout.find("LINE AND");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(page.layout.text_between(found[0].second, found[0].first), "line and");
}

TEST(Flow, ASelectionIsCoveredByPiecesOfBoxes) {
  const Page page = lay_out("alpha beta **gamma** delta");
  const auto found = page.layout.find("ta gamma de");
  ASSERT_EQ(found.size(), 1u);
  const std::vector<TextBox> pieces = page.layout.boxes_of(found[0].first, found[0].second, measure);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(page.layout.text_of(pieces[0]), "ta ");
  EXPECT_EQ(page.layout.text_of(pieces[1]), "gamma");
  EXPECT_EQ(page.layout.text_of(pieces[2]), " de");
  EXPECT_NEAR(pieces[0].x, measure.width("alpha be", FontKind::body), 0.1f);
}

TEST(Flow, FindGoesOverTheEndsOfLines) {
  const Page page = lay_out("one two three four five six seven eight nine ten", 150);
  ASSERT_EQ(page.layout.find("three four five six").size(), 1u);
  const auto found = page.layout.find("three four five six");
  EXPECT_GT(page.layout.boxes_of(found[0].first, found[0].second, measure).size(), 1u);
  EXPECT_TRUE(page.layout.find("").empty());
  EXPECT_TRUE(page.layout.find("eleven").empty());
}

TEST(Flow, APointIsAnOffsetAndBack) {
  const Page page = lay_out("# Title\n\nalpha beta gamma delta epsilon zeta eta theta iota kappa\n", 200);
  for (const TextBox& box : page.layout.boxes) {
    const std::string_view words = page.layout.text_of(box);
    for (std::size_t i = 0; i <= words.size(); ++i) {
      const float x = box.x + measure.width(words.substr(0, i), box.font);
      EXPECT_EQ(page.layout.offset_at(x, box.y + box.h / 2, measure), box.begin + i);
    }
  }
  EXPECT_EQ(page.layout.offset_at(-100, -100, measure), 0u);
  EXPECT_GE(page.layout.offset_at(1000, 100000, measure), page.layout.text.size() - 1);
}

TEST(Flow, LinksAreUnderThePointer) {
  const Page page = lay_out("go to [the map](map.md#walk) now");
  const TextBox& box = box_with(page.layout, "the map");
  const int hit = page.layout.box_at(box.x + 3, box.y + 3);
  ASSERT_GE(hit, 0);
  const int link = page.layout.boxes[static_cast<std::size_t>(hit)].link;
  ASSERT_GE(link, 0);
  EXPECT_EQ(page.layout.links[static_cast<std::size_t>(link)], "map.md#walk");
  EXPECT_EQ(page.layout.box_at(box.x + 3, box.y + 500), -1);
}

TEST(Flow, WideCodeScrollsInARegionOfItsOwn) {
  const Page page = lay_out("```cpp\n" + std::string(300, 'x') + "\n\ty\n```\n", 300);
  ASSERT_EQ(page.layout.regions.size(), 1u);
  EXPECT_EQ(page.layout.regions[0].w, 300);
  EXPECT_GT(page.layout.regions[0].content_width, 300 * measure.width("x", FontKind::mono));
  for (const TextBox& box : page.layout.boxes) EXPECT_EQ(box.region, 0);
  EXPECT_EQ(page.layout.text, std::string(300, 'x') + "\n    y\n");
}

TEST(Flow, CodeIsColoured) {
  const Page page = lay_out("```cpp\nreturn 42;  // why\n```\n");
  EXPECT_EQ(box_with(page.layout, "return").token, TokenKind::keyword);
  EXPECT_EQ(box_with(page.layout, "42").token, TokenKind::number);
  EXPECT_EQ(box_with(page.layout, "why").token, TokenKind::comment);
}

TEST(Flow, TablesShareTheRoomAndBreakTheirCells) {
  const Page narrow = lay_out("| short | long |\n|---|---|\n| a | many many words that need more than one line in this cell |\n| b | c |\n", 250);
  ASSERT_EQ(narrow.layout.regions.size(), 1u);
  EXPECT_LE(narrow.layout.regions[0].content_width, 250.5f);
  EXPECT_GT(box_with(narrow.layout, "c").y, box_with(narrow.layout, "many many").y + 2 * measure.line_height(FontKind::body));
  const Page wide = lay_out("| " + std::string(60, 'a') + " | " + std::string(60, 'b') + " |\n|---|---|\n| c | d |\n", 200);
  EXPECT_GT(wide.layout.regions[0].content_width, 200);
  EXPECT_EQ(wide.layout.regions[0].w, 200);
}

TEST(Flow, TableCellsKeepTheirAlignment) {
  const Page page = lay_out("| left column | right column |\n|:--|--:|\n| a | b |\n", 500);
  const TextBox& head = box_with(page.layout, "right column");
  const TextBox& cell = box_with(page.layout, "b");
  EXPECT_NEAR(head.x + head.w, cell.x + cell.w, 0.5f);
}

TEST(Flow, AnchorsHaveAPlace) {
  const Page page = lay_out("text\n\n<a id=\"here\"></a>\n## A heading\n\nmore\n");
  EXPECT_GE(page.layout.anchor_y("here"), measure.line_height(FontKind::body));
  EXPECT_GE(page.layout.anchor_y("a-heading"), page.layout.anchor_y("here"));
  EXPECT_EQ(page.layout.anchor_y("nowhere"), -1);
}

TEST(Flow, SpansHaveAHeaderWithALinkToTheirPlace) {
  const Page page = lay_out("```span\na.b\n```\n");
  const TextBox& place = box_with(page.layout, "engine/a/b.cpp:7");
  ASSERT_GE(place.link, 0);
  EXPECT_EQ(page.layout.links[static_cast<std::size_t>(place.link)], "span:a.b");
  EXPECT_GT(box_with(page.layout, "int").y, place.y);
  const auto header = std::find_if(page.layout.decorations.begin(), page.layout.decorations.end(), [](const Decoration& one) { return one.kind == Deco::span_header; });
  ASSERT_NE(header, page.layout.decorations.end());
  EXPECT_EQ(header->name, "a.b");
}

TEST(Flow, DiagramsAndImagesKeepTheirRoom) {
  const Page page = lay_out("```mermaid\nflowchart LR\n a-->b\n```\n\nafter\n\n![alt words](none.png)\n", 400);
  ASSERT_EQ(page.layout.decorations.size(), 1u);
  EXPECT_EQ(page.layout.decorations[0].kind, Deco::diagram);
  EXPECT_EQ(page.layout.decorations[0].h, 300);
  EXPECT_EQ(page.layout.regions[0].w, 400);
  EXPECT_EQ(page.layout.regions[0].content_width, 900);
  EXPECT_GE(box_with(page.layout, "after").y, 300);
  EXPECT_EQ(page.layout.text_of(box_with(page.layout, "alt")), "[alt words]");
}

TEST(Flow, SuperscriptsStandHigherAndSubscriptsLower) {
  const Page page = lay_out("$x^{2}_{i}$");
  EXPECT_LT(box_with(page.layout, "2").y, box_with(page.layout, "i").y);
  EXPECT_EQ(box_with(page.layout, "2").font, FontKind::small);
}

TEST(Flow, QuotesNestAndAdmonitionsHaveABar) {
  const Page page = lay_out("> [!TIP]\n> A tip.\n>\n> > inner\n");
  EXPECT_EQ(page.layout.text_of(page.layout.boxes[0]), "Tip");
  EXPECT_GT(box_with(page.layout, "inner").x, box_with(page.layout, "A tip").x);
  int bars = 0;
  for (const Decoration& one : page.layout.decorations) {
    if (one.kind != Deco::admonition_bar && one.kind != Deco::quote_bar) continue;
    ++bars;
    EXPECT_GT(one.h, 10);
  }
  EXPECT_EQ(bars, 2);
}

TEST(FlowOfTheProject, EveryPageStaysInItsWidth) {
  for (const std::string& name : test::project_pages()) {
    const Document document = test::project_page(name);
    for (const float width : {320.0f, 640.0f, 1200.0f}) {
      FlowOptions options;
      options.width = width;
      const FlowLayout layout = flow(document, options, measure);
      EXPECT_GT(layout.boxes.size(), 20u) << name;
      for (const TextBox& box : layout.boxes) {
        EXPECT_TRUE(box.region >= 0 || box.x + box.w <= width + 1) << name << ": " << layout.text_of(box);
        EXPECT_GE(box.x, 0);
      }
    }
  }
}

// The work of a layout, counted as questions to the fonts: it grows as the page does.
class CountingMeasure : public PlainMeasure {
 public:
  float width(std::string_view utf8, FontKind font) const override {
    bytes += utf8.size();
    return PlainMeasure::width(utf8, font);
  }
  mutable std::size_t bytes = 0;
};

TEST(Flow, WorkIsLinearInThePage) {
  const auto bytes_for = [](std::size_t size, const std::string& piece) {
    std::string text;
    while (text.size() < size) text += piece;
    const Document document = parse_markdown(text, "big.md", {});
    CountingMeasure counting;
    flow(document, {}, counting);
    return counting.bytes;
  };
  for (const std::string piece : {"Some words, **bold** and `code`.\n\n", "wordwithoutend", "| a | b |\n|---|---|\n| c | d |\n\n", "- item\n", "> quote\n", "x ",
                                  "```cpp\nint x = 1; // y\n```\n"}) {
    const std::size_t small = bytes_for(100'000, piece), large = bytes_for(1'000'000, piece);
    EXPECT_LE(large, 12 * small) << piece;
    EXPECT_LE(large, 12'000'000u) << piece;
  }
}

}  // namespace
}  // namespace shardbook::page
