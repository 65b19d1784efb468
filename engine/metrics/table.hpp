// metrics/table: the partition of each rank, printed.
//
// One header line names the clock, so that no figure stands without it; ranks with different
// clocks are never in one table: each clock gets its own.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/metrics/partition.hpp"

namespace shardbook::metrics {

struct RankRow {
  Rank rank = 0;
  Partition partition;
};

// A row a rank over its steps (steps_window).
std::vector<RankRow> rank_rows(const Timeline& timeline);
// A row a rank over one window.
std::vector<RankRow> rank_rows(const Timeline& timeline, Window window);

// Text of at most 80 columns, a line a rank, one for ranks in a row whose figures are equal: milliseconds and percent of the
// window, then overlap. To the nanosecond where the window is under 10 ms, else to the microsecond, rounded so that the parts
// still sum to the window as it is printed.
std::string table_text(const Timeline& timeline, const std::vector<RankRow>& rows);

// {"clock": "modelled", "profile": "h200x8", "clock_error_ns": 0, "ranks": [{"rank": 0, "window_ns": ...}]},
// one object a clock, in a list. Integer nanoseconds.
nlohmann::json table_json(const Timeline& timeline, const std::vector<RankRow>& rows);

}  // namespace shardbook::metrics
