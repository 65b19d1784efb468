// page/picture: colours and hit tests; see picture.hpp.
#include "viewer/page/picture.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "engine/diagram/diagram_source.hpp"

namespace shardbook::page {

using diagram::trimmed;

namespace {

struct NamedColour {
  std::string_view name;
  std::uint32_t rgb;
};
// The names of CSS that diagrams use most (CSS Color Module Level 4, section 6.1).
constexpr std::array<NamedColour, 62> named_colours{{
    {"black", 0x000000}, {"white", 0xffffff}, {"red", 0xff0000}, {"green", 0x008000}, {"blue", 0x0000ff}, {"yellow", 0xffff00},
    {"orange", 0xffa500}, {"purple", 0x800080}, {"gray", 0x808080}, {"grey", 0x808080}, {"silver", 0xc0c0c0}, {"maroon", 0x800000},
    {"olive", 0x808000}, {"lime", 0x00ff00}, {"aqua", 0x00ffff}, {"cyan", 0x00ffff}, {"teal", 0x008080}, {"navy", 0x000080},
    {"fuchsia", 0xff00ff}, {"magenta", 0xff00ff}, {"pink", 0xffc0cb}, {"brown", 0xa52a2a}, {"gold", 0xffd700}, {"indigo", 0x4b0082},
    {"violet", 0xee82ee}, {"beige", 0xf5f5dc}, {"coral", 0xff7f50}, {"crimson", 0xdc143c}, {"khaki", 0xf0e68c}, {"lavender", 0xe6e6fa},
    {"salmon", 0xfa8072}, {"tan", 0xd2b48c}, {"tomato", 0xff6347}, {"turquoise", 0x40e0d0}, {"wheat", 0xf5deb3}, {"plum", 0xdda0dd},
    {"orchid", 0xda70d6}, {"ivory", 0xfffff0}, {"azure", 0xf0ffff}, {"aliceblue", 0xf0f8ff}, {"lightblue", 0xadd8e6},
    {"lightgreen", 0x90ee90}, {"lightgray", 0xd3d3d3}, {"lightgrey", 0xd3d3d3}, {"lightyellow", 0xffffe0}, {"lightpink", 0xffb6c1},
    {"lightcyan", 0xe0ffff}, {"lightsalmon", 0xffa07a}, {"lightcoral", 0xf08080}, {"darkblue", 0x00008b}, {"darkgreen", 0x006400},
    {"darkred", 0x8b0000}, {"darkgray", 0xa9a9a9}, {"darkgrey", 0xa9a9a9}, {"darkorange", 0xff8c00}, {"skyblue", 0x87ceeb},
    {"steelblue", 0x4682b4}, {"royalblue", 0x4169e1}, {"forestgreen", 0x228b22}, {"seagreen", 0x2e8b57}, {"firebrick", 0xb22222},
    {"chocolate", 0xd2691e},
}};

std::optional<std::uint32_t> hexadecimal(std::string_view digits) {
  if (!std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isxdigit(c) != 0; })) return std::nullopt;
  std::string full;
  if (digits.size() == 3 || digits.size() == 4) {
    for (const char c : digits) full += {c, c};
  } else if (digits.size() == 6 || digits.size() == 8) {
    full = std::string(digits);
  } else {
    return std::nullopt;
  }
  if (full.size() == 6) full += "ff";
  return static_cast<std::uint32_t>(std::stoul(full, nullptr, 16));
}

std::optional<std::uint32_t> function_of(std::string_view css) {
  const std::size_t open = css.find('('), close = css.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  const std::string_view name = css.substr(0, open);
  if (name != "rgb" && name != "rgba") return std::nullopt;
  std::array<float, 4> parts{0, 0, 0, 1};
  std::size_t count = 0;
  const std::string inside(css.substr(open + 1, close - open - 1));
  for (std::size_t at = 0; at <= inside.size() && count < 4;) {
    const std::size_t end = std::min(inside.find_first_of(",/ ", at), inside.size());
    if (end > at) {
      char* stop = nullptr;
      const std::string one = inside.substr(at, end - at);
      parts[count] = std::strtof(one.c_str(), &stop);
      if (stop == one.c_str() || !std::isfinite(parts[count])) return std::nullopt;
      if (*stop == '%') parts[count] *= count < 3 ? 2.55f : 0.01f;
      ++count;
    }
    at = end + 1;
  }
  if (count < 3) return std::nullopt;
  const auto byte = [](float value) { return static_cast<std::uint32_t>(std::lround(std::clamp(value, 0.0f, 255.0f))); };
  return byte(parts[0]) << 24 | byte(parts[1]) << 16 | byte(parts[2]) << 8 | byte(parts[3] * 255);
}

