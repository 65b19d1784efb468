// page/measure: the stand-in without fonts; see measure.hpp.
#include "viewer/page/measure.hpp"

#include <algorithm>

namespace shardbook::page {

namespace {

// As a share of the body size: a font's size, and the mean advance of a character in it.
struct Proportion {
  float size, advance;
};
Proportion proportion_of(FontKind font) {
  switch (font) {
    case FontKind::heading1: return {1.75f, 0.60f};
    case FontKind::heading2: return {1.4f, 0.60f};
    case FontKind::heading3: return {1.15f, 0.60f};
    case FontKind::bold:
    case FontKind::bold_italic: return {1, 0.60f};
    case FontKind::mono: return {0.95f, 0.602f};
    case FontKind::small: return {0.8f, 0.55f};
    case FontKind::body:
    case FontKind::italic: break;
  }
  return {1, 0.55f};
}

}  // namespace

float PlainMeasure::width(std::string_view utf8, FontKind font) const {
  const auto characters = std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  const Proportion share = proportion_of(font);
  return static_cast<float>(characters) * size_ * share.size * share.advance;
}

float PlainMeasure::line_height(FontKind font) const { return size_ * proportion_of(font).size * 1.25f; }

}  // namespace shardbook::page
