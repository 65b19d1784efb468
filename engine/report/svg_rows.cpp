// report/svg_rows: rectangles and columns; see svg_rows.hpp.
#include "engine/report/svg_rows.hpp"

#include <algorithm>
#include <array>

#include "engine/base/check.hpp"
#include "engine/metrics/exposure.hpp"
#include "engine/report/html.hpp"

namespace shardbook::report {

namespace {

constexpr double letter = 5.7;                    // the widest that a letter of a label is on average
constexpr std::size_t most_rectangles = 1500;     // of a row; spans of several lanes may lie over each other

// "linear_forward qkv" is "linear_forward qkv L3" in layer 3.
std::string label_of(const Timeline& timeline, SpanRef span) {
  std::string label(timeline.label(span));
  if (timeline.has_collective(span)) label = timeline::name_of(timeline.collective(span).op);
  if (timeline.detail(span).layer >= 0) label += base::text(" L", timeline.detail(span).layer);
  return label;
}

// The label, or as much of it as says something, or nothing.
std::string label_svg(const Timeline& timeline, const Item& item, double x, double width, double height) {
  const std::string whole = label_of(timeline, item.span);
  const auto fits = static_cast<std::size_t>(std::max(0.0, (width - 6) / letter));
  if (fits < 6 && fits < characters(whole)) return "";
  return element("text", {{"class", std::string("t") + style_of(item.look)}, {"x", coordinate(x + 3)}, {"y", coordinate(height / 2 + 3.2)}},
                 escaped(shortened(whole, std::max<std::size_t>(fits, 3))));
}

std::string rectangle(const Timeline& timeline, const Item& item, const Scale& scale, double height) {
  const double x = scale.x(item.time.start), width = scale.x(item.time.end) - x;
  const std::string words = item.span.valid() ? words_of(timeline, item.span)
                                              : base::text(words_of(item.look), " · ", metrics::duration_text(item.time.length()));
  std::string out = element("rect", {{"class", style_of(item.look)}, {"x", coordinate(x)}, {"y", "0"},
                                     {"width", coordinate(width)}, {"height", coordinate(height)}},
                            element("title", escaped(words)));
  if (item.span.valid()) out += label_svg(timeline, item, x, width, height);
  return out;
}

// The narrow ones of a row: what is busy in each column, the looks on top of each other.
std::string columns_svg(const std::vector<Item>& items, const Scale& scale, double height) {
  std::array<std::vector<Interval>, looks> times;
  std::array<std::size_t, looks> counts{};
  for (const Item& item : items) {
    times[static_cast<std::size_t>(item.look)].push_back(item.time);
    ++counts[static_cast<std::size_t>(item.look)];
  }
  const int columns = scale.width / column;
  const auto edge = [&](int i) {
    const Nanoseconds length = scale.window.length();
    return scale.window.start + length / columns * i + length % columns * i / columns;
  };
  std::vector<double> floor(static_cast<std::size_t>(columns), height);   // where the next look begins, from above
  std::string out;
  for (std::size_t look = 0; look < looks; ++look) {
    if (times[look].empty()) continue;
    const base::Intervals busy = base::union_of(std::move(times[look]));
    // One outline for each stretch of columns in which something runs.
    std::string path, top, bottom;
    const auto close = [&] {
      if (!top.empty()) path += "M" + top.substr(1) + bottom + "z";
      top.clear();
      bottom.clear();
    };
    for (int i = 0; i < columns; ++i) {
      const Interval slice{edge(i), edge(i + 1)};
      const Nanoseconds ns = slice.length() > 0 ? base::length_within(busy, slice) : 0;
      double& from = floor[static_cast<std::size_t>(i)];
      const double to = ns > 0 ? std::max(0.0, from - height * static_cast<double>(ns) / static_cast<double>(slice.length())) : from;
      if (ns <= 0) {
        close();
        continue;
      }
      const double x = scale.left + i * column;
      top += "L" + coordinate(x) + " " + coordinate(to) + "H" + coordinate(x + column);
      bottom = "L" + coordinate(x + column) + " " + coordinate(from) + "H" + coordinate(x) + bottom;
      from = to;
    }
    close();
    const std::string words = base::text(counts[look], " narrow pieces, ", words_of(static_cast<Look>(look)), ", ",
                                         metrics::duration_text(base::length(busy)),
                                         " in all; a column is as high as the share of it in which they run");
    out += element("path", {{"class", style_of(static_cast<Look>(look))}, {"d", path}}, element("title", escaped(words)));
  }
  return out;
}

}  // namespace

double Scale::x(Nanoseconds time) const {
  return left + width * (static_cast<double>(time - window.start) / static_cast<double>(window.length()));
}

const char* words_of(Look look) {
  static constexpr const char* words[] = {"compute", "communication", "memory", "exposed communication", "idle", "the CPU's own work"};
  return words[static_cast<std::size_t>(look)];
}

Look look_of(timeline::Class cls) {
  if (cls == timeline::Class::host) return Look::cpu;
  return cls == timeline::Class::communication ? Look::communication : cls == timeline::Class::memory ? Look::memory : Look::compute;
}

const char* style_of(Look look) {
  static constexpr const char* styles[] = {"k", "c", "m", "e", "i", "h"};
  return styles[static_cast<std::size_t>(look)];
}

std::string words_of(const Timeline& timeline, SpanRef span) {
  const timeline::Detail& detail = timeline.detail(span);
  std::string words = base::text(shortened(timeline.label(span), 160), " · rank ", timeline.rank(span));
  if (detail.layer >= 0) words += base::text(", layer ", detail.layer);
  if (detail.phase != 0) words += ", " + shortened(timeline.strings[detail.phase], 40);
  words += " · " + metrics::duration_text(timeline.end(span) - timeline.start(span));
  if (detail.leading().known()) words += " · " + shortened(timeline::line_text(timeline, detail.leading()), 120);
  return words;
}

std::string row_svg(const Timeline& timeline, const std::vector<Item>& items, const Scale& scale, double height) {
  std::string rectangles;
  std::vector<Item> narrow;
  std::size_t drawn = 0;
  for (const Item& item : items) {
    const double width = scale.x(item.time.end) - scale.x(item.time.start);
    if (width < narrowest || drawn == most_rectangles) {
      narrow.push_back(item);
    } else {
      rectangles += rectangle(timeline, item, scale, height);
      ++drawn;
    }
  }
  return columns_svg(narrow, scale, height) + rectangles;
}

}  // namespace shardbook::report
