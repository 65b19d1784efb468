// page/picture_svg: a Picture as SVG text; see picture.hpp.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "viewer/page/picture.hpp"

namespace shardbook::page {

namespace {

std::string number(float value) {
  if (!std::isfinite(value)) value = 0;
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", static_cast<double>(value));
  std::string out = text;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

// Links in a page that opens from a file may lead to pages and places, never run a script.
bool is_safe(std::string_view link) {
  const std::size_t colon = link.find_first_of(":/?#");
  if (colon == std::string_view::npos || link[colon] != ':') return true;
  const std::string_view scheme = link.substr(0, colon);
  return scheme == "http" || scheme == "https" || scheme == "mailto" || scheme == "lab" || scheme == "span";
}

class Writer {
 public:
  Writer(const Picture& picture, const PictureTheme& theme) : picture_(picture), theme_(theme) {}

  std::string run() {
    out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(picture_.width) + "\" height=\"" + number(picture_.height) +
           "\" viewBox=\"0 0 " + number(picture_.width) + " " + number(picture_.height) + "\" font-family=\"" + escaped(theme_.font) + "\">\n";
    if (theme_.background) {
      out_ += "<rect width=\"100%\" height=\"100%\" fill=\"" + std::string(theme_.dark ? "#16191d" : "#ffffff") + "\"/>\n";
    }
    for (const PictureShape& shape : picture_.shapes) add(shape);
    for (const PictureLine& line : picture_.lines) add(line);
    for (const PictureShape& shape : picture_.over) add(shape);
    for (const PictureText& text : picture_.texts) add(text);
    return out_ + "</svg>\n";
  }

 private:
  std::string paint(const char* name, const Colour& colour) const {
    const std::uint32_t rgba = resolve(colour, theme_.dark);
    if ((rgba & 255) == 0) return std::string(" ") + name + "=\"none\"";
    char text[64];
    std::snprintf(text, sizeof text, " %s=\"#%06x\"", name, rgba >> 8);
    std::string out = text;
    if ((rgba & 255) != 255) out += std::string(" ") + name + "-opacity=\"" + number(static_cast<float>(rgba & 255) / 255) + "\"";
    return out;
  }
  std::string stroke(const Colour& colour, float thickness, bool dashed) const {
    return paint("stroke", colour) + " stroke-width=\"" + number(thickness) + "\"" + (dashed ? " stroke-dasharray=\"5 4\"" : "");
  }

  void add(const PictureShape& shape) {
    const bool linked = !shape.link.empty() && is_safe(shape.link);
    if (linked) out_ += "<a href=\"" + escaped(shape.link) + "\">";
    const std::string paints = paint("fill", shape.fill) + stroke(shape.stroke, shape.thickness, shape.dashed);
    const std::string tip = shape.tooltip.empty() ? "/>" : "><title>" + escaped(shape.tooltip) + "</title></";
    const auto end = [&](const char* element) { out_ += shape.tooltip.empty() ? "/>" : tip + element + ">"; };
    const float w = shape.max.x - shape.min.x, h = shape.max.y - shape.min.y;
    switch (shape.kind) {
      case PictureShape::Kind::rectangle:
      case PictureShape::Kind::rounded:
        out_ += "<rect x=\"" + number(shape.min.x) + "\" y=\"" + number(shape.min.y) + "\" width=\"" + number(w) + "\" height=\"" + number(h) + "\"";
        if (shape.kind == PictureShape::Kind::rounded) out_ += " rx=\"" + number(shape.radius) + "\"";
        out_ += paints;
        end("rect");
        break;
      case PictureShape::Kind::ellipse:
        out_ += "<ellipse cx=\"" + number(shape.min.x + w / 2) + "\" cy=\"" + number(shape.min.y + h / 2) + "\" rx=\"" + number(w / 2) + "\" ry=\"" + number(h / 2) + "\"" + paints;
        end("ellipse");
        break;
      case PictureShape::Kind::polygon:
        out_ += "<polygon points=\"";
        for (const Point& point : shape.points) out_ += number(point.x) + "," + number(point.y) + " ";
        out_ += "\"" + paints;
        end("polygon");
        break;
    }
    out_ += linked ? "</a>\n" : "\n";
  }

  void add(const PictureLine& line) {
    if (line.points.empty()) return;
    out_ += "<path d=\"M" + number(line.points[0].x) + " " + number(line.points[0].y);
    for (std::size_t i = 1; i < line.points.size(); ++i) {
      out_ += line.bezier ? (i % 3 == 1 ? " C" : " ") : " L";
      out_ += number(line.points[i].x) + " " + number(line.points[i].y);
    }
    out_ += "\" fill=\"none\"" + stroke(line.colour, line.thickness, line.dashed) + "/>\n";
  }

  void add(const PictureText& text) {
    const bool bold = text.font == FontKind::bold || text.font == FontKind::bold_italic || text.font == FontKind::heading1 || text.font == FontKind::heading2 || text.font == FontKind::heading3;
    const bool italic = text.font == FontKind::italic || text.font == FontKind::bold_italic;
    const float share = text.font == FontKind::heading1 ? 1.75f : text.font == FontKind::heading2 ? 1.4f : text.font == FontKind::heading3 ? 1.15f : text.font == FontKind::small ? 0.8f : text.font == FontKind::mono ? 0.95f : 1.0f;
    // Fonts of a reader's machine are wider or narrower: the text keeps its measured width.
    out_ += "<text x=\"" + number(text.x) + "\" y=\"" + number(text.y + theme_.size * share) + "\" font-size=\"" + number(theme_.size * share) + "\"";
    if (text.w > 0) out_ += " textLength=\"" + number(text.w) + "\" lengthAdjust=\"spacingAndGlyphs\"";
    if (bold) out_ += " font-weight=\"bold\"";
    if (italic) out_ += " font-style=\"italic\"";
    if (text.font == FontKind::mono) out_ += " font-family=\"DejaVu Sans Mono, monospace\"";
    out_ += " xml:space=\"preserve\" pointer-events=\"none\"" + paint("fill", text.colour) + ">" + escaped(text.text) + "</text>\n";
  }

  const Picture& picture_;
  const PictureTheme& theme_;
  std::string out_;
};

}  // namespace

std::string picture_svg(const Picture& picture, const PictureTheme& theme) { return Writer(picture, theme).run(); }

}  // namespace shardbook::page
