// page/sequence_layout: a sequence diagram is columns and rows.
//
// Columns are as far apart as the widest text between them asks, found in one sweep from left to right; rows follow one
// another. So the work is linear in participants and items.
#include <algorithm>
#include <cmath>

#include "viewer/page/diagram_draw.hpp"

namespace shardbook::page {

namespace {

using ItemKind = SequenceItem::Kind;

class SequenceLayout {
 public:
  SequenceLayout(const Diagram& diagram, const Measure& measure)
      : diagram_(diagram), measure_(measure), em_(measure.line_height(FontKind::body)), columns_(diagram.participants.size()) {}

  Picture run();

 private:
  struct Column {
    TextBlock label;
    float x = 0, w = 0;
    float begin_y = 0, end_y = -1;        // of the lifeline; end < 0: to the end
    std::vector<float> active;            // where its open activations began
  };
  struct Open {
    std::string block, text;
    float y = 0, left = 1e30f, right = -1e30f;
    std::size_t shape = 0;
    std::vector<std::pair<float, std::string>> parts;
    int depth = 0;                        // blocks inside it
  };

  TextBlock text(const std::string& words, float most = 22) const { return text_block(words, FontKind::body, measure_, most * em_); }
  TextBlock small(const std::string& words, float most = 24) const { return text_block(words, FontKind::small, measure_, most * em_); }
  Column& column(int who) { return columns_[static_cast<std::size_t>(who)]; }
  void place_columns();
  void headers(bool top);
  void header(Column& column, const Participant& one, float y);
  void item(const SequenceItem& item);
  void message(const SequenceItem& item);
  void note(const SequenceItem& item);
  void begin_block(const SequenceItem& item);
  void end_block();
  void activate(int who, bool begins);
  void touch(float left, float right);
  void line(Point from, Point to, const Colour& colour, float thickness, bool dashed);
  float edge_of(int who, bool to_the_right);

