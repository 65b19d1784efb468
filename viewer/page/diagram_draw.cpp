// page/diagram_draw: see diagram_draw.hpp.
#include "viewer/page/diagram_draw.hpp"

#include <algorithm>
#include <cmath>

#include "viewer/page/diagram_layout.hpp"
#include "engine/diagram/diagram_source.hpp"

namespace shardbook::page {

namespace {

constexpr std::size_t most_lines = 40;

float luminance(std::uint32_t rgba) {
  const auto linear = [](std::uint32_t byte) {
    const float c = static_cast<float>(byte & 255) / 255.0f;
    return c <= 0.04045f ? c / 12.92f : std::pow((c + 0.055f) / 1.055f, 2.4f);
  };
  return 0.2126f * linear(rgba >> 24) + 0.7152f * linear(rgba >> 16) + 0.0722f * linear(rgba >> 8);
}

}  // namespace

TextBlock text_block(std::string_view text, FontKind font, const Measure& measure, float most) {
  TextBlock block;
  block.font = font;
  block.line_height = measure.line_height(font);
  const float blank = measure.width(" ", font);
  std::string line;
  float width = 0;
  const auto end_line = [&] {
    block.lines.push_back(line);
    block.widths.push_back(width);
    block.width = std::max(block.width, width);
    line.clear();
    width = 0;
  };
  for (std::size_t at = 0; at <= text.size() && block.lines.size() < most_lines;) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    std::string_view word = text.substr(at, end - at);
    float more = measure.width(word.substr(0, 400), font);
    if (word.size() > 400) word = word.substr(0, 400);          // no label of people has such a word
    if (!line.empty() && width + blank + more > most) end_line();
    if (!line.empty() && !word.empty()) {
      line += ' ';
      more += blank;
    }
    line += word;
    width += word.empty() ? 0 : more;
    if (end < text.size() && text[end] == '\n') end_line();
    at = end + 1;
  }
  if (block.lines.size() >= most_lines) {
    line = "…";
    width = measure.width(line, font);
  }
  end_line();
  block.height = block.line_height * static_cast<float>(block.lines.size());
  return block;
}

void put_text(Picture& picture, const TextBlock& block, float x, float y, Anchor anchor, const Colour& colour) {
  for (std::size_t i = 0; i < block.lines.size(); ++i) {
    if (block.lines[i].empty()) continue;
    const float left = anchor == Anchor::left ? x : x - block.widths[i] / 2;
    picture.texts.push_back({block.lines[i], left, y + block.line_height * static_cast<float>(i), block.widths[i], block.font, colour});
  }
}

void put_head(Picture& picture, Head head, Point base, Point tip, const Colour& colour, bool open) {
  if (head == Head::none) return;
  const float dx = tip.x - base.x, dy = tip.y - base.y, length = std::max(std::hypot(dx, dy), 0.001f);
  const Point along{dx / length, dy / length}, across{-along.y, along.x};
  const auto at = [&](float back, float aside) {
    return Point{tip.x - along.x * back + across.x * aside, tip.y - along.y * back + across.y * aside};
  };
  const float size = std::min(length, 10.0f);
  if (head == Head::circle) {
    PictureShape dot;
    dot.kind = PictureShape::Kind::ellipse;
    const Point middle = at(size / 2, 0);
    dot.min = {middle.x - size / 2, middle.y - size / 2};
    dot.max = {middle.x + size / 2, middle.y + size / 2};
    dot.fill = dot.stroke = colour;
    picture.over.push_back(std::move(dot));
  } else if (head == Head::cross || open) {
    const float arm = size / 2;
    PictureLine first, second;
    first.colour = second.colour = colour;
    first.thickness = second.thickness = 1.5f;
    if (open) {
      first.points = {at(size, arm), tip};
      second.points = {at(size, -arm), tip};
    } else {
      first.points = {at(0, arm), at(size, -arm)};
      second.points = {at(0, -arm), at(size, arm)};
    }
    // The line reaches the tip of such a head.
    PictureLine stem;
    stem.colour = colour;
    stem.points = {base, tip};
    picture.lines.push_back(std::move(stem));
    picture.lines.push_back(std::move(first));
    picture.lines.push_back(std::move(second));
  } else {
    PictureShape triangle;
    triangle.kind = PictureShape::Kind::polygon;
    triangle.points = {tip, at(size, size * 0.4f), at(size, -size * 0.4f)};
    triangle.min = {std::min({triangle.points[0].x, triangle.points[1].x, triangle.points[2].x}), std::min({triangle.points[0].y, triangle.points[1].y, triangle.points[2].y})};
    triangle.max = {std::max({triangle.points[0].x, triangle.points[1].x, triangle.points[2].x}), std::max({triangle.points[0].y, triangle.points[1].y, triangle.points[2].y})};
    triangle.fill = colour;
    picture.over.push_back(std::move(triangle));
  }
}

