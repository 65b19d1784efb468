// page/flow: blocks from top to bottom; see flow.hpp. Lines are flow_lines.hpp's; looking things up is flow_find.cpp's.
#include "viewer/page/flow.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "viewer/page/flow_lines.hpp"

namespace shardbook::page {

namespace {

using Kind = Decoration::Kind;

class Flow {
 public:
  Flow(const Document& document, const FlowOptions& options, const Measure& measure)
      : document_(document), options_(options), measure_(measure), lines_(out_, measure), em_(measure.line_height(FontKind::body)) {}

  FlowLayout run() {
    out_.width = std::max(options_.width, 4 * em_);
    out_.links = document_.links;
    blocks(document_.blocks, 0, out_.width);
    out_.height = y_;
    sort();
    return std::move(out_);
  }

 private:
  void blocks(const std::vector<Block>& all, float x, float width);
  void block(const Block& block, float x, float width);
  void heading(const Block& block, float x, float width);
  void list_item(const Block& block, float x, float width);
  void quote(const Block& block, float x, float width);
  void span(const Block& block, float x, float width);
  void code(const std::string& text, const std::string& language, float x, float width);
  void table(const Block& block, float x, float width);
  void picture(const Block& block, float x, float width);
  std::vector<float> column_widths(const Block& block, float room, float& content) const;
  void gap(float share) { y_ += share * em_; }
  // A deep nesting leaves at least this much.
  float inner(float width, float indent) const { return std::max(width - indent, 8 * em_); }
  std::size_t decorate(Kind kind, float x, float y, float w, float h, int region = -1) {
    Decoration made;
    made.kind = kind;
    made.x = x;
    made.y = y;
    made.w = w;
    made.h = h;
    made.region = region;
    out_.decorations.push_back(std::move(made));
    return out_.decorations.size() - 1;
  }
  int open_region(float x, float w) {
    out_.regions.push_back({x, y_, w, 0, w});
    return static_cast<int>(out_.regions.size()) - 1;
  }
  void sort();

  const Document& document_;
  const FlowOptions& options_;
  const Measure& measure_;
  FlowLayout out_;
  LineBreaker lines_;
  float em_;
  float y_ = 0;
};

// --- Blocks ------------------------------------------------------------------------------------------
void Flow::blocks(const std::vector<Block>& all, float x, float width) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    // An anchor takes no room of its own.
    if (i > 0 && all[i].kind != Block::Kind::anchor) {
      const bool in_list = all[i].kind == Block::Kind::list_item && all[i - 1].kind == Block::Kind::list_item;
      gap(in_list ? (all[i].loose ? 0.5f : 0.15f) : all[i].kind == Block::Kind::heading ? 1.0f : 0.6f);
    }
    block(all[i], x, width);
  }
}

void Flow::block(const Block& block, float x, float width) {
  switch (block.kind) {
    case Block::Kind::heading: heading(block, x, width); break;
    case Block::Kind::paragraph:
      y_ = lines_.lines(block.runs, x, y_, width, {});
      out_.text += '\n';
      break;
    case Block::Kind::list_item: list_item(block, x, width); break;
    case Block::Kind::code: code(block.text, block.language, x, width); break;
    case Block::Kind::quote:
    case Block::Kind::admonition: quote(block, x, width); break;
    case Block::Kind::table: table(block, x, width); break;
    case Block::Kind::rule:
      decorate(Kind::rule, x, y_ + 0.3f * em_, width, 1);
      gap(0.6f);
      break;
    case Block::Kind::image:
    case Block::Kind::diagram: picture(block, x, width); break;
    case Block::Kind::span: span(block, x, width); break;
    case Block::Kind::anchor: out_.anchors.emplace_back(block.target, y_); break;
  }
}

void Flow::heading(const Block& block, float x, float width) {
  LineStyle style;
  style.heading = true;
  style.font = block.level == 1 ? FontKind::heading1 : block.level == 2 ? FontKind::heading2 : block.level == 3 ? FontKind::heading3 : FontKind::bold;
  out_.anchors.emplace_back(block.target, y_);
  y_ = lines_.lines(block.runs, x, y_, width, style);
  out_.text += '\n';
}