  const Diagram& diagram_;
  const Measure& measure_;
  float em_, y_ = 0, header_height_ = 0;
  std::vector<Column> columns_;
  std::vector<Open> open_;
  Picture picture_;
  bool numbered_ = false;
  int number_ = 1, step_ = 1;
};

constexpr float bar = 5;          // half the width of an activation

// A ground that the author chose lies under texts of the theme: thin enough that they can be read in light and dark.
std::optional<std::uint32_t> tint(const std::string& css) {
  const std::optional<std::uint32_t> colour = parse_colour(css);
  if (!colour || (*colour & 255) == 0) return std::nullopt;
  return (*colour & 0xffffff00u) | std::min(*colour & 255u, 0x48u);
}

// --- Columns -----------------------------------------------------------------------------------------
void SequenceLayout::place_columns() {
  const std::size_t count = columns_.size();
  for (std::size_t i = 0; i < count; ++i) {
    columns_[i].label = text(diagram_.participants[i].label, 12);
    columns_[i].w = std::max(columns_[i].label.width + 1.4f * em_, 4 * em_);
    header_height_ = std::max(header_height_, columns_[i].label.height + (diagram_.participants[i].is_actor ? 2.2f * em_ : 0.8f * em_));
  }
  // What must lie between two columns, kept at the right one.
  struct Need {
    std::size_t from;
    float room;
  };
  std::vector<std::vector<Need>> needs(count);
  std::vector<float> beside(count, 0);         // room right of a column
  for (const SequenceItem& item : diagram_.items) {
    const bool spans = item.kind == ItemKind::message || item.kind == ItemKind::note;
    if (!spans || item.from < 0 || item.to < 0) continue;
    const float width = small(item.text).width + 1.6f * em_;
    const auto low = static_cast<std::size_t>(std::min(item.from, item.to)), high = static_cast<std::size_t>(std::max(item.from, item.to));
    if (item.kind == ItemKind::note) {
      if (item.place == SequenceItem::Place::right) beside[low] = std::max(beside[low], width + em_);
      if (item.place == SequenceItem::Place::left && low > 0) needs[low].push_back({low - 1, width + em_});
      if (item.place == SequenceItem::Place::over && low == high) {
        beside[low] = std::max(beside[low], width / 2 + 0.5f * em_);
        if (low > 0) needs[low].push_back({low - 1, width / 2 + 0.5f * em_});
      }
      if (item.place == SequenceItem::Place::over && low != high) needs[high].push_back({low, width - em_});
    } else if (low == high) {
      beside[low] = std::max(beside[low], width + 2 * em_);
    } else {
      needs[high].push_back({low, width + 2 * bar});
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (i == 0) continue;
    float x = columns_[i - 1].x + (columns_[i - 1].w + columns_[i].w) / 2 + em_;
    x = std::max(x, columns_[i - 1].x + beside[i - 1]);
    for (const Need& need : needs[i]) x = std::max(x, columns_[need.from].x + need.room);
    columns_[i].x = x;
  }
}

void SequenceLayout::line(Point from, Point to, const Colour& colour, float thickness, bool dashed) {
  PictureLine made;
  made.points = {from, to};
  made.colour = colour;
  made.thickness = thickness;
  made.dashed = dashed;
  picture_.lines.push_back(std::move(made));
}

// The box with the name, or a person above it; its middle line is the column's.
void SequenceLayout::header(Column& column, const Participant& one, float y) {
  const Colour stroke{Role::node_stroke, {}};
  if (one.is_actor) {
    const float head = 0.35f * em_, top = y + 2;
    PictureShape face;
    face.kind = PictureShape::Kind::ellipse;
    face.min = {column.x - head, top};
    face.max = {column.x + head, top + 2 * head};
    face.fill = {Role::node_fill, {}};
    face.stroke = stroke;
    picture_.shapes.push_back(face);
    const float neck = top + 2 * head, hip = neck + 0.6f * em_;
    line({column.x, neck}, {column.x, hip}, stroke, 1.5f, false);
    line({column.x - 0.5f * em_, neck + 0.2f * em_}, {column.x + 0.5f * em_, neck + 0.2f * em_}, stroke, 1.5f, false);
    line({column.x, hip}, {column.x - 0.4f * em_, hip + 0.45f * em_}, stroke, 1.5f, false);
    line({column.x, hip}, {column.x + 0.4f * em_, hip + 0.45f * em_}, stroke, 1.5f, false);
    put_text(picture_, column.label, column.x, y + header_height_ - column.label.height, Anchor::centre, {Role::text, {}});
    return;
  }
  PictureShape box;
  box.kind = PictureShape::Kind::rounded;
  box.radius = 3;
  box.min = {column.x - column.w / 2, y};
  box.max = {column.x + column.w / 2, y + header_height_};
  box.fill = {Role::node_fill, {}};
  box.stroke = stroke;
  picture_.shapes.push_back(box);
  put_text(picture_, column.label, column.x, y + (header_height_ - column.label.height) / 2, Anchor::centre, {Role::text, {}});
}

void SequenceLayout::headers(bool top) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Participant& one = diagram_.participants[i];
    if (top && one.created) continue;
    if (!top && columns_[i].end_y >= 0) continue;
    header(columns_[i], one, y_);
    if (top) columns_[i].begin_y = y_ + header_height_;
  }
  y_ += header_height_;
}

// --- Items -------------------------------------------------------------------------------------------
void SequenceLayout::touch(float left, float right) {
  if (open_.empty()) return;
  open_.back().left = std::min(open_.back().left, left);
  open_.back().right = std::max(open_.back().right, right);
}

// Where a message meets a column: at the border of its activation.
float SequenceLayout::edge_of(int who, bool to_the_right) {
  const Column& one = column(who);
  if (one.active.empty()) return one.x;
  const float shift = std::min(static_cast<float>(one.active.size() - 1), 6.0f) * bar;
  return to_the_right ? one.x + bar + shift : one.x - bar;
}

void SequenceLayout::activate(int who, bool begins) {
  Column& one = column(who);
  if (begins) {
    one.active.push_back(y_);
    return;
  }
  if (one.active.empty()) return;
  const float shift = std::min(static_cast<float>(one.active.size() - 1), 6.0f) * bar;
  PictureShape made;
  made.min = {one.x - bar + shift, one.active.back()};
  made.max = {one.x + bar + shift, std::max(y_, one.active.back() + 0.5f * em_)};
  made.fill = {Role::node_fill, {}};
  made.stroke = {Role::node_stroke, {}};
  picture_.over.push_back(made);
  one.active.pop_back();
}

void SequenceLayout::message(const SequenceItem& item) {
  const TextBlock words = small(item.text);
  const Colour colour{Role::edge, {}};
  const bool dashed = item.stroke == Stroke::dotted;
  // A participant that this message creates has its box at the message's end.
  Column& target = column(item.to);
  const bool creates = diagram_.participants[static_cast<std::size_t>(item.to)].created && target.begin_y == 0;
  y_ += words.height + 0.5f * em_;
  if (creates) y_ += header_height_ / 2;
  if (item.activate) activate(item.to, true);

  if (item.from == item.to) {
    const float x = edge_of(item.from, true), far = x + 2 * em_, low = y_ + 0.9f * em_;
    put_text(picture_, words, x + 0.4f * em_, y_ - words.height - 2, Anchor::left, {Role::text, {}});
    PictureLine loop;
    loop.points = {{x, y_}, {far, y_}, {far, low}, {x + 8, low}};
    loop.colour = colour;
    loop.thickness = 1.4f;
    loop.dashed = dashed;
    picture_.lines.push_back(std::move(loop));
    put_head(picture_, item.head, {x + 10, low}, {x, low}, colour, item.open_head);
    touch(x - bar, std::max(far, x + words.width + em_));
    y_ = low;
  } else {
    const bool rightwards = column(item.to).x > column(item.from).x;
    const float from = edge_of(item.from, rightwards);
    float to = edge_of(item.to, !rightwards);
    if (creates) to = target.x + (rightwards ? -target.w / 2 : target.w / 2);
    const float sign = rightwards ? 1.0f : -1.0f, inset = item.head == Head::none ? 0 : 8.0f, tail = item.tail == Head::none ? 0 : 8.0f;
    put_text(picture_, words, (from + to) / 2, y_ - words.height - 2, Anchor::centre, {Role::text, {}});
    line({from + sign * tail, y_}, {to - sign * inset, y_}, colour, 1.4f, dashed);
    put_head(picture_, item.head, {to - sign * 10, y_}, {to, y_}, colour, item.open_head);
    put_head(picture_, item.tail, {from + sign * 10, y_}, {from, y_}, colour, false);
    touch(std::min(from, to) - bar, std::max(from, to) + bar);
  }
  if (numbered_) {
    const TextBlock digits = small(std::to_string(number_));
    const float x = edge_of(item.from, true), half = std::max(digits.width, digits.height) / 2 + 2;
    PictureShape dot;
    dot.kind = PictureShape::Kind::ellipse;
    dot.min = {x - half, y_ - half};
    dot.max = {x + half, y_ + half};
    dot.fill = {Role::note_fill, {}};
    dot.stroke = {Role::note_stroke, {}};
    picture_.over.push_back(dot);
    put_text(picture_, digits, x, y_ - digits.height / 2, Anchor::centre, {Role::text, {}});
    number_ = number_ > 1'000'000'000 ? number_ : number_ + step_;
  }
  if (creates) {
    header(target, diagram_.participants[static_cast<std::size_t>(item.to)], y_ - header_height_ / 2);
    target.begin_y = y_ + header_height_ / 2;
    y_ = target.begin_y;
  }
  y_ += 0.25f * em_;
  if (item.deactivate) activate(item.from, false);
}

void SequenceLayout::note(const SequenceItem& item) {
  const TextBlock words = small(item.text);
  const float pad = 0.5f * em_, width = words.width + 2 * pad;
  PictureShape box;
  const float from = std::min(column(item.from).x, column(item.to).x), to = std::max(column(item.from).x, column(item.to).x);
  float left = (from + to - width) / 2;
  if (item.place == SequenceItem::Place::right) left = from + bar + 0.4f * em_;
  if (item.place == SequenceItem::Place::left) left = from - bar - 0.4f * em_ - width;
  float right = left + width;
  if (item.place == SequenceItem::Place::over && from != to) {
    left = std::min(left, from - em_);
    right = std::max(right, to + em_);
  }
  y_ += 0.5f * em_;
  box.min = {left, y_};
  box.max = {right, y_ + words.height + pad};
  box.fill = {Role::note_fill, {}};
  box.stroke = {Role::note_stroke, {}};
  picture_.over.push_back(box);
  put_text(picture_, words, (left + right) / 2, y_ + pad / 2, Anchor::centre, {Role::text, {}});
  touch(left, right);
  y_ = box.max.y;
}

void SequenceLayout::begin_block(const SequenceItem& item) {
  y_ += 0.6f * em_;
  Open made;
  made.block = item.block;
  made.text = item.text;
  made.y = y_;
  made.shape = picture_.shapes.size();
  // Its size comes when it ends; its place in the order is here, below what is inside.
  picture_.shapes.emplace_back();
  if (item.block != "rect") y_ += small(item.text).height + 0.5f * em_;
  open_.push_back(std::move(made));
}

void SequenceLayout::end_block() {
  if (open_.empty()) return;
  Open block = std::move(open_.back());
  open_.pop_back();
  y_ += 0.5f * em_;
  if (block.left > block.right) {
    block.left = columns_.empty() ? 0 : columns_.front().x;
    block.right = columns_.empty() ? em_ : columns_.back().x;
  }
  const TextBlock name = text_block(block.block, FontKind::bold, measure_, 10 * em_);
  const TextBlock condition = small(block.text.empty() || block.block == "rect" ? "" : "[" + block.text + "]");
  block.left -= 0.7f * em_;
  block.right = std::max(block.right + 0.7f * em_, block.left + name.width + condition.width + 2 * em_);

  PictureShape& frame = picture_.shapes[block.shape];
  frame.min = {block.left, block.y};
  frame.max = {block.right, y_};
  if (block.block == "rect") {
    frame.fill.role = Role::group_fill;
    frame.fill.rgba = tint(block.text);
  } else {
    frame.stroke = {Role::group_stroke, {}};
    frame.thickness = 1.2f;
    PictureShape tab;
    tab.kind = PictureShape::Kind::polygon;
    tab.min = {block.left, block.y};
    tab.max = {block.left + name.width + em_, block.y + name.height + 2};
    tab.points = {tab.min, {tab.max.x, tab.min.y}, {tab.max.x, tab.max.y - 6}, {tab.max.x - 6, tab.max.y}, {tab.min.x, tab.max.y}};
    tab.fill = {Role::node_fill, {}};
    tab.stroke = {Role::group_stroke, {}};
    put_text(picture_, name, block.left + 0.4f * em_, block.y + 1, Anchor::left, {Role::text, {}});
    put_text(picture_, condition, tab.max.x + 0.4f * em_, block.y + 2, Anchor::left, {Role::text, {}});
    picture_.over.push_back(std::move(tab));
    for (const auto& [y, text] : block.parts) {
      line({block.left, y}, {block.right, y}, {Role::group_stroke, {}}, 1.2f, true);
      if (!text.empty()) put_text(picture_, small("[" + text + "]"), block.left + 0.6f * em_, y + 3, Anchor::left, {Role::text, {}});
    }
  }
  touch(block.left, block.right);
}

void SequenceLayout::item(const SequenceItem& item) {
  switch (item.kind) {
    case ItemKind::message: message(item); break;
    case ItemKind::note: note(item); break;
    case ItemKind::activate: activate(item.from, true); break;
    case ItemKind::deactivate: activate(item.from, false); break;
    case ItemKind::block_begin: begin_block(item); break;
    case ItemKind::block_next:
      if (open_.empty()) break;
      y_ += 0.5f * em_;
      open_.back().parts.emplace_back(y_, item.text);
      y_ += (item.text.empty() ? 0.2f : 1.2f) * em_;
      break;
    case ItemKind::block_end: end_block(); break;
    case ItemKind::autonumber:
      numbered_ = item.visible;
      if (item.visible) {
        number_ = item.number_from;
        step_ = item.number_step;
      }
      break;
    case ItemKind::create: break;
    case ItemKind::destroy: {
      // The cross is set a line below, under the message that ends it.
      Column& one = column(item.from);
      one.end_y = y_ + 2.2f * em_;
      const float x = one.x, y = one.end_y, arm = 0.4f * em_;
      line({x - arm, y - arm}, {x + arm, y + arm}, {Role::bar_critical, {}}, 2.5f, false);
      line({x - arm, y + arm}, {x + arm, y - arm}, {Role::bar_critical, {}}, 2.5f, false);
      break;
    }
  }
}

Picture SequenceLayout::run() {
  place_columns();
  const float box_title = diagram_.boxes.empty() ? 0 : 1.4f * em_;
  // Bands behind groups of participants come first; their height is known at the end.
  for (std::size_t i = 0; i < diagram_.boxes.size(); ++i) picture_.shapes.emplace_back();
  y_ = box_title;
  headers(true);
  for (const SequenceItem& one : diagram_.items) item(one);
  while (!open_.empty()) end_block();
  y_ += 0.8f * em_;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    while (!columns_[i].active.empty()) activate(static_cast<int>(i), false);
  }
  const float bottom = y_;
  headers(false);
  // Lifelines lie under everything else that is a line.
  std::vector<PictureLine> lifelines;
  for (const Column& one : columns_) {
    PictureLine made;
    made.points = {{one.x, one.begin_y}, {one.x, one.end_y >= 0 ? one.end_y : bottom}};
    made.colour = {Role::group_stroke, {}};
    lifelines.push_back(std::move(made));
  }
  picture_.lines.insert(picture_.lines.begin(), lifelines.begin(), lifelines.end());

