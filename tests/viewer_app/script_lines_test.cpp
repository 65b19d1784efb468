// Is a script that is wrong refused before it starts, with line and reason?
#include "viewer/app/script_lines.hpp"

#include <gtest/gtest.h>

namespace shardbook::app {
namespace {

std::string error_of(const std::string& text) {
  const auto lines = script_lines(text, "test.txt");
  return lines ? "" : lines.error();
}

TEST(ScriptLines, words_are_split_at_blanks_and_kept_together_by_quotes) {
  const auto lines = script_lines("open a b\n\n  click \"Open \\\"it\\\"\"   # a remark\n# nothing else\nexpect a.b ~ \"x\\\\y\"\r\n", "s");
  ASSERT_TRUE(lines.ok()) << lines.error();
  ASSERT_EQ(lines.value().size(), 3U);
  EXPECT_EQ(lines.value()[0].words, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(lines.value()[1].words, std::vector<std::string>{"Open \"it\""});
  EXPECT_EQ(lines.value()[1].number, 3);
  EXPECT_EQ(lines.value()[2].words, (std::vector<std::string>{"a.b", "~", "x\\y"}));
}

TEST(ScriptLines, what_is_wrong_is_said_with_its_line) {
  EXPECT_EQ(error_of("wait 3\nclik \"Open\"\n"), "test.txt:2: 'clik' is nothing that a script can do; the nearest is `click`");
  EXPECT_EQ(error_of("click"), "test.txt:1: it is: click \"LABEL\"");
  EXPECT_EQ(error_of("click \"Open"), "test.txt:1: a quotation mark is opened and never closed");
  EXPECT_NE(error_of("key \"Ctrl+Foo\"").find("no key called 'Ctrl+Foo'"), std::string::npos);
  EXPECT_NE(error_of("size 10 800").find("64 to 16384"), std::string::npos);
  EXPECT_NE(error_of("size wide 800").find("numbers"), std::string::npos);
  EXPECT_NE(error_of("theme blue").find("light or dark"), std::string::npos);
  EXPECT_NE(error_of("layout wide").find("read, split or trace"), std::string::npos);
  EXPECT_NE(error_of("save a to b").find("save NAME as WORD"), std::string::npos);
  EXPECT_NE(error_of("expect a ? b").find("compares nothing"), std::string::npos);
  EXPECT_NE(error_of("expect a > many").find("'many' is no number"), std::string::npos);
  EXPECT_NE(error_of("drag \"a\" 1 up").find("two numbers"), std::string::npos);
  EXPECT_NE(error_of("wait nan").find("no number of frames"), std::string::npos);
}

TEST(ScriptLines, what_is_right_passes) {
  EXPECT_EQ(error_of("key \"F F\"\nkey 7\nkey Ctrl++\nkey ?\nsize 1280 800 2\nexpect a >= $x\nwait\nrefuse \"b\"\nscroll \"a\" -3\ncmd up\n"), "");
  EXPECT_EQ(error_of(""), "");
}

TEST(ScriptLines, of_any_bytes_end_in_lines_or_a_sentence) {
  std::string bytes;
  unsigned state = 7;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 1664525 + 1013904223;
    bytes += static_cast<char>(state >> 24);
  }
  EXPECT_NE(error_of(bytes), "");
}

}  // namespace
}  // namespace shardbook::app
