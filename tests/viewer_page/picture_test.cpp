// Is a drawn diagram whole: everything inside, nothing on top of another, links under the pointer, valid as SVG?
#include <gtest/gtest.h>

#include <cmath>

#include "page_support.hpp"
#include "viewer/page/diagram_layout.hpp"

namespace shardbook::page {
namespace {

using test::measure;

Picture draw(const std::string& text) { return layout_diagram(parse_diagram(text), measure); }

void expect_whole(const Picture& picture, const std::string& what) {
  ASSERT_TRUE(picture.error.empty()) << what << ": " << picture.error;
  EXPECT_GT(picture.width, 0) << what;
  const auto inside = [&](Point point) { return point.x >= 0 && point.y >= 0 && point.x <= picture.width + 0.5f && point.y <= picture.height + 0.5f; };
  for (const auto* shapes : {&picture.shapes, &picture.over}) {
    for (const PictureShape& shape : *shapes) EXPECT_TRUE(inside(shape.min) && inside(shape.max)) << what;
  }
  for (const PictureLine& line : picture.lines) {
    for (const Point& point : line.points) EXPECT_TRUE(inside(point)) << what;
  }
  for (const PictureText& text : picture.texts) EXPECT_TRUE(inside({text.x, text.y}) && inside({text.x + text.w, text.y + 8})) << what << ": " << text.text;
}

// No two texts lie on each other.
void expect_readable(const Picture& picture, const std::string& what) {
  for (std::size_t i = 0; i < picture.texts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const PictureText &a = picture.texts[i], &b = picture.texts[j];
      const float wide = std::min(a.x + a.w, b.x + b.w) - std::max(a.x, b.x);
      const float high = std::min(a.y + measure.line_height(a.font), b.y + measure.line_height(b.font)) - std::max(a.y, b.y);
      EXPECT_FALSE(wide > 1 && high > 2) << what << ": `" << a.text << "` lies on `" << b.text << "`";
    }
  }
}

bool has_text(const Picture& picture, const std::string& words) {
  return std::any_of(picture.texts.begin(), picture.texts.end(), [&](const PictureText& text) { return text.text == words; });
}

TEST(Picture, EveryDiagramOfTheProjectIsWholeAndReadable) {
  for (const std::string& name : test::project_pages()) {
    test::each_block(test::project_page(name).blocks, [&](const Block& block) {
      if (block.kind != Block::Kind::diagram) return;
      const Picture picture = draw(block.text);
      expect_whole(picture, name);
      expect_readable(picture, name);
    });
  }
}

TEST(Picture, EveryDiagramThatMermaidAcceptsIsWhole) {
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(SHARDBOOK_SOURCE_DIR) / "tests/mermaid")) {
    if (entry.path().extension() != ".mmd") continue;
    const std::string text = test::content(entry.path()), name = entry.path().stem().string();
    const Picture picture = draw(text);
    if (!parse_diagram(text).ok) {
      EXPECT_FALSE(picture.error.empty()) << name;
      EXPECT_FALSE(error_picture(picture.error, text, measure).shapes.empty());
      continue;
    }
    expect_whole(picture, name);
    if (name != "sequence_half_arrows") expect_readable(picture, name);
  }
}

TEST(Picture, FlowchartsFollowTheirDirection) {
  const auto place = [&](const Picture& picture, const std::string& words) {
    for (const PictureText& text : picture.texts) {
      if (text.text == words) return Point{text.x, text.y};
    }
    return Point{};
  };
  const Picture right = draw("flowchart LR\n a --> b\n"), down = draw("flowchart TB\n a --> b\n"), left = draw("flowchart RL\n a --> b\n"), up = draw("flowchart BT\n a --> b\n");
  EXPECT_LT(place(right, "a").x, place(right, "b").x);
  EXPECT_LT(place(down, "a").y, place(down, "b").y);
  EXPECT_GT(place(left, "a").x, place(left, "b").x);
  EXPECT_GT(place(up, "a").y, place(up, "b").y);
}

