// A choice that is begun from selected lines: behind the others, and nothing of the note is lost.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "engine/book/project.hpp"
#include "engine/reading/begin.hpp"
#include "engine/reading/note.hpp"
#include "tests/reading/folder.hpp"

namespace shardbook::reading {
namespace {

namespace fs = std::filesystem;
using base::text;

std::string note_in(const Folder& folder) { return book::read_text(folder.path() + "/fsdp-prefetch.md").value(); }

TEST(Beginnings, MakeAChoiceOfTheSelectedLinesBehindTheOthers) {
  const Folder folder(Files{{"fsdp-prefetch.md", "# A note\n\n### One\n\n`a/b.py:L1`\nWhy.\n\n## Connect the dots\n\nThe tutor."}});
  const base::Result<Begun> begun = begin_choice(folder.path(), "fsdp-prefetch.md", "c/d.py:L3-L9");
  ASSERT_TRUE(begun.ok()) << begun.error();
  EXPECT_EQ(note_in(folder), "# A note\n\n### One\n\n`a/b.py:L1`\nWhy.\n\n### TODO: what are these lines for?\n\n`c/d.py:L3-L9`\n\n## Connect the dots\n\nThe tutor.");
  EXPECT_EQ(begun.value().line, 10);
  const Note note = parse_note("n", words_of(note_in(folder)).value().lines);
  ASSERT_EQ(note.choices.size(), 2u);
  EXPECT_EQ(note.choices[1].citations[0].line, begun.value().line);
  EXPECT_TRUE(note.has_closing);
  // As it was, byte for byte.
  EXPECT_EQ(book::read_text(begun.value().kept).value().find("# A note\n\n### One\n\n`a/b.py:L1`\nWhy.\n\n## Connect"), 0u);
}

TEST(Beginnings, KeepEndsOfLineAndALinkAndMakeTheFirstNote) {
  const Folder folder(Files{{"elsewhere.md", "\xEF\xBB\xBF# A note\r\nno end"}});
  fs::create_symlink("elsewhere.md", folder.path() + "/fsdp-prefetch.md");
  EXPECT_EQ(begin_choice(folder.path(), "fsdp-prefetch.md", "c.py:L3").value().line, 6);
  EXPECT_EQ(note_in(folder), "\xEF\xBB\xBF# A note\r\nno end\r\n\r\n### TODO: what are these lines for?\r\n\r\n`c.py:L3`\r\n");
  EXPECT_TRUE(fs::is_symlink(folder.path() + "/fsdp-prefetch.md"));
  const base::Result<Begun> first = begin_choice(folder.path() + "/new", "synthesis.md", "c.py:L3");
  EXPECT_EQ(first.value().kept, "");
  EXPECT_EQ(book::read_text(folder.path() + "/new/synthesis.md").value(), "### TODO: what are these lines for?\n\n`c.py:L3`\n");
}

TEST(Beginnings, OfTwoWindowsAtOnceAreAllThere) {
  const Folder folder;
  std::vector<std::thread> windows;
  for (int window = 0; window < 2; ++window) {
    windows.emplace_back([&, window] {
      for (int n = 1; n <= 10; ++n) EXPECT_TRUE(begin_choice(folder.path(), "fsdp-prefetch.md", text("c.py:L", 100 * window + n)).ok());
    });
  }
  for (std::thread& one : windows) one.join();
  EXPECT_EQ(parse_note("n", words_of(note_in(folder)).value().lines).choices.size(), 20u);
}

TEST(Beginnings, AreRefusedWhereTheyWouldSpoilTheNote) {
  using namespace std::string_literals;
  for (const auto& [content, why] : {std::pair{"\xFF\xFE#\0"s, "fsdp-prefetch.md is UTF-16"}, std::pair{"se\xF1or\n"s, "fsdp-prefetch.md is no UTF-8 (line 1)"},
                                     std::pair{"# A\n```\nopen\n"s, "fsdp-prefetch.md:2: a fence opens here and does not close"}}) {
    const Folder folder(Files{{"fsdp-prefetch.md", content}});
    const base::Result<Begun> begun = begin_choice(folder.path(), "fsdp-prefetch.md", "c.py:L3");
    ASSERT_FALSE(begun.ok());
    EXPECT_EQ(begun.error().find(why), 0u) << begun.error();
    EXPECT_EQ(note_in(folder), content);
  }
  const Folder folder(Files{{"fsdp-prefetch.md", "mine\n"}, {"kept", "a file where the folder of copies would be"}});
  EXPECT_NE(begin_choice(folder.path(), "fsdp-prefetch.md", "c.py:L3").error().find("no copy of fsdp-prefetch.md can be kept"), std::string::npos);
  EXPECT_EQ(note_in(folder), "mine\n");
}

}  // namespace
}  // namespace shardbook::reading
