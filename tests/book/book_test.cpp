// The engine's named spans, and labs found by their number.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/book/excerpts.hpp"
#include "engine/book/project.hpp"

namespace shardbook::book {
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

TEST(Excerpts, NestAndLeaveTheInnerMarkersOut) {
  const std::vector<Excerpt> found = excerpts_of(source, "engine/a.cpp").value();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "one");
  EXPECT_EQ(found[0].title, "The outer one.");
  EXPECT_EQ(found[0].line, 3);
  EXPECT_EQ(found[0].text, (std::vector<std::string>{"void outer() {", "  if (here) {", "    act();", "  }", "}"}));
  EXPECT_EQ(found[1].line, 5);
  EXPECT_EQ(found[1].text, (std::vector<std::string>{"if (here) {", "  act();", "}"}));
}

TEST(Excerpts, AMarkerThatIsWrongIsRefusedWithItsLine) {
  EXPECT_EQ(excerpts_of("//@ one: One.\nx\n", "a.cpp").error(), "a.cpp: the span one has no //@end");
  EXPECT_EQ(excerpts_of("x\n//@end\n", "a.cpp").error(), "a.cpp:2: this //@end ends no span");
  EXPECT_NE(excerpts_of("//@one One\n", "a.cpp").error().find("a.cpp:1"), std::string::npos);
}

TEST(Excerpts, OfTheEngineCanBeRead) {
  const base::Result<std::vector<Excerpt>> all = all_excerpts(SHARDBOOK_SOURCE_DIR);
  ASSERT_TRUE(all.ok()) << all.error();
  EXPECT_GT(all.value().size(), 10u);
}

TEST(Lab, IsFoundByItsNumberInAnyForm) {
  for (const char* name : {"02", "2", "02_tensor_parallel"}) {
    EXPECT_EQ(find_lab(SHARDBOOK_SOURCE_DIR, name).value().name, "02_tensor_parallel") << name;
  }
  EXPECT_EQ(find_lab(SHARDBOOK_SOURCE_DIR, "0").value().name, "00_timeline");
  EXPECT_EQ(find_lab(SHARDBOOK_SOURCE_DIR, "99").ok(), false);
}

TEST(Lab, WhatRunCannotReadIsNamedByEntryAndKey) {
  const std::filesystem::path root = std::filesystem::temp_directory_path() / ("shardbook-book-" + std::to_string(::getpid()));
  std::filesystem::create_directories(root / "labs/05_x");
  const auto error_of = [&](const std::string& keys) {
    std::ofstream(root / "labs/05_x/lab.json") << R"({"title": {"en": "t"})" << keys << "}";
    const std::string error = find_lab(root.string(), "05").error();
    return error.substr(error.find("lab.json: ") + 10);
  };
  EXPECT_EQ(error_of(R"(, "options": {}, "layouts": {"host": [{"tp": 1, "fsdp": 2}, {"fsdp": 2}], "cuda": []})"), "`layouts.host[1]` needs tp and fsdp, whole numbers of at least 1, and is {\"fsdp\":2}");
  EXPECT_EQ(error_of(R"(, "options": {}, "layouts": {"host": [{"tp": 1, "fsdp": 0}]})").find("`layouts.host[0]` needs tp and fsdp"), 0u);
  EXPECT_EQ(error_of(R"(, "options": {}, "layouts": {"host": [{"tp": 1, "fsdp": 2}]})").find("`layouts.cuda` is missing"), 0u);
  EXPECT_EQ(error_of("").find("`options` is missing"), 0u);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace shardbook::book
