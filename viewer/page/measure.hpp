// page/measure: how wide is this text? The one thing that layout asks of the fonts.
#pragma once

#include <string_view>

namespace shardbook::page {

enum class FontKind { body, bold, italic, bold_italic, mono, heading1, heading2, heading3, small };

// Pixels of one scale. Widths add up: width(ab) is width(a) + width(b), as in an atlas without kerning.
class Measure {
 public:
  virtual ~Measure() = default;
  virtual float width(std::string_view utf8, FontKind font) const = 0;
  virtual float line_height(FontKind font) const = 0;
};

// A stand-in without fonts: each character is as wide as its font's average. For tests, and where there is no display.
class PlainMeasure : public Measure {
 public:
  explicit PlainMeasure(float size = 16) : size_(size) {}
  float width(std::string_view utf8, FontKind font) const override;
  float line_height(FontKind font) const override;

 private:
  float size_;
};

}  // namespace shardbook::page
