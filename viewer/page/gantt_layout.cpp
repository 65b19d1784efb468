// page/gantt_layout: a gantt chart is rows over an axis of time.
#include <algorithm>
#include <array>
#include <cmath>

#include "viewer/page/diagram_draw.hpp"
#include "engine/diagram/gantt_dates.hpp"

namespace shardbook::page {

namespace {

class GanttLayout {
 public:
  GanttLayout(const Diagram& diagram, const Measure& measure, float width)
      : diagram_(diagram), measure_(measure), em_(measure.line_height(FontKind::body)), width_(std::max(width, 16 * em_)) {}

  Picture run();

 private:
  void axis(float top, float bottom);
  void section(const std::string& name, float top, float bottom, bool odd);
  void task(const GanttTask& task, float y, float height);
  float x_of(std::int64_t ms) const {
    const double share = static_cast<double>(ms - begin_) / static_cast<double>(std::max<std::int64_t>(end_ - begin_, 1));
    return left_ + static_cast<float>(share) * (width_ - left_ - em_);
  }

  const Diagram& diagram_;
  const Measure& measure_;
  float em_, width_, left_ = 0;
  std::int64_t begin_ = 0, end_ = 1;
  Picture picture_;
};

// Ticks at a round step that leaves their texts apart.
void GanttLayout::axis(float top, float bottom) {
  constexpr std::array<std::int64_t, 29> steps{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10'000, 30'000, 60'000, 300'000, 900'000,
                                               3'600'000, 10'800'000, 21'600'000, 43'200'000, day_ms, 2 * day_ms, 7 * day_ms, 14 * day_ms, 30 * day_ms,
                                               91 * day_ms, 365 * day_ms, 3650 * day_ms};
  const std::int64_t span = end_ - begin_;
  std::string format = diagram_.axis_format;
  if (format.empty()) format = span >= 2 * day_ms ? "%Y-%m-%d" : span >= 120'000 ? "%H:%M" : span >= 10'000 ? "%M:%S" : "%S.%L";
  const float room = measure_.width(write_date(end_, format), FontKind::small) + em_;
  const auto most = static_cast<std::int64_t>(std::max(1.0f, (width_ - left_) / room));
  std::int64_t step = steps.back();
  for (const std::int64_t one : steps) {
    if (span / one <= most) {
      step = one;
      break;
    }
  }
  while (span / step > 200) step *= 10;
  for (std::int64_t at = (begin_ + step - 1) / step * step; at <= end_; at += step) {
    const float x = x_of(at);
    PictureLine line;
    line.points = {{x, top}, {x, bottom}};
    line.colour = {Role::grid, {}};
    picture_.lines.push_back(std::move(line));
    const TextBlock text = text_block(write_date(at, format), FontKind::small, measure_, 20 * em_);
    put_text(picture_, text, x, bottom + 4, Anchor::centre, {Role::muted_text, {}});
  }
}

void GanttLayout::section(const std::string& name, float top, float bottom, bool odd) {
  PictureShape band;
  band.min = {0, top};
  band.max = {width_, bottom};
  band.fill = {odd ? Role::section_odd : Role::section_even, {}};
  picture_.shapes.push_back(band);
  if (name.empty()) return;
  const TextBlock text = text_block(name, FontKind::bold, measure_, std::max(left_ - em_, 4 * em_));
  put_text(picture_, text, 0.5f * em_, std::max(top, (top + bottom - text.height) / 2), Anchor::left, {Role::text, {}});
}

void GanttLayout::task(const GanttTask& task, float y, float height) {
  const float from = x_of(task.begin_ms), to = std::max(x_of(task.end_ms), from + 2), middle = (from + to) / 2;
  PictureShape bar;
  bar.kind = PictureShape::Kind::rounded;
  bar.radius = 3;
  bar.min = {from, y};
  bar.max = {to, y + height};
  bar.fill = {task.done ? Role::bar_done : task.active ? Role::bar_active : Role::bar, {}};
  bar.stroke = {task.critical ? Role::bar_critical : Role::node_stroke, {}};
  bar.thickness = task.critical ? 2.5f : 1;
  bar.link = task.link;
  float inside = to - from, right = to, left = from;
  if (task.milestone || task.vertical) {
    const float half = task.vertical ? 1.5f : height / 2;
    bar.kind = PictureShape::Kind::polygon;
    bar.min = {middle - half, y};
    bar.max = {middle + half, y + height};
    bar.points = task.vertical ? std::vector<Point>{bar.min, {bar.max.x, bar.min.y}, bar.max, {bar.min.x, bar.max.y}}
                               : std::vector<Point>{{middle, y}, {middle + half, y + height / 2}, {middle, y + height}, {middle - half, y + height / 2}};
    inside = 0;
    right = bar.max.x;
    left = bar.min.x;
  }
  picture_.over.push_back(bar);

  // The name stands in its bar, else beside it where there is room.
  const TextBlock text = text_block(task.name, FontKind::small, measure_, 40 * em_);
  const float top = y + (height - text.height) / 2;
  if (text.width + 6 <= inside) {
    put_text(picture_, text, middle, top, Anchor::centre, {Role::text, {}});
  } else if (right + 6 + text.width <= width_ || left - 6 - text.width < left_) {
    put_text(picture_, text, right + 6, top, Anchor::left, {Role::text, {}});
  } else {
    put_text(picture_, text, left - 6 - text.width, top, Anchor::left, {Role::text, {}});
  }
}

Picture GanttLayout::run() {
  for (const std::string& name : diagram_.sections) {
    left_ = std::max(left_, std::min(text_block(name, FontKind::bold, measure_, width_ / 4).width, width_ / 4) + 1.5f * em_);
  }
  bool any = false;
  for (const GanttTask& one : diagram_.tasks) {
    begin_ = any ? std::min(begin_, one.begin_ms) : one.begin_ms;
    end_ = any ? std::max({end_, one.end_ms, one.begin_ms}) : std::max(one.end_ms, one.begin_ms);
    any = true;
  }
  if (end_ <= begin_) end_ = begin_ + 1;

  float y = 0;
  if (!diagram_.title.empty()) {
    const TextBlock title = text_block(diagram_.title, FontKind::heading3, measure_, width_);
    put_text(picture_, title, width_ / 2, 0, Anchor::centre, {Role::text, {}});
    y = title.height + 0.5f * em_;
  }
  const float top = y, height = 1.2f * em_, gap = 0.35f * em_;
  bool odd = false;
  for (std::size_t i = 0; i < diagram_.tasks.size();) {
    std::size_t last = i;
    while (last < diagram_.tasks.size() && diagram_.tasks[last].section == diagram_.tasks[i].section) ++last;
    const float begin = y;
    for (; i < last; ++i) {
      task(diagram_.tasks[i], y + gap / 2, height);
      y += height + gap;
    }
    section(diagram_.tasks[last - 1].section, begin, y, odd);
    odd = !odd;
  }
  if (any) axis(top, y);
  fit(picture_, 8);
  return std::move(picture_);
}

}  // namespace

Picture layout_gantt(const Diagram& diagram, const Measure& measure, float width) { return GanttLayout(diagram, measure, width).run(); }

}  // namespace shardbook::page
