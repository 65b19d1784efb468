// Are the words of a program told apart, and is none of its bytes lost?
#include <gtest/gtest.h>

#include "page_support.hpp"
#include "viewer/page/highlight.hpp"

namespace shardbook::page {
namespace {

TokenKind kind_of(std::string_view text, std::string_view word, std::string_view language = "cpp") {
  const std::size_t at = text.find(word);
  for (const Token& token : highlight(text, language)) {
    if (token.begin <= at && at + word.size() <= token.end) return token.kind;
  }
  ADD_FAILURE() << word << " is cut";
  return TokenKind::plain;
}

void expect_whole(std::string_view text, std::string_view language) {
  std::size_t at = 0;
  for (const Token& token : highlight(text, language)) {
    ASSERT_EQ(token.begin, at);
    ASSERT_LT(token.begin, token.end);
    at = token.end;
  }
  EXPECT_EQ(at, text.size());
}

TEST(Highlight, KnowsTheWordsOfCpp) {
  const std::string_view text = "#include <x>\nconst std::size_t n = 0x1F'00; // why\nauto s = \"a\\\"b\"; Result<int> f('c'); /* over\nlines */ return;";
  EXPECT_EQ(kind_of(text, "#include"), TokenKind::preprocessor);
  EXPECT_EQ(kind_of(text, "const"), TokenKind::keyword);
  EXPECT_EQ(kind_of(text, "size_t"), TokenKind::type);
  EXPECT_EQ(kind_of(text, "0x1F'00"), TokenKind::number);
  EXPECT_EQ(kind_of(text, "// why"), TokenKind::comment);
  EXPECT_EQ(kind_of(text, "\"a\\\"b\""), TokenKind::string);
  EXPECT_EQ(kind_of(text, "Result"), TokenKind::type);
  EXPECT_EQ(kind_of(text, "over\nlines"), TokenKind::comment);
  EXPECT_EQ(kind_of(text, "return"), TokenKind::keyword);
}

TEST(Highlight, KnowsRawStringsAndCuda) {
  EXPECT_EQ(kind_of("x = R\"q(a \" b)q\"; int y;", "a \" b"), TokenKind::string);
  EXPECT_EQ(kind_of("x = R\"q(a \" b)q\"; int y;", "int"), TokenKind::type);
  EXPECT_EQ(kind_of("__global__ void f()", "__global__", "cuda"), TokenKind::keyword);
}

TEST(Highlight, KnowsPythonShellAndJson) {
  EXPECT_EQ(kind_of("def f(): # no\n  \"\"\"doc\n'x' \"\"\"\n  return 1", "doc\n'x' ", "python"), TokenKind::string);
  EXPECT_EQ(kind_of("def f(): # no", "# no", "python"), TokenKind::comment);
  EXPECT_EQ(kind_of("./shardbook run 02 # go", "# go", "sh"), TokenKind::comment);
  EXPECT_EQ(kind_of("echo a#b 'x y'", "'x y'", "sh"), TokenKind::string);
  EXPECT_EQ(kind_of("{\"a\": true, \"b\": -1.5e3}", "true", "json"), TokenKind::keyword);
  EXPECT_EQ(kind_of("{\"a\": true, \"b\": -1.5e3}", "1.5e3", "json"), TokenKind::number);
}

TEST(Highlight, AnotherLanguageIsPlain) {
  ASSERT_EQ(highlight("int x;", "text").size(), 1u);
  EXPECT_EQ(highlight("int x;", "text")[0].kind, TokenKind::plain);
  EXPECT_TRUE(highlight("", "cpp").empty());
}

TEST(Highlight, LosesNoByteOfAnyFileOfTheProject) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::filesystem::path(SHARDBOOK_SOURCE_DIR) / "engine")) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".cpp" && extension != ".hpp" && extension != ".cu") continue;
    expect_whole(test::content(entry.path()), "cpp");
    ++files;
  }
  EXPECT_GT(files, 5u);
}

TEST(Highlight, LosesNoByteOfWhatDoesNotEnd) {
  for (const char* text : {"\"open", "/* open", "R\"(open", "'", "\\", "1e+", "\"\"\"open", "@", "#", "\"a\\"}) {
    for (const char* language : {"cpp", "python", "sh", "json", "text"}) expect_whole(text, language);
  }
}

TEST(Highlight, ExtensionsAreOfTheLastPart) {
  EXPECT_EQ(extension_of("engine/fsdp/unit.cpp"), "cpp");
  EXPECT_EQ(extension_of("a.b/README"), "");
}

}  // namespace
}  // namespace shardbook::page