void apply(Look& look, const Styles& styles) {
  for (const auto& [key, value] : styles) {
    if (key == "fill" || key == "background") {
      if (const auto colour = parse_colour(value)) look.fill.rgba = colour;
      if (value == "none") look.fill = {};
    } else if (key == "stroke") {
      if (const auto colour = parse_colour(value)) look.stroke.rgba = colour;
      if (value == "none") look.stroke = {};
    } else if (key == "color") {
      if (const auto colour = parse_colour(value)) look.text.rgba = colour;
    } else if (key == "stroke-width") {
      const float width = std::strtof(value.c_str(), nullptr);
      if (std::isfinite(width)) look.thickness = std::clamp(width, 0.0f, 12.0f);
    } else if (key == "stroke-dasharray") {
      look.dashed = value != "0" && value != "none";
    }
  }
}

void settle_text(Look& look) {
  if (!look.fill.rgba || look.text.rgba || (*look.fill.rgba & 255) < 128) return;
  look.text.rgba = luminance(*look.fill.rgba) > 0.18f ? 0x111111ffu : 0xffffffffu;
}

void insert(Picture& into, const Picture& part, float dx, float dy) {
  const auto moved = [&](Point point) { return Point{point.x + dx, point.y + dy}; };
  const auto copy_shapes = [&](const std::vector<PictureShape>& from, std::vector<PictureShape>& to) {
    for (PictureShape shape : from) {
      shape.min = moved(shape.min);
      shape.max = moved(shape.max);
      for (Point& point : shape.points) point = moved(point);
      to.push_back(std::move(shape));
    }
  };
  copy_shapes(part.shapes, into.shapes);
  copy_shapes(part.over, into.over);
  for (PictureLine line : part.lines) {
    for (Point& point : line.points) point = moved(point);
    into.lines.push_back(std::move(line));
  }
  for (PictureText text : part.texts) {
    text.x += dx;
    text.y += dy;
    into.texts.push_back(std::move(text));
  }
}

void fit(Picture& picture, float margin) {
  Point low{1e30f, 1e30f}, high{-1e30f, -1e30f};
  const auto see = [&](Point point) {
    low = {std::min(low.x, point.x), std::min(low.y, point.y)};
    high = {std::max(high.x, point.x), std::max(high.y, point.y)};
  };
  for (const auto* shapes : {&picture.shapes, &picture.over}) {
    for (const PictureShape& shape : *shapes) {
      see(shape.min);
      see(shape.max);
    }
  }
  for (const PictureLine& line : picture.lines) {
    for (const Point& point : line.points) see(point);
  }
  for (const PictureText& text : picture.texts) {
    see({text.x, text.y});
    see({text.x + text.w, text.y + 16});
  }
  if (low.x > high.x) low = high = {};
  Picture moved;
  insert(moved, picture, margin - low.x, margin - low.y);
  moved.width = high.x - low.x + 2 * margin;
  moved.height = high.y - low.y + 2 * margin;
  picture = std::move(moved);
}

Picture error_picture(const std::string& error, const std::string& source, const Measure& measure) {
  Picture picture;
  picture.error = error;
  const float pad = measure.line_height(FontKind::body) / 2;
  const TextBlock reason = text_block(error, FontKind::bold, measure, 40 * measure.line_height(FontKind::body));
  std::size_t end = 0;
  for (int line = 0; line < 6 && end < source.size(); ++line) end = std::min(source.find('\n', end), source.size() - 1) + 1;
  const std::string first(trimmed(std::string_view(source).substr(0, std::min<std::size_t>(end, 600))));
  const TextBlock text = text_block(first, FontKind::mono, measure, 40 * measure.line_height(FontKind::body));
  PictureShape box;
  box.max = {std::max(reason.width, text.width) + 2 * pad, reason.height + text.height + 3 * pad};
  box.fill = {Role::note_fill, {}};
  box.stroke = {Role::bar_critical, {}};
  box.dashed = true;
  picture.shapes.push_back(box);
  put_text(picture, reason, pad, pad, Anchor::left, {Role::text, {}});
  put_text(picture, text, pad, reason.height + 2 * pad, Anchor::left, {Role::muted_text, {}});
  picture.width = box.max.x + 1;
  picture.height = box.max.y + 1;
  return picture;
}

Picture layout_diagram(const Diagram& diagram, const Measure& measure, const LayoutOptions& options) {
  Picture picture;
  if (!diagram.ok) {
    picture.error = "line " + std::to_string(diagram.error_line) + ": " + diagram.error;
    return picture;
  }
  switch (diagram.kind) {
    case DiagramKind::flowchart: picture = layout_flowchart(diagram, measure, options.most_nodes); break;
    case DiagramKind::sequence: picture = layout_sequence(diagram, measure); break;
    case DiagramKind::gantt: picture = layout_gantt(diagram, measure, options.width); break;
    case DiagramKind::none: picture.error = "line 1: the diagram has no kind"; break;
  }
  return picture;
}

}  // namespace shardbook::page
