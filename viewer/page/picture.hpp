// page/picture: a laid-out diagram as plain shapes.
//
// Pixels from the upper left corner. Colours are roles that a theme resolves, unless the author gave one.
// The viewer draws it, SVG and PNG are written from it, and links are hit-tested on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <string>
#include <vector>

#include "viewer/page/measure.hpp"

namespace shardbook::page {

struct Point {
  float x = 0, y = 0;
};

// What a colour is for. `none` is not drawn.
enum class Role { none, node_fill, node_stroke, text, muted_text, edge, label_fill, group_fill, group_stroke, note_fill,
                  note_stroke, bar, bar_done, bar_active, bar_critical, section_even, section_odd, grid };

struct Colour {
  Role role = Role::none;
  std::optional<std::uint32_t> rgba;      // 0xRRGGBBAA, if the author gave one
};

struct PictureShape {
  enum class Kind { rectangle, rounded, ellipse, polygon };
  Kind kind = Kind::rectangle;
  Point min, max;
  float radius = 0;                       // rounded
  std::vector<Point> points;              // polygon, closed and convex or simple
  Colour fill, stroke;
  float thickness = 1;
  bool dashed = false;
  std::string link, tooltip;              // a click anywhere inside
};

struct PictureLine {
  std::vector<Point> points;
  bool bezier = false;                    // points: p0 c c p1 c c p2 ...
  Colour colour;
  float thickness = 1;
  bool dashed = false;
};

struct PictureText {
  std::string text;                       // one line
  float x = 0, y = 0, w = 0;              // left and top of the line; its measured width
  FontKind font = FontKind::body;
  Colour colour;
};

struct Picture {
  float width = 0, height = 0;
  std::vector<PictureShape> shapes;       // drawn in this order: shapes, lines, over, texts
  std::vector<PictureLine> lines;
  std::vector<PictureShape> over;         // arrow heads, the ground behind labels, activation bars
  std::vector<PictureText> texts;
  std::string error;                      // the reason, with its line, why there is nothing to draw (error_picture draws it)

  // The link under a point, or null.
  const PictureShape* link_at(float x, float y) const;
};

struct PictureTheme {
  bool dark = false;
  std::string font = "DejaVu Sans, Verdana, sans-serif";
  float size = 16;                        // of FontKind::body
  bool background = true;
};

// 0xRRGGBBAA of a role, as the viewer and the SVG use it; AA contrast of text on each fill.
std::uint32_t colour_of(Role role, bool dark);
std::uint32_t resolve(const Colour& colour, bool dark);
// "#fa0", "#ffaa00", "#ffaa00cc", "rgb(1,2,3)", "rgba(1,2,3,0.5)" or a common name of CSS; none if it is no colour.
std::optional<std::uint32_t> parse_colour(std::string_view css);

// A whole <svg> element. Links become <a href>, texts are escaped.
std::string picture_svg(const Picture& picture, const PictureTheme& theme);

}  // namespace shardbook::page