void Flow::list_item(const Block& block, float x, float width) {
  const float indent = 1.5f * em_;
  const float top = y_;
  if (block.task != Task::none) {
    const float side = 0.7f * em_;
    decorate(block.task == Task::done ? Kind::task_done : Kind::task_open, x + 0.3f * em_, top + 0.15f * em_, side, side);
    out_.text += block.task == Task::done ? "[x] " : "[ ] ";
  } else {
    const std::string marker = block.marker > 0 ? std::to_string(block.marker) + "." : "•";
    const float at = block.marker > 0 ? std::max(0.0f, indent - 0.3f * em_ - measure_.width(marker, FontKind::body)) : 0.5f * em_;
    lines_.word(marker, x + at, top, FontKind::body, Style::plain, -1, -1);
    out_.text += ' ';
  }
  if (!block.runs.empty() || block.children.empty()) y_ = lines_.lines(block.runs, x + indent, y_, inner(width, indent), {});
  out_.text += '\n';
  if (!block.children.empty()) {
    if (!block.runs.empty()) gap(block.children[0].kind == Block::Kind::list_item ? 0.15f : 0.4f);
    blocks(block.children, x + indent, inner(width, indent));
  }
}

void Flow::quote(const Block& block, float x, float width) {
  const bool admonition = block.kind == Block::Kind::admonition;
  const float top = y_, indent = 0.9f * em_, edge = admonition ? 0.4f * em_ : 0.0f;
  // Made first, so that what lies inside is drawn over it; their height comes after.
  const std::size_t ground = admonition ? decorate(Kind::admonition_background, x, top, width, 0) : 0;
  const std::size_t bar = decorate(admonition ? Kind::admonition_bar : Kind::quote_bar, x, top, 0.2f * em_, 0);
  y_ += edge;
  if (admonition) {
    std::string title = block.title;
    for (std::size_t i = 1; i < title.size(); ++i) title[i] = static_cast<char>(title[i] + ('a' - 'A'));
    lines_.word(title, x + indent, y_, FontKind::bold, Style::bold, -1, -1);
    out_.text += '\n';
    y_ += measure_.line_height(FontKind::bold) + 0.2f * em_;
    out_.decorations[ground].name = out_.decorations[bar].name = block.title;
  }
  blocks(block.children, x + indent, inner(width, 1.5f * indent));
  y_ += edge;
  out_.decorations[bar].h = y_ - top;
  if (admonition) out_.decorations[ground].h = y_ - top;
}

// --- Code --------------------------------------------------------------------------------------------
void Flow::span(const Block& block, float x, float width) {
  const float height = measure_.line_height(FontKind::bold) + measure_.line_height(FontKind::small) + 0.4f * em_;
  if (block.source_path.empty()) {
    const std::size_t bar = decorate(Kind::admonition_bar, x, y_, 0.2f * em_, 0);
    out_.decorations[bar].name = "WARNING";
    const float top = y_;
    y_ = lines_.lines({{block.title}}, x + 0.9f * em_, y_, inner(width, em_), {});
    out_.decorations[bar].h = y_ - top;
    out_.text += '\n';
    return;
  }
  const std::size_t header = decorate(Kind::span_header, x, y_, width, height);
  out_.decorations[header].name = block.target;
  out_.decorations[header].block = &block;
  const float inside = x + 0.5f * em_;
  out_.links.push_back("span:" + block.target);
  // The title may be long; its place stands below it.
  LineStyle bold;
  bold.font = FontKind::bold;
  const float top = y_;
  y_ = lines_.lines({{block.title}}, inside, y_ + 0.2f * em_, inner(width, em_), bold);
  out_.text += '\n';
  // Where there is no room for the whole path, its end is what tells it
  const std::string whole = block.source_path + ":" + std::to_string(block.source_line);
  std::string place = whole;
  for (std::size_t at = whole.find('/'); at != std::string::npos && measure_.width(place, FontKind::small) > inner(width, em_); at = whole.find('/', at + 1)) {
    place = "\u2026/" + whole.substr(at + 1);
  }
  lines_.word(place, inside, y_, FontKind::small, Style::link, static_cast<int>(out_.links.size()) - 1, -1);
  out_.text += '\n';
  y_ += measure_.line_height(FontKind::small) + 0.2f * em_;
  out_.decorations[header].h = y_ - top;
  code(block.text, block.language, x, width);
}

