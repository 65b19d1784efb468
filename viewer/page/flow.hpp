// page/flow: where does each word of a page stand, for a width?
//
// Laid out once a width; drawing, hit-testing, selection, copying and search then only look things up.
// The page's plain text is kept, and each text box knows its bytes of it, so a selection is a range of offsets.
//
// Boxes are text and at most a line high; everything else is a decoration, drawn before them. Both are sorted by y.
// Code and tables that are wider than the page lie in a region, which scrolls sideways on its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "viewer/page/document.hpp"
#include "viewer/page/highlight.hpp"
#include "viewer/page/measure.hpp"

namespace shardbook::page {

// A piece of a line in one font and style. The text is FlowLayout::text[begin, end).
struct TextBox {
  float x = 0, y = 0, w = 0, h = 0;      // y is the top of the text's own line height
  FontKind font = FontKind::body;
  unsigned style = Style::plain;
  TokenKind token = TokenKind::plain;    // of code
  int link = -1;                         // into FlowLayout::links
  int region = -1;                       // into FlowLayout::regions
  std::uint32_t begin = 0, end = 0;
};

struct Decoration {
  enum class Kind { code_background, quote_bar, admonition_background, admonition_bar, table_header, table_line, rule,
                    image, diagram, span_header, task_open, task_done };
  Kind kind = Kind::rule;
  float x = 0, y = 0, w = 0, h = 0;
  int region = -1;
  std::string name;                      // admonition: NOTE ...; image: path; diagram: its text; span_header: the span's name
  const Block* block = nullptr;          // image, diagram, span_header: of the document, which must outlive the layout
};

// A part that scrolls sideways when content_width > w.
struct Region {
  float x = 0, y = 0, w = 0, h = 0;
  float content_width = 0;
};

struct FlowOptions {
  float width = 600;
  // What diagrams may take, the column in its middle; no less than `width`. Lines of words are no longer for it.
  float wide = 0;
  // The size of an image or a diagram on the page, for a width at most; {0, 0}: not known, a line is kept for its text.
  std::function<std::pair<float, float>(const Block&, float width)> size_of;
};

struct FlowLayout {
  std::vector<TextBox> boxes;
  std::vector<Decoration> decorations;
  std::vector<Region> regions;
  std::vector<std::pair<std::string, float>> anchors;   // id, y; headings too
  std::vector<std::string> links;
  std::string text;                                     // plain, lines parted by '\n', cells by '\t'
  float width = 0, height = 0;

  std::string_view text_of(const TextBox& box) const;
  // Indices [first, last) of the boxes that top <= y < bottom may show.
  std::pair<std::size_t, std::size_t> visible(float top, float bottom) const;
  // The same of decorations. (Those may be tall: some in the range may end above `top`.)
  std::pair<std::size_t, std::size_t> visible_decorations(float top, float bottom) const;
  // What a selection from a to b copies. Either order.
  std::string text_between(std::uint32_t a, std::uint32_t b) const;
  // The offset nearest to a point of the page, for a selection. (In a region that is scrolled, add its scroll to x.)
  std::uint32_t offset_at(float x, float y, const Measure& measure) const;
  // The box under a point, or -1.
  int box_at(float x, float y) const;
  // Offsets [begin, end) of all places that hold the words; letters A to Z match both cases, any blank matches a line's end.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> find(std::string_view query) const;
  // Rectangles that cover the range, a piece a box (x, y, w, h; region as of the box; begin, end the part covered).
  std::vector<TextBox> boxes_of(std::uint32_t begin, std::uint32_t end, const Measure& measure) const;
  // The y of an anchor, or -1.
  float anchor_y(std::string_view id) const;

  std::vector<std::uint32_t> by_offset;                 // boxes in the order of their text
  std::vector<float> lowest_until;                      // of decorations: the greatest y + h so far
  float tallest = 0;                                    // h of the tallest box
};

// Memory is linear in the document, and so is the work but for one sort of the boxes by y.
FlowLayout flow(const Document& document, const FlowOptions& options, const Measure& measure);

}  // namespace shardbook::page
