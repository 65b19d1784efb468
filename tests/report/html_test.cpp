// What text of a trace becomes on its way into a page.
#include "engine/report/html.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace shardbook::report {
namespace {

TEST(Html, TextIsNothingButText) {
  EXPECT_EQ(escaped("<script>alert('a' & \"b\")</script>"), "&lt;script&gt;alert(&#39;a&#39; &amp; &quot;b&quot;)&lt;/script&gt;");
  EXPECT_EQ(escaped("größe µs ✓ 𝄞"), "größe µs ✓ 𝄞");
}

TEST(Html, WhatIsNoTextIsReplaced) {
  const std::string sign = "\xef\xbf\xbd";
  EXPECT_EQ(escaped(std::string("a\0b\x1b[31m\x7f", 9)), "a" + sign + "b" + sign + "[31m" + sign);
  EXPECT_EQ(escaped("\xff\xc3"), sign + sign);
  EXPECT_EQ(escaped("\xc0\xbc"), sign + sign) << "a < that is written longer than it need be";
  EXPECT_EQ(escaped("\xed\xa0\x80"), sign + sign + sign) << "a half of a pair";
  EXPECT_EQ(escaped("safe\u202Egpj.exe\u2066"), "safe" + sign + "gpj.exe" + sign) << "signs that turn the direction of text";
}

TEST(Html, LongTextLosesItsMiddle) {
  EXPECT_EQ(shortened("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shortened("abcdefghijk", 7), "abcd…jk");
  EXPECT_EQ(shortened("ääääääöööööö", 7), "ääää…öö");
  for (std::size_t most = 3; most < 14; ++most) EXPECT_LE(characters(shortened("µµµµµµµµµµµµ", most)), most);
}

TEST(Html, ElementsEscapeTheirAttributesAndKeepTheirInside) {
  EXPECT_EQ(element("p", {{"class", "a\"><b"}}, "<i>x</i>"), "<p class=\"a&quot;&gt;&lt;b\"><i>x</i></p>");
}

TEST(Html, TimesAreExactToTheNanosecond) {
  EXPECT_EQ(milliseconds(134'502'167), "134.502167");
  EXPECT_EQ(milliseconds(7), "0.000007");
  EXPECT_EQ(milliseconds(-1'000'007), "-1.000007");
  EXPECT_EQ(milliseconds(std::numeric_limits<base::Nanoseconds>::min()), "-9223372036854.775808");
  EXPECT_EQ(percent(1, 3), "33.3 %");
  EXPECT_EQ(percent(1, 0), "–");
}

TEST(Html, CoordinatesAreTenths) {
  EXPECT_EQ(coordinate(12), "12");
  EXPECT_EQ(coordinate(12.46), "12.5");
  EXPECT_EQ(coordinate(-0.31), "-0.3");
  EXPECT_EQ(coordinate(-0.01), "0");
}

}  // namespace
}  // namespace shardbook::report
