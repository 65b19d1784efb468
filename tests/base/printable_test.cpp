// What of a stranger's text reaches a terminal.
#include "engine/base/printable.hpp"

#include <gtest/gtest.h>

namespace shardbook::base {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text : {"", "all_reduce · layer 3", "señal ≈ 410k", "日本語", "\xf0\x9f\x98\x80"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, WritesControlCharactersOut) {
  EXPECT_EQ(printable("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(printable("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("delete\x7f"), "delete\\x7f");
  EXPECT_EQ(printable("over\rwritten"), "over\\x0dwritten");
  EXPECT_EQ(printable("\xc2\x9b" "31m"), "\\u009b31m") << "the one-character form of ESC [";
}

TEST(Printable, KeepsLinesOnlyWhereAsked) {
  EXPECT_EQ(printable("one\ntwo\t3"), "one\\ntwo\\x093");
  EXPECT_EQ(printable("one\ntwo\t3", Lines::kept), "one\ntwo\t3");
}

TEST(Printable, WritesOutWhatTurnsTheDirectionOfWriting) {
  EXPECT_EQ(printable("safe\xe2\x80\xae" "exe.txt"), "safe\\u202eexe.txt");
  EXPECT_EQ(printable("\xe2\x81\xa6x"), "\\u2066x");
}

TEST(Printable, WritesOutBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "an overlong slash";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(printable("cut \xe2\x80"), "cut \\xe2\\x80");
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond the last character";
}

}  // namespace
}  // namespace shardbook::base
