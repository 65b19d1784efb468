// What must hold for any bytes: used by the fuzz targets, and by fuzz_replay_test on the kept corpus.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/support/fuzz.hpp"
#include "viewer/page/diagram_json.hpp"
#include "viewer/page/diagram_layout.hpp"
#include "viewer/page/flow.hpp"
#include "viewer/page/formula.hpp"
#include "viewer/page/highlight.hpp"
#include "viewer/page/markdown.hpp"

namespace shardbook::page::fuzz {

using tests::require;

inline const std::vector<book::Excerpt>& excerpts() {
  static const std::vector<book::Excerpt> one{{"a.b", "A title.", "engine/a.cpp", 3, {"int x = 1;", "  return x;"}}};
  return one;
}

// A page: parsed, laid out in two widths, selected, searched.
inline void check_markdown(std::string_view bytes) {
  const Document document = parse_markdown(bytes, "fuzz.md", excerpts());
  const PlainMeasure measure(16);
  for (const float width : {120.0f, 700.0f}) {
    FlowOptions options;
    options.width = width;
    options.size_of = [](const Block& block, float most) { return block.kind == Block::Kind::diagram ? std::pair{most, 100.0f} : std::pair{0.0f, 0.0f}; };
    const FlowLayout layout = flow(document, options, measure);
    require(std::isfinite(layout.height) && layout.height >= 0, "a page has a height");
    require(layout.by_offset.size() == layout.boxes.size(), "each box has its place in the text");
    std::uint32_t last = 0;
    for (const std::uint32_t index : layout.by_offset) {
      const TextBox& box = layout.boxes[index];
      require(box.begin >= last && box.begin <= box.end && box.end <= layout.text.size(), "boxes go through the text in order");
      require(std::isfinite(box.x) && std::isfinite(box.y) && std::isfinite(box.w), "a box has a place");
      require(box.link < static_cast<int>(layout.links.size()) && box.region < static_cast<int>(layout.regions.size()), "links and regions are there");
      last = box.end;
    }
    const auto [first, end] = layout.visible(0, 300);
    require(first <= end && end <= layout.boxes.size(), "what is visible is a range");
    const std::uint32_t offset = layout.offset_at(width / 2, layout.height / 2, measure);
    require(offset <= layout.text.size(), "an offset lies in the text");
    layout.boxes_of(offset / 2, offset, measure);
    layout.find(layout.text_between(offset, offset + 8));
  }
}

// A diagram: parsed, told as JSON, laid out, written as SVG.
inline void check_diagram(std::string_view bytes) {
  const Diagram diagram = parse_diagram(bytes);
  require(diagram.ok == diagram.error.empty(), "a diagram is understood or says why not");
  require(diagram.ok || diagram.error_line >= 1, "an error has a line");
  diagram_json(diagram);
  const PlainMeasure measure(16);
  Picture picture = layout_diagram(diagram, measure);
  require(picture.error.empty() || picture.shapes.empty(), "a picture or an error");
  if (!picture.error.empty()) picture = error_picture(picture.error, std::string(bytes), measure);
  require(std::isfinite(picture.width) && std::isfinite(picture.height), "a picture has a size");
  picture_svg(picture, {});
  picture.link_at(picture.width / 2, picture.height / 2);
}

// The first byte chooses; the rest is a formula or a program.
inline void check_text(std::string_view bytes) {
  if (bytes.empty()) return;
  const std::string_view text = bytes.substr(1);
  for (const FormulaRun& run : formula_runs(text)) {
    require(run.text.find('\\') == std::string::npos, "a formula shows no backslash");
    require(std::abs(run.raise) <= 64, "levels are bounded");
  }
  formula_text(text);
  constexpr const char* languages[] = {"cpp", "python", "sh", "json", "text"};
  std::size_t at = 0;
  for (const Token& token : highlight(text, languages[static_cast<unsigned char>(bytes[0]) % 5])) {
    require(token.begin == at && token.end > token.begin, "tokens follow one another");
    at = token.end;
  }
  require(at == text.size(), "tokens cover the text");
  parse_colour(text);
}

}  // namespace shardbook::page::fuzz
