// Links: read, written, resolved, refused.
#include "viewer/scene/link.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace shardbook::scene {

using base::Nanoseconds;

namespace {

Link parsed(const std::string& text, const std::string& page = "") {
  const base::Result<Link> link = parse_link(text, page);
  EXPECT_TRUE(link.ok()) << (link.ok() ? "" : link.error());
  return link.ok() ? link.value() : Link{};
}

TEST(Link, SaysAnExactViewOfARun) {
  const Link link = parsed("trace:experiments/captured/fsdp8?t=1.2ms..1900us&pin=r0.s20&pin=r1.exposed&open=r0&sel=r0.s20/117");
  EXPECT_EQ(link.kind, Link::Kind::trace);
  EXPECT_EQ(link.target, "experiments/captured/fsdp8");
  EXPECT_EQ(link.start, 1'200'000);
  EXPECT_EQ(link.end, 1'900'000);
  EXPECT_EQ(link.pins, (std::vector<std::string>{"r0.s20", "r1.exposed"}));
  EXPECT_EQ(link.open, std::vector<std::string>{"r0"});
  EXPECT_EQ(link.selected, "r0.s20/117");
  EXPECT_EQ(parsed("trace:").target, "");
  EXPECT_EQ(parsed("trace:?sel=next-exposed").selected, "next-exposed");
  EXPECT_EQ(parsed("trace:a%20b?t=0ns..1.000000001s").target, "a b");
  EXPECT_EQ(parsed("trace:?t=0ns..1.000000001s").end, 1'000'000'001);
  EXPECT_EQ(parsed("trace:?t=-3µs..2µs").start, -3000);
}

TEST(Link, NamesPagesSpansSourcesAndTheWeb) {
  EXPECT_EQ(parsed("lab:02#overlap"), (Link{Link::Kind::page, "labs/02", "overlap"}));
  EXPECT_EQ(parsed("note:03#cost"), (Link{Link::Kind::page, "notes/03", "cost"}));
  EXPECT_EQ(parsed("room:fsdp"), (Link{Link::Kind::page, "notes/rooms/fsdp.md"}));
  EXPECT_EQ(parsed("span:fsdp.prefetch"), (Link{Link::Kind::span, "fsdp.prefetch"}));
  EXPECT_EQ(parsed("source:engine/fsdp/schedule.cpp:118"), (Link{Link::Kind::source, "engine/fsdp/schedule.cpp", "", 118}));
  EXPECT_EQ(parsed("https://example.org/a?b#c"), (Link{Link::Kind::web, "https://example.org/a?b#c"}));
}

TEST(Link, OfAPageIsResolvedAgainstItsFolder) {
  const std::string page = "notes/rooms/fsdp.md";
  EXPECT_EQ(parsed("../../engine/fsdp/schedule.cpp#L118", page), (Link{Link::Kind::source, "engine/fsdp/schedule.cpp", "", 118}));
  EXPECT_EQ(parsed("../03_tensor_parallel.md#x", page), (Link{Link::Kind::page, "notes/03_tensor_parallel.md", "x"}));
  EXPECT_EQ(parsed("#cost", page), (Link{Link::Kind::page, page, "cost"}));
  EXPECT_EQ(parsed("./mesh.md", page), (Link{Link::Kind::page, "notes/rooms/mesh.md"}));
  EXPECT_EQ(parsed("engine/fsdp/", "README.md"), (Link{Link::Kind::source, "engine/fsdp"}));
}

TEST(Link, ThatCannotBeReadIsOneSentenceThatNamesThePart) {
  const auto error = [](const std::string& text, const std::string& page = "notes/a.md") {
    const base::Result<Link> link = parse_link(text, page);
    EXPECT_FALSE(link.ok()) << text;
    return link.ok() ? "" : link.error();
  };
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"trace:run?zoom=3", "zoom"}, {"trace:run?t=1ms", "t=1ms"}, {"trace:run?t=2ms..1ms", "t=2ms..1ms"},
           {"trace:run?t=1..2", "t=1..2"}, {"trace:run?t=0.1ns..2ns", "t=0.1ns"}, {"trace:run?pin=", "pin="}, {"trace:run?sel=7", "sel=7"},
           {"trace:run?t=9999999999999999s..2ns", "t="}, {"trace:run?open", "open"}, {"javascript:alert(1)", "javascript"},
           {"../../etc/passwd", "../../etc/passwd"}, {"/etc/passwd", "/etc/passwd"}, {"source:a.cpp:x", "x"},
           {"source:../a.cpp", "../a.cpp"}, {"span:", "span"}, {"lab:", "page"}, {"lab:../x", "../x"}, {"a.cpp#x", "#x"}, {"", "empty"}}) {
    EXPECT_NE(error(text).find(part), std::string::npos) << text << ": " << error(text);
  }
  EXPECT_FALSE(parse_link("#here").ok()) << "an anchor of no page";
}

TEST(Link, IsReadAsItWasWritten) {
  std::mt19937 random(31);
  const auto any = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  const auto word = [&](const std::string& letters) {
    std::string out = "r";
    for (int i = any(6); i >= 0; --i) out += letters[static_cast<std::size_t>(any(static_cast<int>(letters.size()) - 1))];
    return out;
  };
  for (int turn = 0; turn < 2000; ++turn) {
    Link link;
    switch (any(3)) {
      case 0:
        link.kind = Link::Kind::trace;
        link.target = any(1) == 0 ? "" : word("ab/ %?&#=ñ<\"");
        if (any(1) == 0) {
          link.start = std::uniform_int_distribution<Nanoseconds>(-1'000'000, 1'000'000'000'000)(random);
          link.end = *link.start + 1 + any(1'000'000);
        }
        for (int i = any(2); i > 0; --i) link.pins.push_back(word("s12.h"));
        for (int i = any(2); i > 0; --i) link.open.push_back(word("0123"));
        if (any(1) == 0) link.selected = any(1) == 0 ? "next-exposed" : word("12.s") + "/7";
        break;
      case 1: link = {Link::Kind::page, any(1) == 0 ? "labs/" + word("0123_") : "notes/" + word("ab _#") + ".md", any(1) == 0 ? "" : word("abc- #%")}; break;
      case 2: link = {Link::Kind::source, "engine/" + word("ab _%#"), "", any(300)}; break;
      default: link = {Link::Kind::span, word("ab._")};
    }
    const base::Result<Link> back = parse_link(link_text(link));
    ASSERT_TRUE(back.ok()) << link_text(link) << ": " << back.error();
    ASSERT_EQ(back.value(), link) << link_text(link);
  }
}

// What the fuzzer of fuzz/ holds true, for the small corpus that is kept beside it.
TEST(Link, CorpusOfTheFuzzerIsReadOrRefused) {
  const std::filesystem::path folder = std::filesystem::path(SHARDBOOK_SOURCE_DIR) / "tests/viewer_scene/fuzz/corpus/link";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (const char* page : {"", "notes/rooms/fsdp.md"}) {
      const base::Result<Link> link = parse_link(text, page);
      if (!link.ok()) {
        EXPECT_FALSE(link.error().empty());
        continue;
      }
      const base::Result<Link> back = parse_link(link_text(link.value()));
      ASSERT_TRUE(back.ok()) << text << " -> " << link_text(link.value()) << ": " << back.error();
      EXPECT_EQ(back.value(), link.value()) << text;
    }
    ++files;
  }
  EXPECT_GE(files, 10);
}

}  // namespace
}  // namespace shardbook::scene