void Flow::code(const std::string& source, const std::string& language, float x, float width) {
  std::string_view text = source;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const float line_height = measure_.line_height(FontKind::mono), edge = 0.5f * em_, top = y_;
  const int region = open_region(x, width);
  const std::size_t ground = decorate(Kind::code_background, x, top, width, 0);
  y_ += edge;
  float at = x + edge, widest = at;
  std::size_t column = 0;
  const auto end_line = [&] {
    widest = std::max(widest, at);
    at = x + edge;
    column = 0;
    y_ += line_height;
    out_.text += '\n';
  };
  for (const Token& token : highlight(text, language)) {
    for (std::size_t begin = token.begin; begin < token.end;) {
      const std::size_t end = std::min(text.substr(0, token.end).find_first_of("\n\t", begin), token.end);
      const std::string_view piece = text.substr(begin, end - begin);
      if (!piece.empty()) {
        // Blanks alone need no box.
        if (piece.find_first_not_of(' ') == std::string_view::npos) {
          at += measure_.width(piece, FontKind::mono);
          out_.text += piece;
        } else {
          at += lines_.word(piece, at, y_, FontKind::mono, Style::code, -1, region, token.kind);
        }
        column += piece.size();
      }
      begin = end;
      if (begin < token.end && text[begin] == '\n') {
        end_line();
        ++begin;
      } else if (begin < token.end && text[begin] == '\t') {
        const std::string blanks(4 - column % 4, ' ');
        at += measure_.width(blanks, FontKind::mono);
        out_.text += blanks;
        column += blanks.size();
        ++begin;
      }
    }
  }
  end_line();
  y_ += edge;
  out_.decorations[ground].h = out_.regions[static_cast<std::size_t>(region)].h = y_ - top;
  out_.regions[static_cast<std::size_t>(region)].content_width = std::max(width, widest - x + edge);
}

// --- Tables and pictures -----------------------------------------------------------------------------
// Natural widths where they fit; else columns of few words keep theirs, and what is left over the longest words of the
// others is shared by these; else the table is wider.
std::vector<float> Flow::column_widths(const Block& block, float room, float& content) const {
  std::size_t columns = 0;
  for (const auto& row : block.cells) columns = std::max(columns, row.size());
  const float edge = em_;
  std::vector<float> natural(columns, 1.5f * em_), least(columns, 1.5f * em_);
  for (std::size_t r = 0; r < block.cells.size(); ++r) {
    LineStyle style;
    if (r == 0) style.font = FontKind::bold;
    for (std::size_t c = 0; c < block.cells[r].size(); ++c) {
      const LineBreaker::Widths widths = lines_.widths(block.cells[r][c], style);
      natural[c] = std::max(natural[c], std::min(widths.natural, 60 * em_) + edge);
      least[c] = std::max(least[c], std::min(widths.least, 20 * em_) + edge);
    }
  }
  const float sum_natural = std::accumulate(natural.begin(), natural.end(), 0.0f), sum_least = std::accumulate(least.begin(), least.end(), 0.0f);
  content = sum_natural;
  if (sum_natural <= room) return natural;
  content = std::max(room, sum_least);
  float spare = std::max(0.0f, room - sum_least), more = sum_natural - sum_least;
  // Few words: no more than two thirds of an equal share.
  for (std::size_t c = 0; c < columns; ++c) {
    const float missing = natural[c] - least[c];
    if (natural[c] > 2 * room / (3 * static_cast<float>(columns)) || missing > spare) continue;
    least[c] = natural[c];
    spare -= missing;
    more -= missing;
  }
  const float share = more > 0 ? spare / more : 0;
  for (std::size_t c = 0; c < columns; ++c) least[c] += share * (natural[c] - least[c]);
  return least;
}

