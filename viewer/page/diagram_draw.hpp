// page/diagram_draw: small things that all diagram layouts need: blocks of text, heads of arrows, colours of styles.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "viewer/page/diagram.hpp"
#include "viewer/page/picture.hpp"

namespace shardbook::page {

// A label in lines, measured.
struct TextBlock {
  std::vector<std::string> lines;
  std::vector<float> widths;
  float width = 0, height = 0, line_height = 0;
  FontKind font = FontKind::body;
};

// Lines end at '\n' and where a word would pass `most` pixels. At most 40 lines; the rest is "…".
TextBlock text_block(std::string_view text, FontKind font, const Measure& measure, float most);

enum class Anchor { left, centre };
// Puts the lines with their block's top at y; x is its left edge or its middle.
void put_text(Picture& picture, const TextBlock& block, float x, float y, Anchor anchor, const Colour& colour);

// The head of a line that ends at `tip`, coming from `base`.
void put_head(Picture& picture, Head head, Point base, Point tip, const Colour& colour, bool open = false);

// What styles say of a shape: fill, stroke, colour of text, width, dashes.
struct Look {
  Colour fill, stroke, text;
  float thickness = 1;
  bool dashed = false;
};
void apply(Look& look, const Styles& styles);
// Dark text on light ground and light on dark, where the author chose a fill and no colour of text.
void settle_text(Look& look);

// The shapes and texts of one picture, moved by (dx, dy) into another.
void insert(Picture& into, const Picture& part, float dx, float dy);
// The smallest rectangle of all parts grows the picture: moves it so that nothing is left of 0 and above 0.
void fit(Picture& picture, float margin);

// Layouts of each kind. REQUIRES: diagram.ok.
Picture layout_flowchart(const Diagram& diagram, const Measure& measure, std::size_t most_nodes);
Picture layout_sequence(const Diagram& diagram, const Measure& measure);
Picture layout_gantt(const Diagram& diagram, const Measure& measure, float width);

}  // namespace shardbook::page
