// Notes in the terminal, with spans of the engine woven in.
#include <gtest/gtest.h>

#include "engine/book/excerpts.hpp"
#include "engine/cli/markdown.hpp"
#include "engine/cli/read_command.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

const char* source = R"(#include "a.hpp"
//@ one: The outer one.
void outer() {
  //@ one.inner: What is within.
  if (here) {
    act();
  }
  //@end
}
//@end
)";

std::vector<std::string> lines_of(const std::string& markdown, int columns = 100) {
  return page_lines(markdown, "note.md", book::excerpts_of(source, "engine/a.cpp").value(), {columns, false}).value();
}

TEST(Page, ASpanIsShownWithTitlePlaceAndCode) {
  EXPECT_EQ(lines_of("See:\n\n```span\none.inner\n```\n"),
            (std::vector<std::string>{"See:", "", "┌ What is within.", "│ engine/a.cpp:5", "│ if (here) {", "│   act();", "│ }", "└"}));
  EXPECT_EQ(lines_of("It is [done here](span:one)."), std::vector<std::string>{"It is done here (engine/a.cpp:3)."});
}

TEST(Page, ASpanThatIsNotThereNamesTheNearest) {
  const base::Result<std::vector<std::string>> page =
      page_lines("text\n\n```span\none.iner\n```\n", "note.md", book::excerpts_of(source, "engine/a.cpp").value(), {});
  ASSERT_FALSE(page.ok());
  EXPECT_EQ(page.error(), "note.md:3: the engine has no span 'one.iner'; the nearest is one.inner");
}

TEST(Page, HeadingsListsAndQuotesKeepTheirShape) {
  EXPECT_EQ(lines_of("# Title\ntext **bold** and `code`\n\n- first item\n  goes on\n- second\n\n> said\n> so\n"),
            (std::vector<std::string>{"Title", "═════", "", "text bold and code", "", "• first item goes on", "• second", "", "│ said so"}));
}

TEST(Page, ParagraphsAndItemsWrapWithinTheColumns) {
  for (const std::string& line : lines_of("1. " + std::string(30, 'a') + " " + std::string(30, 'b') + " and some words more", 40)) {
    EXPECT_LE(width_of(line), 40);
  }
}

TEST(Page, TablesAlignAndNarrow) {
  EXPECT_EQ(lines_of("| a | bytes |\n|---|---:|\n| long cell | 12 |\n"),
            (std::vector<std::string>{"a          bytes", "─────────  ─────", "long cell     12"}));
  for (const std::string& line : lines_of("| a | b |\n|---|---|\n| one | " + std::string(20, 'x') + " " + std::string(25, 'y') + " |\n", 40)) {
    EXPECT_LE(width_of(line), 40);
  }
}

TEST(Page, CodeIsLeftAsItIsAndDiagramsSaySo) {
  EXPECT_EQ(lines_of("```cpp\nint  x = *p; // **no**\n```\n"), std::vector<std::string>{"    int  x = *p; // **no**"});
  EXPECT_NE(lines_of("```mermaid\ngraph LR\n```\n")[0].find("a diagram"), std::string::npos);
}

TEST(Read, NotesAreFoundByNumberNameAndPath) {
  const std::string root = SHARDBOOK_SOURCE_DIR;
  for (const char* name : {"03", "3", "03_tensor_parallel", "notes/03_tensor_parallel.md"}) {
    EXPECT_EQ(std::filesystem::path(find_page(root, name, "").value()).filename(), "03_tensor_parallel.md") << name;
  }
  EXPECT_EQ(std::filesystem::path(find_page(root, "words", "").value()).filename(), "words.md");
}

TEST(Read, EveryNoteCanBeShown) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::filesystem::path(SHARDBOOK_SOURCE_DIR) / "notes")) {
    if (entry.path().extension() != ".md") continue;
    const Spoken spoken = shardbook({"read", entry.path().string()});
    EXPECT_EQ(spoken.code, 0) << spoken.err;
    EXPECT_NE(spoken.out, "");
  }
}

TEST(Read, TheFirstLineSaysWhichOfANoteAndALabOfOneNumberThisIs) {
  const Spoken note = shardbook({"read", "3"});
  EXPECT_EQ(note.out.find("This is note 03. Lab 03 is ./shardbook read labs/03_reading, and its first part"), 0u) << note.out.substr(0, 200);
  EXPECT_NE(note.out.find("\nThat was note 03. Lab 03 is"), std::string::npos);
  EXPECT_NE(note.out.find("03 Tensor parallel\n"), std::string::npos) << "and the note";
  for (const char* other : {"03a", "labs/03_reading", "words"}) EXPECT_EQ(shardbook({"read", other}).out.find("This is note"), std::string::npos) << other;
}

TEST(Read, ALabsFindingsComeWhenTheyAreAskedForInEveryLanguage) {
  struct { const char* language; const char* title; const char* finding; } const cases[] = {
      {"en", "What there is to find", "The busy neighbour makes the window grow from 290 to 400 ms"}, {"es", "Lo que hay que encontrar", "La vecina ocupada hace crecer la ventana de 290 a 400 ms"}};
  for (const auto& one : cases) {
    const std::string text = shardbook({"read", "labs/00_timeline", "--lang", one.language}).out;
    EXPECT_NE(text.find(one.title), std::string::npos) << one.language;
    EXPECT_NE(text.find("--found"), std::string::npos) << one.language << ": how the rest is read";
    EXPECT_EQ(text.find(one.finding), std::string::npos) << one.language;
    EXPECT_NE(shardbook({"read", "labs/00_timeline", "--lang", one.language, "--found"}).out.find(one.finding), std::string::npos) << one.language;
    EXPECT_NE(shardbook({"read", "00a", "--lang", one.language, "--found"}).out.find(one.finding), std::string::npos) << one.language;
  }
}

TEST(Read, WithoutANameItListsTheNotes) {
  const Spoken spoken = shardbook({"read"});
  EXPECT_EQ(spoken.code, 0);
  EXPECT_NE(spoken.out.find("03_tensor_parallel"), std::string::npos);
}

}  // namespace
}  // namespace shardbook::cli
