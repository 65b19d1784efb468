// `metrics`: the partition of each rank's time. Of our own runs by steps, with the clock; of any other trace the
// summary of its device spans as an independent reader would give it (metrics/rank_summary), for such a trace states
// no steps of its device and no edges.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/base/json.hpp"
#include "engine/book/project.hpp"
#include "engine/cause/recorded.hpp"
#include "engine/cause/why.hpp"
#include "engine/cli/show_command.hpp"
#include "engine/cli/open_trace.hpp"
#include "engine/cli/window.hpp"
#include "engine/metrics/exposed_kinds.hpp"
#include "engine/metrics/exposure.hpp"
#include "engine/metrics/rank_summary.hpp"
#include "engine/metrics/table.hpp"
#include "engine/workbook/course.hpp"

namespace shardbook::cli {

using base::text;
using metrics::Window;
using timeline::Rank;
using timeline::Timeline;

namespace {

constexpr std::size_t most_kinds = 8;

bool is_ours(const Timeline& timeline) {
  return std::none_of(timeline.ranks.begin(), timeline.ranks.end(),
                      [](const timeline::Provenance& rank) { return rank.foreign; });
}

std::vector<metrics::RankRow> rows_of(const Timeline& timeline, const Line& line, const std::optional<Window>& window) {
  if (!window) {
    if (is_ours(timeline)) return metrics::rank_rows(timeline);
    std::vector<metrics::RankRow> rows;
    for (const timeline::Provenance& rank : timeline.ranks) {
      rows.push_back({rank.rank, metrics::partition(timeline, rank.rank, metrics::device_window(timeline, rank.rank))});
    }
    return rows;
  }
  // A step is each rank's own window; a window is the same for all.
  if (!line.has("step")) return metrics::rank_rows(timeline, *window);
  std::vector<metrics::RankRow> rows;
  for (const timeline::Provenance& rank : timeline.ranks) {
    const std::optional<Window> own = metrics::step_window(timeline, rank.rank, std::stoi(line.value("step")));
    if (own) rows.push_back({rank.rank, metrics::partition(timeline, rank.rank, *own)});
  }
  return rows;
}

// "of steps 10 to 11 together", where the table is of more than one; else "".
std::string which_steps(const Timeline& timeline, const Line& line) {
  if (line.has("window") || line.has("step") || timeline.steps.empty()) return "";
  const Rank rank = timeline.steps.front().rank;
  std::int32_t first = timeline.steps.front().number, last = first, count = 0;
  for (const timeline::Step& step : timeline.steps) {
    if (step.rank != rank) continue;
    first = std::min(first, step.number);
    last = std::max(last, step.number);
    ++count;
  }
  return count < 2 ? "" : text("of steps ", first, " to ", last, " together (--step ", first, " shows one alone)\n");
}

// What bounds the step; none for a window.
std::optional<std::string> headline(const Line& line, const Timeline& timeline, const cause::Recorded& recorded) {
  if (line.has("window")) return std::nullopt;
  cause::WhyOptions options;
  if (line.has("step")) options.step = std::stoi(line.value("step"));
  return cause::headline_of(timeline, recorded, options);
}

}  // namespace

int metrics_of(const Line& line, Console& console) {
  base::Result<Timeline> read = open_trace(line.places, console);
  if (!read) return refuse(console, read.error());
  const Timeline& timeline = read.value();
  if (const base::Status whole = is_whole(timeline); !whole) return refuse(console, whole.error());
  base::Result<std::optional<Window>> window = window_of(line, timeline);
  if (!window) return refuse(console, window.error());
  print_banners(timeline, console);

  const base::Result<cause::Recorded> recorded = cause::read_recorded(line.places);
  if (!recorded) return refuse(console, recorded.error());

  const std::vector<metrics::RankRow> rows = rows_of(timeline, line, window.value());
  const Window common = window.value().value_or(metrics::common_window(timeline));
  if (line.has("json")) {
    if (!is_ours(timeline) && !window.value()) {
      for (const timeline::Provenance& rank : timeline.ranks) {
        console.out << metrics::json_line(metrics::rank_summary(timeline, rank.rank)) << "\n";
      }
      return exit_ok;
    }
    nlohmann::json json = {{"tables", metrics::table_json(timeline, rows)},
                                 {"exposed_kinds", metrics::kinds_json(timeline, metrics::exposed_kinds(timeline, common))},
                                 {"exposure", metrics::exposure_sentence(timeline, common)}};
    if (const auto sentence = headline(line, timeline, recorded.value())) json["sentence"] = *sentence;
    // Names come from the trace, and need not be UTF-8.
    console.out << base::json_text(json, 2) << "\n";
    return exit_ok;
  }
  console.out << which_steps(timeline, line) << metrics::table_text(timeline, rows);
  const std::string kinds = metrics::kinds_text(timeline, metrics::exposed_kinds(timeline, common), most_kinds);
  if (!kinds.empty()) console.out << "\nWhich communication was exposed, in sum over all ranks\n" << kinds << "\n";
  // What a part of a lab asks is not said before it has passed.
  if (const auto part = workbook::part_that_asks_of(book::project_root(), line.places.front())) {
    for (const std::string& one : wrap(text("What bounds this step is what ", *part, " asks: it stands here when that has passed, and in `./shardbook why` at once."), console.text_columns())) console.out << one << "\n";
    return exit_ok;
  }
  // A window that was cut out is no step: of it the longest exposure alone is told.
  const auto say = [&](const std::string& sentence) {
    for (const std::string& part : wrap(sentence + ".", console.text_columns())) console.out << part << "\n";
  };
  if (const auto sentence = headline(line, timeline, recorded.value())) {
    say(*sentence);
    console.out << "\nThe longest exposure\n";
  }
  say(metrics::exposure_sentence(timeline, common));
  return exit_ok;
}

}  // namespace shardbook::cli