bool holds(const PictureShape& shape, float x, float y) {
  if (x < shape.min.x || x > shape.max.x || y < shape.min.y || y > shape.max.y) return false;
  if (shape.kind == PictureShape::Kind::ellipse) {
    const float a = (shape.max.x - shape.min.x) / 2, b = (shape.max.y - shape.min.y) / 2;
    if (a <= 0 || b <= 0) return false;
    const float dx = (x - shape.min.x) / a - 1, dy = (y - shape.min.y) / b - 1;
    return dx * dx + dy * dy <= 1;
  }
  if (shape.kind != PictureShape::Kind::polygon) return true;
  bool inside = false;
  for (std::size_t i = 0, j = shape.points.size() - 1; i < shape.points.size(); j = i++) {
    const Point a = shape.points[i], b = shape.points[j];
    if ((a.y > y) != (b.y > y) && x < (b.x - a.x) * (y - a.y) / (b.y - a.y) + a.x) inside = !inside;
  }
  return inside;
}

}  // namespace

const PictureShape* Picture::link_at(float x, float y) const {
  for (const auto* list : {&over, &shapes}) {
    for (auto shape = list->rbegin(); shape != list->rend(); ++shape) {
      if (!shape->link.empty() && holds(*shape, x, y)) return &*shape;
    }
  }
  return nullptr;
}

std::optional<std::uint32_t> parse_colour(std::string_view css) {
  std::string text(trimmed(css));
  if (const std::size_t important = text.find("!important"); important != std::string::npos) text = std::string(trimmed(std::string_view(text).substr(0, important)));
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (text.empty()) return std::nullopt;
  if (text[0] == '#') return hexadecimal(std::string_view(text).substr(1));
  if (text == "transparent") return 0u;
  for (const NamedColour& known : named_colours) {
    if (known.name == text) return known.rgb << 8 | 0xff;
  }
  return function_of(text);
}

std::uint32_t colour_of(Role role, bool dark) {
  switch (role) {
    case Role::none: return 0;
    case Role::node_fill: return dark ? 0x2b3a4dff : 0xe8f0faff;
    case Role::node_stroke: return dark ? 0x7fa7d6ff : 0x3b6ea8ff;
    case Role::text: return dark ? 0xe8eaedff : 0x1c1f24ff;
    case Role::muted_text: return dark ? 0xa9b1bcff : 0x565d68ff;
    case Role::edge: return dark ? 0xb4bcc8ff : 0x4a515cff;
    case Role::label_fill: return dark ? 0x1e2228f0 : 0xfffffff0;
    case Role::group_fill: return dark ? 0xffffff0d : 0x0000000a;
    case Role::group_stroke: return dark ? 0x6b7480ff : 0x9aa2adff;
    case Role::note_fill: return dark ? 0x4a4326ff : 0xfff6d6ff;
    case Role::note_stroke: return dark ? 0xb8a24bff : 0xb59a2cff;
    case Role::bar: return dark ? 0x38618fff : 0x9cc3eeff;
    case Role::bar_done: return dark ? 0x4b525bff : 0xd3d7ddff;
    case Role::bar_active: return dark ? 0x2a6b5bff : 0x94dcc5ff;
    case Role::bar_critical: return dark ? 0xd1603dff : 0xc2410cff;
    case Role::section_even: return dark ? 0xffffff08 : 0x00000008;
    case Role::section_odd: return dark ? 0xffffff12 : 0x00000010;
    case Role::grid: return dark ? 0x48505bff : 0xd5d9dfff;
  }
  return 0;
}

std::uint32_t resolve(const Colour& colour, bool dark) { return colour.rgba.value_or(colour_of(colour.role, dark)); }

}  // namespace shardbook::page
