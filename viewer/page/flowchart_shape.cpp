// page/flowchart_shape: see flowchart_shape.hpp.
#include "viewer/page/flowchart_shape.hpp"

#include <algorithm>
#include <cmath>

namespace shardbook::page {

namespace {

// How far a slanted side leans, and how high a cylinder's lid is.
constexpr float slant = 12, lid = 8, bars = 8;

}  // namespace

Point node_size(NodeShape shape, float w, float h, float em) {
  const float x = 0.7f * em, y = 0.4f * em;
  switch (shape) {
    case NodeShape::rectangle:
    case NodeShape::round: return {w + 2 * x, h + 2 * y};
    case NodeShape::stadium: return {w + 2 * y + h, h + 2 * y};
    case NodeShape::subroutine: return {w + 2 * x + 2 * bars, h + 2 * y};
    case NodeShape::cylinder: return {w + 2 * x, h + 2 * y + 2 * lid};
    case NodeShape::circle:
    case NodeShape::double_circle: {
      const float side = std::hypot(w, h) + 2 * y + (shape == NodeShape::double_circle ? 8.0f : 0.0f);
      return {side, side};
    }
    case NodeShape::ellipse: return {1.42f * w + x, 1.42f * h + y};
    case NodeShape::diamond: return {1.6f * (w + 0.5f * em), (h + 0.2f * em) / 0.375f};
    case NodeShape::hexagon: return {w + x + h + 2 * y, h + 2 * y};
    case NodeShape::flag: return {w + 2 * x + slant, h + 2 * y};
    default: return {w + 2 * x + 2 * slant, h + 2 * y};
  }
}

const char* graphviz_shape(NodeShape shape) {
  switch (shape) {
    case NodeShape::circle:
    case NodeShape::double_circle:
    case NodeShape::ellipse: return "ellipse";
    case NodeShape::diamond: return "diamond";
    case NodeShape::hexagon: return "hexagon";
    default: return "box";
  }
}

void put_node(Picture& picture, const DiagramNode& node, const TextBlock& text, const Look& look, Point min, Point max) {
  PictureShape shape;
  shape.min = min;
  shape.max = max;
  shape.fill = look.fill;
  shape.stroke = look.stroke;
  shape.thickness = look.thickness;
  shape.dashed = look.dashed;
  shape.link = node.link;
  shape.tooltip = node.tooltip;
  const float middle_x = (min.x + max.x) / 2, middle_y = (min.y + max.y) / 2;
  const auto polygon = [&](std::vector<Point> points) {
    shape.kind = PictureShape::Kind::polygon;
    shape.points = std::move(points);
  };
  const auto line = [&](Point from, Point to) {
    PictureLine made;
    made.points = {from, to};
    made.colour = look.stroke;
    made.thickness = look.thickness;
    picture.lines.push_back(std::move(made));
  };
  switch (node.shape) {
    case NodeShape::rectangle: break;
    case NodeShape::round:
    case NodeShape::stadium:
      shape.kind = PictureShape::Kind::rounded;
      shape.radius = node.shape == NodeShape::round ? 6 : (max.y - min.y) / 2;
      break;
    case NodeShape::circle:
    case NodeShape::ellipse:
    case NodeShape::double_circle: shape.kind = PictureShape::Kind::ellipse; break;
    case NodeShape::diamond: polygon({{middle_x, min.y}, {max.x, middle_y}, {middle_x, max.y}, {min.x, middle_y}}); break;
    case NodeShape::hexagon: {
      const float cut = (max.y - min.y) / 2;
      polygon({{min.x + cut, min.y}, {max.x - cut, min.y}, {max.x, middle_y}, {max.x - cut, max.y}, {min.x + cut, max.y}, {min.x, middle_y}});
      break;
    }
    case NodeShape::flag: polygon({{min.x, min.y}, {max.x, min.y}, {max.x, max.y}, {min.x, max.y}, {min.x + slant, middle_y}}); break;
    case NodeShape::parallelogram: polygon({{min.x + slant, min.y}, {max.x, min.y}, {max.x - slant, max.y}, {min.x, max.y}}); break;
    case NodeShape::parallelogram_back: polygon({{min.x, min.y}, {max.x - slant, min.y}, {max.x, max.y}, {min.x + slant, max.y}}); break;
    case NodeShape::trapezoid: polygon({{min.x + slant, min.y}, {max.x - slant, min.y}, {max.x, max.y}, {min.x, max.y}}); break;
    case NodeShape::trapezoid_back: polygon({{min.x, min.y}, {max.x, min.y}, {max.x - slant, max.y}, {min.x + slant, max.y}}); break;
    case NodeShape::subroutine:
      line({min.x + bars, min.y}, {min.x + bars, max.y});
      line({max.x - bars, min.y}, {max.x - bars, max.y});
      break;
    case NodeShape::cylinder: {
      // The outline with round lids, and the front edge of the upper one.
      std::vector<Point> outline;
      PictureLine rim;
      const float half = (max.x - min.x) / 2;
      for (int i = 0; i <= 16; ++i) {
        const float angle = 3.14159265f * static_cast<float>(i) / 16;
        outline.push_back({middle_x - half * std::cos(angle), min.y + lid - lid * std::sin(angle)});
        rim.points.push_back({middle_x - half * std::cos(angle), min.y + lid + lid * std::sin(angle)});
      }
      for (int i = 0; i <= 16; ++i) {
        const float angle = 3.14159265f * static_cast<float>(i) / 16;
        outline.push_back({middle_x + half * std::cos(angle), max.y - lid + lid * std::sin(angle)});
      }
      rim.colour = look.stroke;
      rim.thickness = look.thickness;
      picture.lines.push_back(std::move(rim));
      polygon(std::move(outline));
      break;
    }
  }
  picture.shapes.push_back(shape);
  if (node.shape == NodeShape::double_circle) {
    shape.min = {min.x + 4, min.y + 4};
    shape.max = {max.x - 4, max.y - 4};
    picture.shapes.push_back(shape);
  }
  const float lean = node.shape == NodeShape::flag ? slant / 2 : 0;
  const float down = node.shape == NodeShape::cylinder ? lid / 2 : 0;
  put_text(picture, text, middle_x + lean, middle_y - text.height / 2 + down, Anchor::centre, look.text);
}

}  // namespace shardbook::page
