// What a page of notes holds: citations, choices, figures, words; and what encodings are read.
#include <gtest/gtest.h>

#include "engine/reading/note.hpp"

namespace shardbook::reading {
namespace {

std::vector<std::string> lines(const std::string& text) {
  base::Result<Words> words = words_of(text);
  return words ? words.value().lines : std::vector<std::string>{"error: " + words.error()};
}

TEST(Citations, AreReadInTheFormsThatPeopleWrite) {
  for (const char* form : {"`a/b.py:L10-L20`", "a/b.py:L10-20", "(a/b.py#L10-L20)", "[x](https://github.com/o/n/blob/0123abc/a/b.py#L10-L20)", "./a/b.py:L10–L20."}) {
    const std::vector<Citation> found = citations_in(form, 7);
    ASSERT_EQ(found.size(), 1u) << form;
    EXPECT_EQ(found[0].path, "a/b.py") << form;
    EXPECT_EQ(found[0].first, 10) << form;
    EXPECT_EQ(found[0].last, 20) << form;
    EXPECT_EQ(found[0].line, 7) << form;
  }
  EXPECT_EQ(citations_in("https://github.com/o/n/blob/0123abc/a/b.py#L10", 1).at(0).commit, "0123abc");
  EXPECT_EQ(citations_in("a.py:L5", 1).at(0).last, 5);
  EXPECT_EQ(citations_in("a.py:L5 and b.py:L6-L7", 1).size(), 2u);
  for (const char* none : {"L10-L20", "a note: L10", "b/a.py line 10", "x:Large", "a/b.py:L", "a.py:L9999999999", "./#L1", "././:L2", "https://github.com/o/n/blob/0123abc/#L10"}) EXPECT_TRUE(citations_in(none, 1).empty()) << none;
}

TEST(Citations, OwnTheCodeWordsBehindThem) {
  const std::vector<Citation> found = citations_in("`first` a.py:L5 `second()` `self.third`, b.py:L6 `fourth=1` `--tp 2` `two words`", 1);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].symbols, (std::vector<std::string>{"second", "self.third"}));
  EXPECT_EQ(found[1].symbols, (std::vector<std::string>{"fourth"}));
}

TEST(Notes, HaveAChoiceAHeadingOrAnItem) {
  const Note headings = parse_note("n.md", lines("# Title\n\nRead at abc.\n\n### One\n`a.py:L1` `x`\nwords here\n\n### Two\n`a.py:L2`\n- an item\n- another\n\n## Connect the dots\nThe tutor, see `a.py:L3`.\n"));
  ASSERT_EQ(headings.choices.size(), 2u);
  EXPECT_EQ(headings.choices[0].title, "One");
  EXPECT_EQ(headings.choices[0].line, 5);
  EXPECT_EQ(headings.choices[0].last_line, 7);
  EXPECT_TRUE(headings.has_closing);
  EXPECT_EQ(headings.closing_line, 14);

  const Note items = parse_note("n.md", lines("# Title\n\n- **One.** `a.py:L1`\n  more of it\n- **Two.** b.py:L2 `y`\n\n**Connect the dots.** The tutor.\n"));
  ASSERT_EQ(items.choices.size(), 2u);
  EXPECT_EQ(items.choices[0].title, "One.");
  EXPECT_EQ(items.choices[0].words, 4);
  EXPECT_TRUE(items.has_closing);
}

TEST(Notes, CountWordsOfProseAlone) {
  EXPECT_EQ(prose_words("The sum (asynchronous) goes `first, and alone` · a.py:L1-L3 — so."), 7);
  const Note note = parse_note("n.md", lines("# Not these words\n\nThese four words count.\n```python\nnot = these\n```\n"));
  EXPECT_EQ(note.words, 4);
}

TEST(Notes, KnowTheirFiguresAndFences) {
  const Note note = parse_note("n.md", lines("With 87.31 ms (`--model a --tp 2`), without 88 ms (`runs/b`); 5 ms alone.\n```mermaid\nflowchart LR\n```\n```\nopen\n"));
  ASSERT_EQ(note.figures.size(), 2u);
  EXPECT_DOUBLE_EQ(note.figures[0].ms, 87.31);
  EXPECT_EQ(note.figures[0].run, "--model a --tp 2");
  EXPECT_EQ(note.figures[1].run, "runs/b");
  ASSERT_EQ(note.fences.size(), 2u);
  EXPECT_EQ(note.fences[0].kind, "mermaid");
  EXPECT_EQ(note.fences[0].line, 3);
  EXPECT_TRUE(note.fences[0].closed);
  EXPECT_FALSE(note.fences[1].closed);
}

TEST(Encodings, OfOtherKindsGetOneSentenceEach) {
  using namespace std::string_literals;
  EXPECT_EQ(lines("a\nb\n"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(lines("a\r\nb\r\n"), (std::vector<std::string>{"a", "b"}));
  EXPECT_NE(words_of("a\r\nb\r\n").value().remark.find("Windows"), std::string::npos);
  EXPECT_EQ(lines("\xEF\xBB\xBF# Á"), (std::vector<std::string>{"# Á"}));
  EXPECT_NE(words_of("\xEF\xBB\xBF# a").value().remark.find("byte order mark"), std::string::npos);
  EXPECT_NE(words_of("\xFF\xFE#\0 \0"s).error().find("is UTF-16"), std::string::npos);
  EXPECT_NE(words_of("#\0 \0a\0"s).error().find("byte of zero in line 1"), std::string::npos);
  EXPECT_NE(words_of("fine\nse\xF1or\n").error().find("no UTF-8 (line 2)"), std::string::npos);
  for (const char* bad : {"\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82"}) EXPECT_FALSE(words_of(bad)) << "overlong, surrogate, beyond, cut off";
}

}  // namespace
}  // namespace shardbook::reading
