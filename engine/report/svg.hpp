// report/svg: what did the ranks do, as a picture?
//
// A row a stream of each rank, a row of exposed communication, a row of idle time, between two axes of time. The
// picture is drawn by the style of the page (style.hpp) and by patterns that stand in it once (patterns_svg); all of it
// is text, nothing needs a script. Each picture names its clock.
#pragma once

#include <string>
#include <vector>

#include "engine/report/figures.hpp"
#include "engine/report/svg_rows.hpp"

namespace shardbook::report {

struct Picture {
  Window window;
  std::vector<Rank> ranks;       // those that are drawn, in this order
  SpanRef marked;                // gets a frame and a sign above it, if valid()
  std::string title;             // what it shows, for those who cannot see it; not escaped
};

// An <svg> of 1180 units' width; "" for an empty window.
std::string timeline_svg(const Timeline& timeline, const Picture& picture);

// The four parts of a partition as one bar; `longest` is the window that is as long as the picture is wide.
std::string bar_svg(const metrics::Partition& parts, Nanoseconds longest);

// The patterns that all pictures of a page use; stands once before them.
std::string patterns_svg();
// A sample of a look for a legend.
std::string sample_svg(Look look);

}  // namespace shardbook::report
