// Does the program refuse what cannot be in one sentence, and say what a diagram means?
#include "engine/base/json.hpp"
#include "viewer/app/command_line.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace shardbook::app {
namespace {

namespace fs = std::filesystem;

struct Answer {
  int code;
  std::string out, err;
};

Answer ask(const std::vector<std::string>& words) {
  std::ostringstream out, err;
  const int code = main_with(words, out, err);
  return {code, out.str(), err.str()};
}

void expect_refused(const std::vector<std::string>& words, const std::string& part) {
  const Answer answer = ask(words);
  EXPECT_EQ(answer.code, 2);
  EXPECT_NE(answer.err.find(part), std::string::npos) << answer.err;
  EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
}

class Diagrams : public testing::Test {
 protected:
  fs::path folder = fs::temp_directory_path() / (std::to_string(::getpid()) + "-shardbook-diagrams");
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  }
};

TEST(CommandLine, bad_options_are_one_sentence_and_exit_code_2) {
  expect_refused({"view", "--size", "12"}, "--size is WxH");
  expect_refused({"view", "--size", "100x99999"}, "--size is WxH");
  expect_refused({"view", "--theme", "blue"}, "--theme is light or dark");
  expect_refused({"view", "--panel", "nope"}, "--panel is span, source, area, find, compare or marks");
  expect_refused({"view", "--layout", "wide"}, "--layout is read, split or trace");
  expect_refused({"view", "--scale", "many"}, "--scale");
  expect_refused({"view", "--screnshot", "x.png"}, "the nearest is --screenshot");
  expect_refused({"view", "--script", "/nowhere/script.txt"}, "/nowhere/script.txt");
  expect_refused({"vieww"}, "vieww");
  expect_refused({"diagram"}, "FILE");
  expect_refused({"diagram", "a", "b"}, "'b' is one word too many");
  expect_refused({"diagram", "/nowhere/x.mmd"}, "/nowhere/x.mmd");
}

TEST(CommandLine, help_is_there_for_all_of_it) {
  for (const auto& words : std::vector<std::vector<std::string>>{{}, {"--help"}, {"view", "--help"}, {"diagram", "--help"}}) {
    const Answer answer = ask(words);
    EXPECT_EQ(answer.code, 0);
    EXPECT_GT(answer.out.size(), 100U);
  }
}

TEST(CommandLine, sizes_are_two_numbers) {
  EXPECT_EQ(size_of("1280x800").value(), std::pair(1280, 800));
  for (const char* wrong : {"", "x", "1280", "1280x", "x800", "1280x800x2", "-1280x800", "1280 x 800 "}) EXPECT_FALSE(size_of(wrong).ok()) << wrong;
}

TEST_F(Diagrams, are_told_in_words) {
  const Answer answer = ask({"diagram", file("a.mmd", "flowchart LR\n  A[start] -->|go| B{ok?}\n")});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_NE(answer.out.find("flowchart LR: 2 nodes, 1 edges"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("node A \"start\""), std::string::npos);
  EXPECT_NE(answer.out.find("edge A -> B \"go\""), std::string::npos);
}

TEST_F(Diagrams, are_told_as_json) {
  const Answer answer = ask({"diagram", file("a.mmd", "sequenceDiagram\n  A->>B: hi\n"), "--json"});
  ASSERT_EQ(answer.code, 0);
  const auto json = base::parse_json(answer.out);
  EXPECT_TRUE(json["ok"].get<bool>());
}

TEST_F(Diagrams, that_are_not_understood_have_line_and_reason_in_their_file) {
  const std::string plain = file("bad.mmd", "flowchart LR\n  A -->\n");
  expect_refused({"diagram", plain}, "bad.mmd:2: ");
  const std::string page = file("bad.md", "# Title\n\n```mermaid\nflowchart LR\n  A --> B\n```\n\n```mermaid\nflowchart LR\n  A -->\n```\n");
  EXPECT_EQ(ask({"diagram", page}).code, 0);
  expect_refused({"diagram", page, "--number", "2"}, "bad.md:10: ");
  expect_refused({"diagram", page, "--number", "3"}, "holds 2 diagrams");
  const Answer json = ask({"diagram", plain, "--json"});
  EXPECT_EQ(json.code, 2);
  EXPECT_FALSE(base::parse_json(json.out)["ok"].get<bool>());
}

TEST_F(Diagrams, are_drawn_as_large_as_they_are) {
  const std::string source = file("a.mmd", "flowchart LR\n  A[start] --> B[end]\n"), picture = (folder / "a.png").string();
  const Answer answer = ask({"diagram", source, "--png", picture, "--theme", "dark"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  std::ifstream in(picture, std::ios::binary);
  std::string head(24, '\0');
  in.read(head.data(), 24);
  const auto number = [&](int at) { return (static_cast<unsigned char>(head[at]) << 8 | static_cast<unsigned char>(head[at + 1])); };
  EXPECT_GT(number(18), 100);   // width
  EXPECT_LT(number(18), 1000);
  EXPECT_GT(number(22), 40);    // height
  EXPECT_LT(number(22), 300);
}

TEST_F(Diagrams, that_are_not_understood_leave_no_picture) {
  const std::string picture = (folder / "no.png").string();
  expect_refused({"diagram", file("bad.mmd", "pie\n"), "--png", picture}, "bad.mmd:1: ");
  EXPECT_FALSE(fs::exists(picture));
}

}  // namespace
}  // namespace shardbook::app
