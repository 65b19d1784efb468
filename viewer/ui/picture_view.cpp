// ui/picture_view: a diagram's shapes, drawn with ImGui; see page_view.hpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "viewer/ui/fonts.hpp"
#include "viewer/ui/page_view.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/widgets.hpp"

namespace shardbook::ui {

using page::Picture;
using page::PictureLine;
using page::PictureShape;

namespace {

using Points = std::vector<ImVec2>;

// 0xRRGGBBAA -> ImGui's order.
ImU32 ink(const page::Colour& colour) {
  const std::uint32_t rgba = page::resolve(colour, theme().dark);
  return IM_COL32(rgba >> 24, (rgba >> 16) & 255, (rgba >> 8) & 255, rgba & 255);
}

float cross(ImVec2 a, ImVec2 b, ImVec2 c) { return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x); }

bool is_convex(const Points& points) {
  bool left = false, right = false;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const float turn = cross(points[i], points[(i + 1) % points.size()], points[(i + 2) % points.size()]);
    left |= turn > 0;
    right |= turn < 0;
  }
  return !(left && right);
}

// A simple polygon as triangles, an ear at a time; ImGui fills convex ones only.
void fill_simple(ImDrawList* list, Points points, ImU32 colour) {
  float area = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const ImVec2 a = points[i], b = points[(i + 1) % points.size()];
    area += a.x * b.y - b.x * a.y;
  }
  if (area < 0) std::reverse(points.begin(), points.end());
  for (bool found = true; points.size() > 2 && found;) {
    found = false;
    for (std::size_t i = 0; i < points.size() && !found; ++i) {
      const std::size_t n = points.size();
      const ImVec2 a = points[(i + n - 1) % n], b = points[i], c = points[(i + 1) % n];
      if (cross(a, b, c) <= 0) continue;
      const bool holds_another = std::any_of(points.begin(), points.end(), [&](ImVec2 p) {
        return cross(a, b, p) > 0 && cross(b, c, p) > 0 && cross(c, a, p) > 0;
      });
      if (holds_another) continue;
      list->AddTriangleFilled(a, b, c, colour);
      points.erase(points.begin() + static_cast<std::ptrdiff_t>(i));
      found = true;
    }
  }
}

// The same line in pieces of 5 with gaps of 4.
void dashed(ImDrawList* list, const Points& points, ImU32 colour, float thickness, float zoom) {
  const float on = 5 * zoom, off = 4 * zoom;
  float at = 0;   // how far along the pattern
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const ImVec2 from = points[i], to = points[i + 1];
    const float length = std::hypot(to.x - from.x, to.y - from.y);
    for (float done = 0; done < length;) {
      const float in_pattern = std::fmod(at, on + off);
      const bool is_on = in_pattern < on;
      const float step = std::max(0.01F, std::min(length - done, (is_on ? on : on + off) - in_pattern));
      const auto place = [&](float d) { return ImVec2(from.x + (to.x - from.x) * d / length, from.y + (to.y - from.y) * d / length); };
      if (is_on) list->AddLine(place(done), place(done + step), colour, thickness);
      done += step;
      at += step;
    }
  }
}

void stroke(ImDrawList* list, Points points, bool closed, ImU32 colour, float thickness, bool is_dashed, float zoom) {
  if (points.size() < 2) return;
  if (!is_dashed) {
    list->AddPolyline(points.data(), static_cast<int>(points.size()), colour, closed ? ImDrawFlags_Closed : 0, thickness);
    return;
  }
  if (closed) points.push_back(points.front());
  dashed(list, points, colour, thickness, zoom);
}

struct Placed {
  ImVec2 at;
  float zoom;
  ImVec2 operator()(page::Point point) const { return {at.x + point.x * zoom, at.y + point.y * zoom}; }
};

// The outline of any shape as points.
Points outline(ImDrawList* list, const PictureShape& shape, const Placed& place) {
  const ImVec2 low = place(shape.min), high = place(shape.max);
  Points points;
  switch (shape.kind) {
    case PictureShape::Kind::polygon:
      for (const page::Point& point : shape.points) points.push_back(place(point));
      return points;
    case PictureShape::Kind::ellipse: {
      const ImVec2 centre((low.x + high.x) / 2, (low.y + high.y) / 2);
      const int count = std::clamp(static_cast<int>((high.x - low.x + high.y - low.y) / 4), 16, 96);
      for (int i = 0; i < count; ++i) {
        const float angle = 6.2831853F * static_cast<float>(i) / static_cast<float>(count);
        points.emplace_back(centre.x + std::cos(angle) * (high.x - low.x) / 2, centre.y + std::sin(angle) * (high.y - low.y) / 2);
      }
      return points;
    }
    case PictureShape::Kind::rectangle:
    case PictureShape::Kind::rounded: {
      const float most = std::min(high.x - low.x, high.y - low.y) / 2;
      const float radius = shape.kind == PictureShape::Kind::rounded ? std::min(shape.radius * place.zoom, most) : 0;
      list->PathRect(low, high, radius);
      points.assign(list->_Path.begin(), list->_Path.end());
      list->PathClear();
      return points;
    }
  }
  return points;
}

