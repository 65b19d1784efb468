// scene/area: what happened in this rectangle?
//
// A selection is a time window and a set of rows. Its figures are those of `shardbook metrics` for the
// same window, to the nanosecond, and a table of what ran: per label the count, sum, least, median, most.
#pragma once

#include "engine/metrics/table.hpp"
#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

struct LabelRow {
  std::string label;
  timeline::Class cls{};
  std::int64_t count = 0;
  Nanoseconds sum = 0, least = 0, median = 0, p95 = 0, most = 0;   // of whole spans that touch the window
  Nanoseconds inside = 0;                                          // sum of their parts within it
};

struct AreaFigures {
  Window window;
  std::vector<metrics::RankRow> ranks;        // of the ranks that the rows belong to
  std::vector<LabelRow> labels;               // by `inside`, largest first
  Nanoseconds row_busy = 0;                   // of one row, if only one is chosen: its busy time
};

// Labels are those of the rows' own spans: of a rank row all its streams, of an exposed row its
// communication; idle, critical and memory rows have none. O(spans in the area).
AreaFigures area_figures(const Scene& scene, const std::vector<Row>& rows, Window window);

}  // namespace shardbook::scene
