// report/svg_rows: how is one row of a picture drawn?
//
// A span that is at least 3 units wide is a rectangle of its own, with its name where that fits and all that is known
// of it as its tooltip. Narrower ones are drawn together as columns of 2 units, as high as the share of the column in
// which they run: a row that stood still half of the time never looks busy. Shape says the class: communication is
// hatched, memory dotted, exposed crossed, idle outlined.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/metrics/partition.hpp"

namespace shardbook::report {

using base::Nanoseconds;
using base::Interval;
using metrics::Window;
using timeline::SpanRef;
using timeline::Timeline;

// From time to place. REQUIRES: a window that is not empty, a width of an even number of units.
struct Scale {
  Window window;
  int left = 0, width = 0;
  double x(Nanoseconds time) const;
};

enum class Look : std::uint8_t { compute, communication, memory, exposed, idle, cpu };
constexpr std::size_t looks = 6;
// "compute", "communication", "memory", "exposed communication", "idle", "the CPU's own work"
const char* words_of(Look look);
Look look_of(timeline::Class cls);
// The name of its class in the style: "k", "c", "m", "e", "i", "h".
const char* style_of(Look look);

struct Item {
  Interval time;            // within the window, not empty
  Look look{};
  SpanRef span;             // not valid() for what is no span
};

constexpr double narrowest = 3;      // units of a rectangle of its own
constexpr int column = 2;            // units of a column

// A group of elements between y = 0 and y = height.
std::string row_svg(const Timeline& timeline, const std::vector<Item>& items, const Scale& scale, double height);

// All that is known of a span, in one line, not escaped: name, rank, layer, phase, duration, source.
std::string words_of(const Timeline& timeline, SpanRef span);

}  // namespace shardbook::report