TEST(Picture, NodesDoNotOverlap) {
  const Picture picture = draw("flowchart TB\n a & b & c --> d{decide} & e((e)) --> f[(store)]\n f --> g & h & i\n");
  for (std::size_t i = 0; i < picture.shapes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const PictureShape &a = picture.shapes[i], &b = picture.shapes[j];
      EXPECT_FALSE(a.min.x < b.max.x && b.min.x < a.max.x && a.min.y < b.max.y && b.min.y < a.max.y);
    }
  }
}

TEST(Picture, SubgraphsWithTheirOwnDirectionAreLaidOutByThemselves) {
  const Picture picture = draw("flowchart LR\n subgraph s [Title]\n  direction TB\n  a --> b\n end\n s --> c\n");
  Point a, b, c;
  for (const PictureText& text : picture.texts) {
    if (text.text == "a") a = {text.x, text.y};
    if (text.text == "b") b = {text.x, text.y};
    if (text.text == "c") c = {text.x, text.y};
  }
  EXPECT_LT(a.y, b.y);
  EXPECT_NEAR(a.x, b.x, 2);
  EXPECT_GT(c.x, a.x);
  EXPECT_TRUE(has_text(picture, "Title"));
}

TEST(Picture, LinksAreUnderThePointer) {
  const Picture picture = draw("flowchart LR\n a((round)) --> b\n click a \"lab:02#run\" \"a tip\"\n");
  const PictureShape& circle = picture.shapes[0];
  const PictureShape* hit = picture.link_at((circle.min.x + circle.max.x) / 2, (circle.min.y + circle.max.y) / 2);
  ASSERT_NE(hit, nullptr);
  EXPECT_EQ(hit->link, "lab:02#run");
  EXPECT_EQ(picture.link_at(circle.min.x + 1, circle.min.y + 1), nullptr) << "the corner of a circle's square is outside";
  EXPECT_EQ(picture.link_at(picture.width - 1, 1), nullptr);
}

TEST(Picture, ColoursOfTheAuthorAreUsedAndTextStaysReadable) {
  const Picture picture = draw("flowchart LR\n a --> b\n style a fill:#000\n style b fill:#ffffff\n");
  EXPECT_EQ(picture.shapes[0].fill.rgba, 0x000000ffu);
  EXPECT_EQ(picture.texts[0].colour.rgba, 0xffffffffu);
  EXPECT_EQ(picture.texts[1].colour.rgba, 0x111111ffu);
}

TEST(Picture, ColoursAreReadAsInCss) {
  EXPECT_EQ(parse_colour("#f80"), 0xff8800ffu);
  EXPECT_EQ(parse_colour("#11223344"), 0x11223344u);
  EXPECT_EQ(parse_colour(" Red "), 0xff0000ffu);
  EXPECT_EQ(parse_colour("rgb(1, 2, 3)"), 0x010203ffu);
  EXPECT_EQ(parse_colour("rgba(0,0,255,.5)"), 0x0000ff80u);
  EXPECT_EQ(parse_colour("transparent"), 0u);
  for (const char* wrong : {"", "#12", "#xyz", "reddish", "rgb(1,2)", "rgb(a,b,c)"}) EXPECT_FALSE(parse_colour(wrong).has_value()) << wrong;
}

