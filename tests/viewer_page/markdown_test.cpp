// Does a page become the tree that its author meant?
#include <gtest/gtest.h>

#include "page_support.hpp"
#include "viewer/page/highlight.hpp"

namespace shardbook::page {
namespace {

using Kind = Block::Kind;

const std::vector<book::Excerpt> spans{{"fsdp.gather", "Gather the next unit.", "engine/fsdp/unit.cpp", 12, {"wait(event);", "gather(unit);"}}};

Document read(std::string_view text) { return parse_markdown(text, "notes/test.md", spans); }

TEST(Markdown, HeadingsHaveLevelsTitlesAndIds) {
  const Document page = read("# The *one* title\n\n## f and g, and `why`\n\n## f and g, and `why`\n");
  ASSERT_EQ(page.blocks.size(), 3u);
  EXPECT_EQ(page.title, "The one title");
  EXPECT_EQ(page.blocks[0].kind, Kind::heading);
  EXPECT_EQ(page.blocks[0].level, 1);
  EXPECT_EQ(page.blocks[1].level, 2);
  EXPECT_EQ(page.blocks[1].target, "f-and-g-and-why");
  EXPECT_EQ(page.blocks[2].target, "f-and-g-and-why-1");
  EXPECT_EQ(page.blocks[2].line, 5);
}

TEST(Markdown, HeadingIdsKeepLettersOfOtherLanguages) {
  EXPECT_EQ(heading_id("Comunicación: ¿qué es Α?"), "comunicación-qué-es-α");
  EXPECT_EQ(heading_id("1. Predict first"), "1-predict-first");
  EXPECT_EQ(heading_id("snake_case and all-gather"), "snake_case-and-all-gather");
}

TEST(Markdown, RunsChangeWithTheStyle) {
  const Document page = read("plain **bold *both*** `code` ~~gone~~ [link **in** it](a.md#b)");
  ASSERT_EQ(page.blocks.size(), 1u);
  const std::vector<page::Run>& runs = page.blocks[0].runs;
  EXPECT_EQ(plain_text(runs), "plain bold both code gone link in it");
  const auto style_of = [&](const std::string& text) {
    for (const page::Run& run : runs) {
      if (run.text == text) return run.style;
    }
    ADD_FAILURE() << "no run " << text;
    return 0u;
  };
  EXPECT_EQ(style_of("bold "), Style::bold);
  EXPECT_EQ(style_of("both"), Style::bold | Style::italic);
  EXPECT_EQ(style_of("code"), unsigned{Style::code});
  EXPECT_EQ(style_of("gone"), unsigned{Style::strike});
  EXPECT_EQ(style_of("in"), Style::link | Style::bold);
  ASSERT_EQ(page.links, std::vector<std::string>{"a.md#b"});
  EXPECT_EQ(runs.back().link, 0);
}

TEST(Markdown, AnchorsStandBeforeWhatFollows) {
  const Document page = read("Text.\n\n<a id=\"walk\"></a>\n## A walk\n\nMore <a id='here'></a>text.\n");
  ASSERT_EQ(page.blocks.size(), 5u);
  EXPECT_EQ(page.blocks[1].kind, Kind::anchor);
  EXPECT_EQ(page.blocks[1].target, "walk");
  EXPECT_EQ(page.blocks[2].kind, Kind::heading);
  EXPECT_EQ(page.blocks[3].target, "here");
  EXPECT_EQ(plain_text(page.blocks[4].runs), "More text.");
}

TEST(Markdown, OtherHtmlIsTextButBreaksAndComments) {
  const Document page = read("a<br>b <!-- not shown --> <blink>c</blink>");
  ASSERT_EQ(page.blocks.size(), 1u);
  EXPECT_EQ(plain_text(page.blocks[0].runs), "a\nb  <blink>c</blink>");
}

TEST(Markdown, ListsNestAndCount) {
  const Document page = read("3. three\n4. four\n   - inner\n     - innermost\n\n- [ ] open\n- [x] done\n");
  ASSERT_EQ(page.blocks.size(), 4u);
  EXPECT_EQ(page.blocks[0].marker, 3);
  EXPECT_EQ(page.blocks[1].marker, 4);
  ASSERT_EQ(page.blocks[1].children.size(), 1u);
  const Block& inner = page.blocks[1].children[0];
  EXPECT_EQ(inner.kind, Kind::list_item);
  EXPECT_EQ(inner.level, 2);
  EXPECT_EQ(inner.marker, 0);
  EXPECT_EQ(plain_text(inner.children[0].runs), "innermost");
  EXPECT_EQ(page.blocks[2].task, Task::open);
  EXPECT_EQ(page.blocks[3].task, Task::done);
  EXPECT_EQ(plain_text(page.blocks[3].runs), "done");
}

TEST(Markdown, AListItemKeepsItsFurtherParagraphs) {
  const Document page = read("- first\n\n  second\n\n- other\n");
  ASSERT_EQ(page.blocks.size(), 2u);
  EXPECT_EQ(plain_text(page.blocks[0].runs), "first");
  ASSERT_EQ(page.blocks[0].children.size(), 1u);
  EXPECT_EQ(plain_text(page.blocks[0].children[0].runs), "second");
  EXPECT_TRUE(page.blocks[0].loose);
}

TEST(Markdown, TablesHaveRowsCellsAndAlignment) {
  const Document page = read("| a | b | c |\n|:--|:-:|--:|\n| 1 | **2** | `x \\| y` |\n| only |\n");
  ASSERT_EQ(page.blocks.size(), 1u);
  const Block& table = page.blocks[0];
  EXPECT_EQ(table.kind, Kind::table);
  ASSERT_EQ(table.cells.size(), 3u);
  EXPECT_EQ(table.alignment, (std::vector<Alignment>{Alignment::left, Alignment::centre, Alignment::right}));
  EXPECT_EQ(plain_text(table.cells[1][2]), "x | y");
  EXPECT_EQ(table.cells[2].size(), 3u);
}

TEST(Markdown, AdmonitionsAreQuotesWithAKind) {
  const Document page = read("> [!WARNING]\n> Mind the **gap**.\n\n> just a quote\n\n> [!ODD]\n> no kind\n");
  ASSERT_EQ(page.blocks.size(), 3u);
  EXPECT_EQ(page.blocks[0].kind, Kind::admonition);
  EXPECT_EQ(page.blocks[0].title, "WARNING");
  EXPECT_EQ(plain_text(page.blocks[0].children[0].runs), "Mind the gap.");
  EXPECT_EQ(page.blocks[1].kind, Kind::quote);
  EXPECT_EQ(page.blocks[2].kind, Kind::quote);
  ASSERT_EQ(page.problems.size(), 1u);
  EXPECT_EQ(page.problems[0], "notes/test.md:6: [!ODD] is no kind of admonition: those are NOTE, TIP, IMPORTANT, WARNING and CAUTION");
}

TEST(Markdown, SpansAreWovenIn) {
  const Document page = read("Look:\n\n```span\nfsdp.gather\n```\n");
  ASSERT_EQ(page.blocks.size(), 2u);
  const Block& span = page.blocks[1];
  EXPECT_EQ(span.kind, Kind::span);
  EXPECT_EQ(span.target, "fsdp.gather");
  EXPECT_EQ(span.title, "Gather the next unit.");
  EXPECT_EQ(span.source_path, "engine/fsdp/unit.cpp");
  EXPECT_EQ(span.source_line, 12);
  EXPECT_EQ(span.text, "wait(event);\ngather(unit);\n");
  EXPECT_EQ(span.language, "cpp");
  EXPECT_TRUE(page.problems.empty());
}

TEST(Markdown, ASpanThatIsNotThereIsNamedWithTheNearest) {
  const Document page = read("one\n\n```span\nfsdp.gathr\n```\n\n[see](span:fsdp.none)\n");
  EXPECT_EQ(page.blocks[1].kind, Kind::span);
  EXPECT_EQ(page.blocks[1].source_path, "");
  ASSERT_EQ(page.problems.size(), 2u);
  EXPECT_EQ(page.problems[0], "notes/test.md:4: there is no span `fsdp.gathr`; the nearest is `fsdp.gather`");
}

TEST(Markdown, MermaidFencesAreDiagramsAndOthersCode) {
  const Document page = read("```mermaid\nflowchart LR\n  a --> b\n```\n\n```cpp\nint x;\n```\n\n    indented\n");
  ASSERT_EQ(page.blocks.size(), 3u);
  EXPECT_EQ(page.blocks[0].kind, Kind::diagram);
  EXPECT_EQ(page.blocks[0].text, "flowchart LR\n  a --> b\n");
  EXPECT_EQ(page.blocks[0].line, 2);
  EXPECT_EQ(page.blocks[1].kind, Kind::code);
  EXPECT_EQ(page.blocks[1].language, "cpp");
  EXPECT_EQ(page.blocks[2].text, "indented\n");
}

TEST(Markdown, ImagesAreBlocks) {
  const Document page = read("before ![a *picture*](p.png) after");
  ASSERT_EQ(page.blocks.size(), 3u);
  EXPECT_EQ(page.blocks[1].kind, Kind::image);
  EXPECT_EQ(page.blocks[1].target, "p.png");
  EXPECT_EQ(page.blocks[1].title, "a picture");
  EXPECT_EQ(plain_text(page.blocks[2].runs), " after");
}

TEST(Markdown, FormulasAreRunsWithLevels) {
  const Document page = read("time $t_i = \\alpha^2$ costs $5.");
  const std::vector<page::Run>& runs = page.blocks[0].runs;
  EXPECT_EQ(plain_text(runs), "time ti = α2 costs $5.");
  bool raised = false, lowered = false;
  for (const page::Run& run : runs) {
    raised = raised || (run.raise == 1 && run.text == "2");
    lowered = lowered || (run.raise == -1 && run.text == "i");
  }
  EXPECT_TRUE(raised);
  EXPECT_TRUE(lowered);
}

TEST(Markdown, EntitiesAreTheirCharacters) { EXPECT_EQ(plain_text(read("a &lt; b &amp;&#33; &alpha;").blocks[0].runs), "a < b &! α"); }

TEST(Markdown, DeepNestingIsFlattened) {
  const Document page = read(std::string(5000, '>') + " deep\n");
  int depth = 0, deepest = 0;
  const auto walk = [&](const auto& self, const std::vector<Block>& blocks) -> void {
    deepest = std::max(deepest, ++depth);
    for (const Block& block : blocks) self(self, block.children);
    --depth;
  };
  walk(walk, page.blocks);
  EXPECT_LE(deepest, 30);
  std::string words;
  test::each_block(page.blocks, [&](const Block& block) { words += plain_text(block.runs); });
  EXPECT_EQ(words, "deep");
}

TEST(Markdown, NothingAndRubbishAreRead) {
  EXPECT_TRUE(read("").blocks.empty());
  EXPECT_TRUE(read("\n\n  \n").blocks.empty());
  const std::string binary("\x00\xff\xfe# \x80\n|\x01|\n", 12);
  EXPECT_NO_THROW(read(binary));
}

TEST(Markdown, AWideTableOfManyEmptyRowsStopsAndSaysSo) {
  std::string text = "|";
  for (int i = 0; i < 4000; ++i) text += "a|";
  text += "\n|";
  for (int i = 0; i < 4000; ++i) text += "---|";
  for (int i = 0; i < 4000; ++i) text += "\n|x";
  const Document page = read(text);
  std::size_t cells = 0;
  for (const Block& block : page.blocks) {
    for (const auto& row : block.cells) cells += row.size();
  }
  EXPECT_LT(cells, 40 * text.size());
  ASSERT_EQ(page.problems.size(), 1u);
}

TEST(MarkdownOfTheProject, EachPageIsReadWithoutAProblem) {
  const std::vector<std::string> pages = test::project_pages();
  ASSERT_GE(pages.size(), 20u);
  ASSERT_FALSE(test::excerpts().empty());
  for (const std::string& name : pages) {
    const Document page = test::project_page(name);
    EXPECT_TRUE(page.problems.empty()) << name << ": " << (page.problems.empty() ? "" : page.problems[0]);
    EXPECT_FALSE(page.title.empty()) << name;
    EXPECT_GT(page.blocks.size(), 2u) << name;
  }
}

TEST(MarkdownOfTheProject, NoWordOfAPageIsLost) {
  // Every word of letters that stands in a page, outside of link targets and fences, stands in its tree.
  for (const std::string& name : test::project_pages()) {
    const Document page = test::project_page(name);
    std::string words = " ";
    test::each_block(page.blocks, [&](const Block& block) {
      words += plain_text(block.runs) + " " + block.text + " " + block.title + " ";
      for (const auto& row : block.cells) {
        for (const auto& cell : row) words += plain_text(cell) + " ";
      }
    });
    std::istringstream lines(test::content(std::filesystem::path(SHARDBOOK_SOURCE_DIR) / name));
    bool in_fence = false, in_comment = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("```", 0) == 0) in_fence = !in_fence;
      if (line.rfind("<!--", 0) == 0) in_comment = true;
      const bool skipped = in_comment;
      if (line.find("-->") != std::string::npos) in_comment = false;
      if (skipped || in_fence || line.find('<') != std::string::npos || line.find('$') != std::string::npos) continue;
      std::string bare;
      for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == ']' && i + 1 < line.size() && line[i + 1] == '(') i = std::min(line.find(')', i), line.size() - 1);
        bare += std::isalpha(static_cast<unsigned char>(line[i])) != 0 ? line[i] : ' ';
      }
      std::istringstream parts(bare);
      for (std::string word; parts >> word;) EXPECT_NE(words.find(word), std::string::npos) << name << " lost: " << word;
    }
  }
}

}  // namespace
}  // namespace shardbook::page