void draw_shape(ImDrawList* list, const PictureShape& shape, const Placed& place) {
  const Points points = outline(list, shape, place);
  const ImU32 fill = ink(shape.fill), line = ink(shape.stroke);
  if (points.size() > 2 && (fill >> IM_COL32_A_SHIFT) != 0) {
    if (is_convex(points)) {
      list->AddConvexPolyFilled(points.data(), static_cast<int>(points.size()), fill);
    } else {
      fill_simple(list, points, fill);
    }
  }
  if ((line >> IM_COL32_A_SHIFT) != 0) {
    stroke(list, points, true, line, std::max(1.0F, shape.thickness * place.zoom), shape.dashed, place.zoom);
  }
}

void draw_line(ImDrawList* list, const PictureLine& line, const Placed& place) {
  Points points;
  if (!line.bezier) {
    for (const page::Point& point : line.points) points.push_back(place(point));
  } else if (!line.points.empty()) {
    // p0 c c p1 c c p2: each piece in 20 steps.
    points.push_back(place(line.points[0]));
    for (std::size_t i = 0; i + 3 < line.points.size(); i += 3) {
      const ImVec2 a = place(line.points[i]), b = place(line.points[i + 1]), c = place(line.points[i + 2]), d = place(line.points[i + 3]);
      for (int step = 1; step <= 20; ++step) {
        const float t = static_cast<float>(step) / 20, s = 1 - t;
        points.emplace_back(s * s * s * a.x + 3 * s * s * t * b.x + 3 * s * t * t * c.x + t * t * t * d.x,
                            s * s * s * a.y + 3 * s * s * t * b.y + 3 * s * t * t * c.y + t * t * t * d.y);
      }
    }
  }
  const ImU32 colour = ink(line.colour);
  if ((colour >> IM_COL32_A_SHIFT) != 0) stroke(list, points, false, colour, std::max(1.0F, line.thickness * place.zoom), line.dashed, place.zoom);
}

}  // namespace

std::string draw_picture(const Picture& picture, ImVec2 at, float zoom) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Placed place{{std::floor(at.x), std::floor(at.y)}, zoom};
  if (!picture.error.empty()) note_words(picture.error);
  if (!picture.error.empty() && picture.shapes.empty()) {
    draw_text(list, page::FontKind::body, place.at, theme().bad, picture.error);
    return "";
  }
  for (const PictureShape& shape : picture.shapes) draw_shape(list, shape, place);
  for (const PictureLine& line : picture.lines) draw_line(list, line, place);
  for (const PictureShape& shape : picture.over) draw_shape(list, shape, place);
  for (const page::PictureText& text : picture.texts) {
    ImFont* face = font(text.font);
    if (face == nullptr) continue;
    // Letters stand in the middle of their line, as in a page.
    const ImVec2 where = place({text.x, text.y + (measure().line_height(text.font) - face->FontSize) / 2});
    if (zoom == 1) {
      draw_text(list, text.font, where, ink(text.colour), text.text);
    } else {
      list->AddText(face, face->FontSize * zoom, where, ink(text.colour), text.text.data(), text.text.data() + text.text.size());
    }
    note_words(text.text);
  }

  // A shape with a link is known by its place; its words lie over it.
  for (const PictureShape& shape : picture.shapes) {
    if (!shape.link.empty()) note_spot(shape.link, place(shape.min), place(shape.max));
  }
  if (!ImGui::IsWindowHovered()) return "";
  const ImVec2 mouse = ImGui::GetMousePos();
  const PictureShape* under = picture.link_at((mouse.x - place.at.x) / zoom, (mouse.y - place.at.y) / zoom);
  if (under == nullptr) return "";
  ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  list->AddRect(place(under->min), place(under->max), theme().link, px(4), 0, px(2));
  if (!under->tooltip.empty()) ImGui::SetTooltip("%s", under->tooltip.c_str());
  return ImGui::IsMouseClicked(ImGuiMouseButton_Left) ? under->link : "";
}

}  // namespace shardbook::ui
