// page/flow_lines: runs of text -> lines of boxes.
#pragma once

#include <vector>

#include "viewer/page/flow.hpp"

namespace shardbook::page {

// Where lines are written and how.
struct LineStyle {
  FontKind font = FontKind::body;        // of plain runs
  bool heading = false;                  // bold and italic runs keep `font`
  Alignment alignment = Alignment::left;
  int region = -1;
};

// Breaks runs into lines and appends boxes and text to a layout.
class LineBreaker {
 public:
  LineBreaker(FlowLayout& out, const Measure& measure) : out_(out), measure_(measure) {}

  // The lines of the runs from (x, y), at most `width` wide; the y below them. Words that do not fit are broken.
  float lines(const std::vector<Run>& runs, float x, float y, float width, const LineStyle& style);
  // One text in one font on one line; its width.
  float word(std::string_view text, float x, float y, FontKind font, unsigned style, int link, int region, TokenKind token = TokenKind::plain);

  struct Widths {
    float natural = 0, least = 0;        // on one line; its longest word
  };
  Widths widths(const std::vector<Run>& runs, const LineStyle& style) const;

 private:
  struct Piece {
    enum class Kind { word, blank, line_break } kind = Kind::word;
    std::size_t run = 0, begin = 0, end = 0;
    float width = 0;
  };

  FontKind font_of(const Run& run, const LineStyle& style) const;
  std::vector<Piece> pieces(const std::vector<Run>& runs, const LineStyle& style) const;
  // The first code points of a piece that fit; at least one.
  std::size_t fitting(const std::vector<Run>& runs, const Piece& piece, float room, const LineStyle& style, float& width) const;
  float place_line(const std::vector<Run>& runs, const std::vector<Piece>& line, float x, float y, float width, const LineStyle& style);

  FlowLayout& out_;
  const Measure& measure_;
};

}  // namespace shardbook::page
