// page/flow_lines: see flow_lines.hpp.
#include "viewer/page/flow_lines.hpp"

#include <algorithm>

#include "engine/diagram/diagram_source.hpp"

namespace shardbook::page {

using diagram::next_code_point;

namespace {

// The share of a line's height that lies above the baseline; fonts of one line meet there.
constexpr float above_baseline = 0.8f;
// Widths are sums of rounded figures: a word that is too wide by less than this many pixels fits.
constexpr float hair = 0.05f;

}  // namespace

FontKind LineBreaker::font_of(const Run& run, const LineStyle& style) const {
  if (run.raise != 0) return FontKind::small;
  if ((run.style & Style::code) != 0) return FontKind::mono;
  if (style.heading) return style.font;
  const bool bold = (run.style & Style::bold) != 0 || style.font == FontKind::bold;
  const bool italic = (run.style & Style::italic) != 0;
  if (bold && italic) return FontKind::bold_italic;
  return bold ? FontKind::bold : italic ? FontKind::italic : style.font;
}

std::vector<LineBreaker::Piece> LineBreaker::pieces(const std::vector<Run>& runs, const LineStyle& style) const {
  std::vector<Piece> found;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const std::string_view text = runs[r].text;
    const FontKind font = font_of(runs[r], style);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      Piece piece;
      piece.run = r;
      if (text[at] == '\n') {
        piece.kind = Piece::Kind::line_break;
        ++at;
      } else if (text[at] == ' ' || text[at] == '\t') {
        piece.kind = Piece::Kind::blank;
        while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
        piece.width = measure_.width(" ", font);
      } else {
        at = std::min(text.find_first_of(" \t\n", at), text.size());
        piece.width = measure_.width(text.substr(begin, at - begin), font);
      }
      piece.begin = begin;
      piece.end = at;
      found.push_back(piece);
    }
  }
  return found;
}

LineBreaker::Widths LineBreaker::widths(const std::vector<Run>& runs, const LineStyle& style) const {
  Widths all;
  float line = 0, word = 0;
  for (const Piece& piece : pieces(runs, style)) {
    line = piece.kind == Piece::Kind::line_break ? 0 : line + piece.width;
    word = piece.kind == Piece::Kind::word ? word + piece.width : 0;
    all.natural = std::max(all.natural, line);
    all.least = std::max(all.least, word);
  }
  return all;
}

std::size_t LineBreaker::fitting(const std::vector<Run>& runs, const Piece& piece, float room, const LineStyle& style, float& width) const {
  const std::string_view text = runs[piece.run].text;
  const FontKind font = font_of(runs[piece.run], style);
  std::size_t at = piece.begin;
  width = 0;
  while (at < piece.end) {
    std::size_t next = at;
    next_code_point(text.substr(0, piece.end), next);
    const float more = measure_.width(text.substr(at, next - at), font);
    if (at > piece.begin && width + more > room) break;
    width += more;
    at = next;
  }
  return at;
}

float LineBreaker::word(std::string_view text, float x, float y, FontKind font, unsigned style, int link, int region, TokenKind token) {
  TextBox box;
  box.x = x;
  box.y = y;
  box.w = measure_.width(text, font);
  box.h = measure_.line_height(font);
  box.font = font;
  box.style = style;
  box.token = token;
  box.link = link;
  box.region = region;
  box.begin = static_cast<std::uint32_t>(out_.text.size());
  out_.text += text;
  box.end = static_cast<std::uint32_t>(out_.text.size());
  out_.boxes.push_back(box);
  return box.w;
}

