#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/json.hpp"

namespace shardbook::base {
namespace {

TEST(Json, IsReadAndWrittenAsTextInTheOrderOfItsKind) {
  const std::string text = R"({"b":1,"a":[true,null,"x"]})";
  EXPECT_EQ(json_text(parse_json(text)), R"({"a":[true,null,"x"],"b":1})");
  EXPECT_EQ(json_text(parse_ordered_json(text)), text);
  EXPECT_EQ(json_text(try_parse_ordered_json("[1]"), 2), "[\n  1\n]");
  EXPECT_TRUE(is_json(text));
}

TEST(Json, ThatIsNoneIsToldOrThrown) {
  for (const char* wrong : {"", "{", "{\"a\":1}x", "[1,]", "nul"}) {
    EXPECT_TRUE(try_parse_json(wrong).is_discarded()) << wrong;
    EXPECT_TRUE(try_parse_ordered_json(wrong).is_discarded()) << wrong;
    EXPECT_FALSE(is_json(wrong)) << wrong;
    EXPECT_THROW(parse_json(wrong), nlohmann::json::parse_error) << wrong;
    EXPECT_THROW(parse_ordered_json(wrong), nlohmann::ordered_json::parse_error) << wrong;
  }
}

TEST(Json, ThatNestsTooDeepIsRefusedBeforeItIsKept) {
  bool too_deep = true;
  EXPECT_EQ(json_text(parse_json("[[1]]", 2, too_deep)), "[[1]]");
  EXPECT_FALSE(too_deep);
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  try_parse_json(deep, 8, too_deep);
  EXPECT_TRUE(too_deep);
  too_deep = false;
  parse_json(deep, 8, too_deep);
  EXPECT_TRUE(too_deep);
}

TEST(Json, SaysWhichKeyAnObjectNamesTwice) {
  bool too_deep = true;
  std::string twice = "of before";
  EXPECT_EQ(json_text(try_parse_json(R"({"a":{"b":1},"c":{"b":2,"a":3}})", 2, too_deep, twice)), R"({"a":{"b":1},"c":{"a":3,"b":2}})");
  EXPECT_FALSE(too_deep);
  EXPECT_EQ(twice, "");
  EXPECT_EQ(json_text(try_parse_json(R"({"a":[{"b":1},{"b":2,"b":3}]})", 4, too_deep, twice)), R"({"a":[{"b":1},{"b":3}]})");
  EXPECT_EQ(twice, "b");
  try_parse_json(R"({"a":1,"a":{"b":{}}})", 2, too_deep, twice);
  EXPECT_EQ(twice, "a");
  try_parse_json(std::string(200'000, '['), 2, too_deep, twice);
  EXPECT_TRUE(too_deep);
}

TEST(Json, ReplacesWhatIsNoUtf8AndSpellsOutLettersWhereAsked) {
  EXPECT_EQ(json_text(nlohmann::json("a\xff" "b")), "\"a\xef\xbf\xbd" "b\"");
  EXPECT_THROW(json_text_or_throw(nlohmann::json("a\xff")), nlohmann::json::type_error);
  EXPECT_THROW(json_text_or_throw(nlohmann::ordered_json("a\xff"), 2), nlohmann::ordered_json::type_error);
  EXPECT_EQ(json_text_or_throw(nlohmann::json("\xc3\xa9")), "\"\xc3\xa9\"");
  EXPECT_EQ(json_text(nlohmann::json("\xc3\xa9")), "\"\xc3\xa9\"");
  EXPECT_EQ(json_text(nlohmann::json("\xc3\xa9"), -1, true), "\"\\u00e9\"");
}

}  // namespace
}  // namespace shardbook::base
