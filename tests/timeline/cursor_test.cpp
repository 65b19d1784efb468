// Numbers and strings of a trace file, digit by digit.
#include <gtest/gtest.h>

#include "engine/timeline/json_cursor.hpp"

namespace shardbook::timeline {
namespace {

// Microseconds in text -> nanoseconds; -1 if refused. A blank follows, as in a file.
std::int64_t nanoseconds(const std::string& text) {
  const std::string padded = text + " ";
  JsonCursor cursor(padded);
  std::int64_t ns = 0;
  return cursor.microseconds(ns) ? ns : -1;
}

TEST(Microseconds, AreReadAsDecimalsNeverThroughADouble) {
  EXPECT_EQ(nanoseconds("0.001"), 1);
  EXPECT_EQ(nanoseconds("12"), 12'000);
  EXPECT_EQ(nanoseconds("12.5"), 12'500);
  EXPECT_EQ(nanoseconds("12.05"), 12'050);
  EXPECT_EQ(nanoseconds("4362090080153.509"), 4'362'090'080'153'509);
  // As a double this is ...776.125: 53 bits do not hold it.
  EXPECT_EQ(nanoseconds("9007199254740993.001"), 9'007'199'254'740'993'001);
  EXPECT_EQ(nanoseconds("-3.007"), -3'007);
  EXPECT_EQ(nanoseconds("\"8.25\""), 8'250);
}

TEST(Microseconds, MayHaveAnExponent) {
  EXPECT_EQ(nanoseconds("1.5e3"), 1'500'000);
  EXPECT_EQ(nanoseconds("1.23456789E+6"), 1'234'567'890);
  EXPECT_EQ(nanoseconds("25e-1"), 2'500);
  EXPECT_EQ(nanoseconds("0e999999999"), 0);
  EXPECT_EQ(nanoseconds("1e-999999999"), 0);
}

TEST(Microseconds, CutOffWhatIsFinerThanANanosecond) {
  EXPECT_EQ(nanoseconds("1.9999999"), 1'999);
  EXPECT_EQ(nanoseconds("0.0009"), 0);
  EXPECT_EQ(nanoseconds("0.10000000000000000000000000000001"), 100);
}

TEST(Microseconds, ThatDoNotFitAreRefused) {
  EXPECT_EQ(nanoseconds("9223372036854775.807"), 9'223'372'036'854'775'807);
  EXPECT_EQ(nanoseconds("9223372036854775.808"), -1);
  EXPECT_EQ(nanoseconds("99999999999999999999999999"), -1);
  EXPECT_EQ(nanoseconds("1e40"), -1);
  EXPECT_EQ(nanoseconds("."), -1);
  EXPECT_EQ(nanoseconds("-"), -1);
  EXPECT_EQ(nanoseconds("null"), -1);
}

TEST(Microseconds, ThatTouchTheEndOfTheTextMayBeCutOff) {
  JsonCursor cursor("12");
  std::int64_t ns = 0;
  EXPECT_FALSE(cursor.microseconds(ns));
  EXPECT_TRUE(cursor.at_end());
}

TEST(Strings, ResolveTheirEscapes) {
  std::string scratch;
  EXPECT_EQ(decode({R"(a\"b\\c\/d\n\t)", true}, scratch), "a\"b\\c/d\n\t");
  EXPECT_EQ(decode({R"(\u00b5s \u20AC)", true}, scratch), "µs €");
  EXPECT_EQ(decode({R"(\ud83d\ude00)", true}, scratch), "😀");
  EXPECT_EQ(decode({R"(\ud83d alone)", true}, scratch), "\xef\xbf\xbd alone");
  EXPECT_EQ(decode({R"(\u12)", true}, scratch), "\\u12");
}

TEST(Strings, EndAtTheFirstQuoteThatIsNotEscaped) {
  for (std::size_t length = 0; length < 40; ++length) {
    const std::string text = "\"" + std::string(length, 'x') + "\\\"y\" rest";
    JsonCursor cursor(text);
    RawString value;
    ASSERT_TRUE(cursor.string(value));
    EXPECT_EQ(value.raw, std::string(length, 'x') + "\\\"y");
    EXPECT_TRUE(value.escaped);
  }
}

TEST(Values, OfAnyKindAreSkippedWhole) {
  for (const char* value : {"1", "-1.5e3", "null", "true", "NaN", "-Infinity", "\"a\\\"b\"", "[]", "{}",
                            R"({"a": [1, {"b": "]}"}], "c": null})"}) {
    const std::string text = std::string(value) + ",next";
    JsonCursor cursor(text);
    EXPECT_TRUE(cursor.skip_value()) << value;
    EXPECT_TRUE(cursor.take(',')) << value;
  }
}

TEST(Values, OfAMillionBracketsAreRefusedWithoutRecursion) {
  const std::string text(1'000'000, '[');
  JsonCursor cursor(text);
  EXPECT_FALSE(cursor.skip_value());
  EXPECT_TRUE(cursor.at_end());
}

}  // namespace
}  // namespace shardbook::timeline
