// report/figures: which figures does a report state?
//
// Those of `metrics`, from the same functions over the same windows, so that page and command agree to the
// nanosecond: of our runs a row a rank over all traced steps, or over one; of any other trace over its device work.
// Beside them every exposed span with its sentence, and a row an op.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/cause/recorded.hpp"
#include "engine/cause/why.hpp"
#include "engine/metrics/exposed_kinds.hpp"
#include "engine/metrics/exposure.hpp"
#include "engine/metrics/table.hpp"
#include "engine/timeline/run_info.hpp"

namespace shardbook::report {

using base::Nanoseconds;
using base::Rank;
using metrics::Window;
using timeline::SpanRef;
using timeline::Timeline;

// All spans of one op on all ranks that begin in the window of their rank.
struct OpRow {
  timeline::Class cls{};
  std::string name;              // Detail::op, else the span's label
  std::int64_t count = 0;
  Nanoseconds median_ns = 0;     // of an even count: the middle between the two in the middle, rounded down
  Nanoseconds sum_ns = 0;
};

struct Figures {
  std::optional<int> step;                     // as it was asked for; none: all steps
  std::vector<metrics::RankRow> rows;          // one a rank (one that lacks the step has none)
  Window window;                               // common to all ranks; exposures and sentence are of it
  std::string headline;                        // cause::headline: what bounds the step
  std::string sentence;                        // metrics::exposure_sentence(timeline, window)
  std::vector<metrics::ExposedKind> kinds;     // of `window`, most exposed first
  std::vector<metrics::Exposure> exposures;    // longest blocking first
  bool inferred = false;                       // the trace records no waits: reasons are what ended last before
  std::vector<OpRow> ops;                      // longest sum first
  std::optional<int> drawn_step;               // the step of the picture: `step`, else that of the first exposure
  Window drawn;                                // its window; without steps all
};

// REQUIRES: `step`, if given, is a step of the timeline.
// `recorded` is what the run left beside it, if it left any.
Figures figures_of(const Timeline& timeline, std::optional<int> step, const cause::Recorded& recorded = {});

// The op of a span: Detail::op, else its label.
std::string_view op_name(const Timeline& timeline, SpanRef span);

// Rows whose times were told by one clock; rows of two clocks are never in one table or picture of sums.
struct ClockRows {
  timeline::Provenance provenance;             // of the first
  Nanoseconds largest_error_ns = 0;
  std::vector<metrics::RankRow> rows;
};
std::vector<ClockRows> by_clock(const Timeline& timeline, const std::vector<metrics::RankRow>& rows);

// The lines of source around a line, as the run stored them.
struct SourcePlace {
  std::string path;              // "" where the line is not known
  int line = 0;
  int first = 0;                 // number of text[0]
  std::vector<std::string> text; // empty: the run stored no copy of this file
  std::string span, title;       // the innermost span of the book that holds the line: "fsdp.prefetch", "Gather ..."
};
SourcePlace source_of(const Timeline& timeline, timeline::Line line, const timeline::RunInfo* run);

// {"tables" and "exposed_kinds": as of `metrics --json`, "sentence": the headline, "exposure": the sentence on the first exposure, "exposures": [...], "ops": [...],
// "banners": [...]}, with the first `most` exposures.
nlohmann::json to_json(const Timeline& timeline, const Figures& figures, std::size_t most);

}  // namespace shardbook::report