void Flow::table(const Block& block, float x, float width) {
  float content = 0;
  const std::vector<float> widths = column_widths(block, width, content);
  const int region = open_region(x, std::min(width, content));
  const float top = y_, edge = 0.25f * em_;
  // Markdown has no table without a header; one of blanks is not drawn.
  const bool has_header = !block.cells.empty() && std::any_of(block.cells[0].begin(), block.cells[0].end(), [](const std::vector<Run>& cell) { return !plain_text(cell).empty(); });
  for (std::size_t r = has_header ? 0 : 1; r < block.cells.size(); ++r) {
    const float row_top = y_;
    const std::size_t header = r == 0 ? decorate(Kind::table_header, x, row_top, content, 0, region) : 0;
    float at = x, lowest = row_top + measure_.line_height(FontKind::body);
    for (std::size_t c = 0; c < block.cells[r].size(); ++c) {
      LineStyle style;
      style.region = region;
      style.alignment = c < block.alignment.size() ? block.alignment[c] : Alignment::left;
      if (r == 0) style.font = FontKind::bold;
      lowest = std::max(lowest, lines_.lines(block.cells[r][c], at + 0.5f * em_, row_top + edge, widths[c] - em_, style));
      out_.text += c + 1 < block.cells[r].size() ? '\t' : '\n';
      at += widths[c];
    }
    y_ = lowest + edge;
    if (r == 0) out_.decorations[header].h = y_ - row_top;
    decorate(Kind::table_line, x, y_, content, 1, region);
  }
  out_.regions[static_cast<std::size_t>(region)].h = y_ - top;
  out_.regions[static_cast<std::size_t>(region)].content_width = content;
}

void Flow::picture(const Block& block, float x, float width) {
  const bool is_image = block.kind == Block::Kind::image;
  std::pair<float, float> size{0, 0};
  // A diagram that stands in no list or quote may reach over both edges of the column.
  const bool may_be_wide = !is_image && x == 0 && width == out_.width;
  const float room = may_be_wide ? std::max(width, options_.wide) : width;
  if (options_.size_of) size = options_.size_of(block, room);
  if (!(size.first > 0 && size.second > 0) || !std::isfinite(size.first) || !std::isfinite(size.second)) {
    const std::string name = is_image ? (block.title.empty() ? block.target : block.title) : "diagram";
    y_ = lines_.lines({{"[" + name + "]", Style::italic}}, x, y_, width, {});
    out_.text += '\n';
    return;
  }
  if (size.first > width) x += (width - std::min(room, size.first)) / 2;
  const int region = open_region(x, std::min(room, size.first));
  const std::size_t made = decorate(is_image ? Kind::image : Kind::diagram, x, y_, size.first, size.second, region);
  out_.decorations[made].name = is_image ? block.target : block.text;
  out_.decorations[made].block = &block;
  out_.regions.back().h = size.second;
  out_.regions.back().content_width = size.first;
  y_ += size.second;
  out_.text += '\n';
}

// Boxes by y, and what finding needs.
void Flow::sort() {
  std::vector<std::uint32_t> order(out_.boxes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return out_.boxes[a].y < out_.boxes[b].y; });
  std::vector<TextBox> boxes(out_.boxes.size());
  out_.by_offset.resize(out_.boxes.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    boxes[i] = out_.boxes[order[i]];
    out_.by_offset[order[i]] = i;
    out_.tallest = std::max(out_.tallest, boxes[i].h);
  }
  out_.boxes = std::move(boxes);
  std::stable_sort(out_.decorations.begin(), out_.decorations.end(), [](const Decoration& a, const Decoration& b) { return a.y < b.y; });
  float lowest = 0;
  for (const Decoration& one : out_.decorations) {
    lowest = std::max(lowest, one.y + one.h);
    out_.lowest_until.push_back(lowest);
  }
}

}  // namespace

FlowLayout flow(const Document& document, const FlowOptions& options, const Measure& measure) { return Flow(document, options, measure).run(); }

}  // namespace shardbook::page