double contrast(std::uint32_t one, std::uint32_t other) {
  const auto light = [](std::uint32_t rgba) {
    const auto linear = [](std::uint32_t byte) {
      const double c = (byte & 255) / 255.0;
      return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(rgba >> 24) + 0.7152 * linear(rgba >> 16) + 0.0722 * linear(rgba >> 8);
  };
  const double a = light(one), b = light(other);
  return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
}

TEST(Picture, TextHasAAContrastOnEveryGround) {
  for (const bool dark : {false, true}) {
    const std::uint32_t page = dark ? 0x16191dff : 0xffffffff;
    for (const Role ground : {Role::node_fill, Role::note_fill, Role::label_fill, Role::bar, Role::bar_done, Role::bar_active}) {
      EXPECT_GE(contrast(colour_of(Role::text, dark), colour_of(ground, dark)), 4.5) << static_cast<int>(ground) << (dark ? " dark" : " light");
    }
    EXPECT_GE(contrast(colour_of(Role::text, dark), page), 4.5);
    EXPECT_GE(contrast(colour_of(Role::muted_text, dark), page), 4.5);
    EXPECT_GE(contrast(colour_of(Role::edge, dark), page), 3.0);
    EXPECT_GE(contrast(colour_of(Role::node_stroke, dark), page), 3.0);
  }
}

TEST(Picture, GroundsOfTheAuthorLeaveTextsReadable) {
  for (const char* ground : {"rgb(255, 255, 255)", "rgb(0, 0, 0)", "rgb(200, 220, 255)", "navy"}) {
    const Picture picture = draw(std::string("sequenceDiagram\n rect ") + ground + "\n A->>B: x\n end\n");
    ASSERT_TRUE(std::any_of(picture.shapes.begin(), picture.shapes.end(), [](const PictureShape& shape) { return shape.fill.rgba.has_value(); })) << ground;
    for (const PictureShape& shape : picture.shapes) {
      if (!shape.fill.rgba) continue;
      for (const bool dark : {false, true}) {
        // The ground over the page.
        const std::uint32_t page = dark ? 0x16191dff : 0xffffffff, share = *shape.fill.rgba & 255;
        std::uint32_t mixed = 0xff;
        for (const int shift : {8, 16, 24}) {
          mixed |= ((((*shape.fill.rgba >> shift) & 255) * share + ((page >> shift) & 255) * (255 - share)) / 255) << shift;
        }
        EXPECT_GE(contrast(colour_of(Role::text, dark), mixed), 4.5) << ground << (dark ? " dark" : " light");
      }
    }
  }
}

TEST(Picture, SequenceColumnsLeaveRoomForTheirTexts) {
  const Picture picture = draw("sequenceDiagram\n A->>B: a rather long text between the first two\n B->>C: short\n A->>C: over both of them, and this one is longer than the two others together\n");
  expect_whole(picture, "columns");
  expect_readable(picture, "columns");
}

TEST(Picture, GanttBarsLieOverTheirTimes) {
  const Picture picture = draw("gantt\n dateFormat YYYY-MM-DD\n a :a, 2024-01-01, 4d\n b :after a, 4d\n");
  ASSERT_EQ(picture.over.size(), 2u);
  EXPECT_NEAR(picture.over[0].max.x, picture.over[1].min.x, 0.5f);
  EXPECT_NEAR(picture.over[0].max.x - picture.over[0].min.x, picture.over[1].max.x - picture.over[1].min.x, 0.5f);
  EXPECT_TRUE(has_text(picture, "2024-01-03"));
}

TEST(Picture, TooManyNodesAreSaidNotDrawn) {
  std::string text = "flowchart LR\n";
  for (int i = 0; i < 700; ++i) text += "n" + std::to_string(i) + "\n";
  EXPECT_EQ(draw(text).error, "the flowchart has 700 nodes and 0 links; up to 600 and 1800 are drawn");
}

TEST(Picture, AnErrorIsABoxWithReasonAndText) {
  const std::string text = "flowchart LR\n  a -> b\n";
  const Picture wrong = draw(text);
  EXPECT_EQ(wrong.error.substr(0, 8), "line 2: ");
  const Picture box = error_picture(wrong.error, text, measure);
  EXPECT_EQ(box.shapes.size(), 1u);
  EXPECT_GE(box.texts.size(), 2u);
  EXPECT_EQ(box.texts[0].text.substr(0, 8), "line 2: ");
}

TEST(PictureSvg, EscapesTextsAndKeepsOutScripts) {
  const Picture picture = draw("flowchart LR\n a[\"x < y & #quot;z#quot;\"] --> b --> c\n click a \"https://example.com/?a=1&b=2\"\n click b \"javascript:alert(1)\"\n click c \"../notes/map.md\"\n");
  for (const bool dark : {false, true}) {
    PictureTheme theme;
    theme.dark = dark;
    const std::string svg = picture_svg(picture, theme);
    EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
    EXPECT_NE(svg.find("x &lt; y &amp; &quot;z&quot;"), std::string::npos);
    EXPECT_NE(svg.find("<a href=\"https://example.com/?a=1&amp;b=2\">"), std::string::npos);
    EXPECT_NE(svg.find("<a href=\"../notes/map.md\">"), std::string::npos);
    EXPECT_EQ(svg.find("javascript"), std::string::npos);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
  }
}

}  // namespace
}  // namespace shardbook::page