  for (std::size_t b = 0; b < diagram_.boxes.size(); ++b) {
    float left = 1e30f, right = -1e30f;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (diagram_.participants[i].box != static_cast<int>(b)) continue;
      left = std::min(left, columns_[i].x - columns_[i].w / 2 - 0.5f * em_);
      right = std::max(right, columns_[i].x + columns_[i].w / 2 + 0.5f * em_);
    }
    if (left > right) continue;
    PictureShape& band = picture_.shapes[b];
    band.min = {left, 0};
    band.max = {right, y_ + 0.4f * em_};
    band.fill.role = Role::group_fill;
    band.fill.rgba = tint(diagram_.boxes[b].colour);
    band.stroke = {Role::group_stroke, {}};
    // A word that is no colour belongs to the title.
    const std::string& colour = diagram_.boxes[b].colour;
    const bool is_colour = parse_colour(colour).has_value();
    const std::string title = is_colour || colour.empty() ? diagram_.boxes[b].title : colour + (diagram_.boxes[b].title.empty() ? "" : " ") + diagram_.boxes[b].title;
    put_text(picture_, text_block(title, FontKind::small, measure_, 30 * em_), (left + right) / 2, 2, Anchor::centre, {Role::text, {}});
  }
  if (!diagram_.title.empty()) {
    const TextBlock title = text_block(diagram_.title, FontKind::heading3, measure_, 40 * em_);
    const float middle = columns_.empty() ? 0 : (columns_.front().x + columns_.back().x) / 2;
    put_text(picture_, title, middle, -title.height - 0.5f * em_, Anchor::centre, {Role::text, {}});
  }
  fit(picture_, 8);
  return std::move(picture_);
}

}  // namespace

Picture layout_sequence(const Diagram& diagram, const Measure& measure) { return SequenceLayout(diagram, measure).run(); }

}  // namespace shardbook::page