float LineBreaker::place_line(const std::vector<Run>& runs, const std::vector<Piece>& line, float x, float y, float width, const LineStyle& style) {
  // How high is the line, and where does it begin?
  float height = measure_.line_height(style.font), used = 0;
  for (const Piece& piece : line) {
    if (piece.kind != Piece::Kind::line_break) height = std::max(height, measure_.line_height(font_of(runs[piece.run], style)));
    used += piece.width;
  }
  if (!line.empty() && line.back().kind == Piece::Kind::blank) used -= line.back().width;
  if (style.alignment == Alignment::right) x += std::max(0.0f, width - used);
  if (style.alignment == Alignment::centre) x += std::max(0.0f, (width - used) / 2);

  // Neighbours of one run become one box; a blank at the end is text without a box.
  const float body = measure_.line_height(FontKind::body);
  for (std::size_t i = 0; i < line.size();) {
    const Run& run = runs[line[i].run];
    if (line[i].kind == Piece::Kind::line_break) {
      out_.text += '\n';
      ++i;
      continue;
    }
    std::string text;
    float advance = 0;
    std::size_t last = i;
    for (; last < line.size() && line[last].run == line[i].run && line[last].kind != Piece::Kind::line_break; ++last) {
      if (last + 1 == line.size() && line[last].kind == Piece::Kind::blank) break;
      text += line[last].kind == Piece::Kind::blank ? " " : run.text.substr(line[last].begin, line[last].end - line[last].begin);
      advance += line[last].width;
    }
    if (last == i) {
      out_.text += ' ';
      ++i;
      continue;
    }
    const FontKind font = font_of(run, style);
    float top = y + above_baseline * (height - measure_.line_height(font));
    if (run.raise > 0) top -= 0.3f * body * static_cast<float>(std::min(run.raise, 2));
    if (run.raise < 0) top += 0.12f * body * static_cast<float>(std::min(-run.raise, 2));
    word(text, x, top, font, run.style, run.link, style.region);
    out_.boxes.back().w = advance;
    x += advance;
    i = last;
  }
  return y + height;
}

float LineBreaker::lines(const std::vector<Run>& runs, float x, float y, float width, const LineStyle& style) {
  const std::vector<Piece> all = pieces(runs, style);
  std::vector<Piece> line;
  float used = 0;
  bool last_was_break = true;
  const float aligned = width;
  width += hair;
  const auto finish = [&] {
    y = place_line(runs, line, x, y, aligned, style);
    line.clear();
    used = 0;
  };
  for (std::size_t i = 0; i < all.size();) {
    if (all[i].kind == Piece::Kind::line_break) {
      line.push_back(all[i++]);
      finish();
      last_was_break = true;
      continue;
    }
    if (all[i].kind == Piece::Kind::blank) {
      const bool code = (runs[all[i].run].style & Style::code) != 0;
      if (!line.empty() || code) {
        line.push_back(all[i]);
        used += all[i].width;
      }
      ++i;
      continue;
    }
    last_was_break = false;
    // A word may go on through several runs: it is kept together if a line can hold it.
    std::size_t end = i;
    float word_width = 0;
    for (; end < all.size() && all[end].kind == Piece::Kind::word; ++end) word_width += all[end].width;
    if (used + word_width > width && !line.empty() && line.back().kind == Piece::Kind::blank) finish();
    if (used + word_width <= width || (word_width <= width && line.empty())) {
      while (i < end) line.push_back(all[i++]);
      used += word_width;
      continue;
    }
    // No line can: as much as fits, then the rest below.
    for (; i < end; ++i) {
      Piece rest = all[i];
      while (rest.begin < rest.end) {
        if (used + rest.width <= width) {
          line.push_back(rest);
          used += rest.width;
          break;
        }
        Piece part = rest;
        part.end = fitting(runs, rest, width - used, style, part.width);
        if (used > 0 && part.width > width - used) {
          finish();
          continue;
        }
        line.push_back(part);
        used += part.width;
        rest.begin = part.end;
        rest.width -= part.width;
        if (rest.begin < rest.end) finish();
      }
    }
  }
  if (!line.empty() || (last_was_break && all.empty())) finish();
  return y;
}

}  // namespace shardbook::page
