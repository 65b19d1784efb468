// report/figures: what the page states, as values; see figures.hpp.
#include "engine/report/figures.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/base/check.hpp"
#include "engine/book/excerpts.hpp"
#include "engine/timeline/run_info.hpp"

namespace shardbook::report {

using metrics::Exposure;
using metrics::RankRow;

namespace {

constexpr int lines_around = 6;

bool is_ours(const Timeline& timeline) {
  return std::none_of(timeline.ranks.begin(), timeline.ranks.end(),
                      [](const timeline::Provenance& rank) { return rank.foreign; });
}

// The windows of `metrics`: a step is each rank's own.
std::vector<RankRow> rows_of(const Timeline& timeline, std::optional<int> step) {
  if (!step && is_ours(timeline)) return metrics::rank_rows(timeline);
  std::vector<RankRow> rows;
  for (const timeline::Provenance& rank : timeline.ranks) {
    const std::optional<Window> own = step ? metrics::step_window(timeline, rank.rank, *step)
                                           : std::optional<Window>(metrics::device_window(timeline, rank.rank));
    if (own) rows.push_back({rank.rank, metrics::partition(timeline, rank.rank, *own)});
  }
  return rows;
}

// The middle value. REQUIRES: not empty.
Nanoseconds median(std::vector<Nanoseconds>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const Nanoseconds below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

std::vector<OpRow> ops_of(const Timeline& timeline, const std::vector<RankRow>& rows) {
  std::map<std::pair<timeline::Class, std::string_view>, std::vector<Nanoseconds>> durations;
  for (const RankRow& row : rows) {
    const Window window = row.partition.window;
    timeline::for_each_device_span(timeline, row.rank, [&](SpanRef span) {
      const Nanoseconds start = timeline.start(span);
      if (start < window.start || start >= window.end) return;
      durations[{timeline.cls(span), op_name(timeline, span)}].push_back(timeline.end(span) - start);
    });
  }
  std::vector<OpRow> ops;
  for (auto& [key, values] : durations) {
    OpRow op{key.first, std::string(key.second), static_cast<std::int64_t>(values.size()), median(values), 0};
    for (Nanoseconds value : values) op.sum_ns += value;
    ops.push_back(std::move(op));
  }
  std::stable_sort(ops.begin(), ops.end(), [](const OpRow& a, const OpRow& b) { return a.sum_ns > b.sum_ns; });
  return ops;
}

// The step in which a span began.
std::optional<int> step_of(const Timeline& timeline, SpanRef span) {
  for (const timeline::Step& step : timeline.steps) {
    const Nanoseconds start = timeline.start(span);
    if (step.rank == timeline.rank(span) && start >= step.start && start < step.end) return step.number;
  }
  return std::nullopt;
}

// What is drawn: one step, where there are any.
void choose_picture(const Timeline& timeline, Figures& figures) {
  figures.drawn = figures.window;
  figures.drawn_step = figures.step;
  if (figures.step) return;
  if (!figures.exposures.empty()) figures.drawn_step = step_of(timeline, figures.exposures.front().span);
  if (!figures.drawn_step && !timeline.steps.empty()) figures.drawn_step = timeline.steps.front().number;
  if (!figures.drawn_step) return;
  const Window window = metrics::common_step_window(timeline, *figures.drawn_step).value_or(figures.window);
  if (window.length() > 0) figures.drawn = window;
}

}  // namespace

std::string_view op_name(const Timeline& timeline, SpanRef span) {
  const std::uint32_t op = timeline.detail(span).op;
  return op != 0 ? timeline.strings[op] : timeline.label(span);
}

Figures figures_of(const Timeline& timeline, std::optional<int> step, const cause::Recorded& recorded) {
  Figures figures;
  figures.headline = cause::headline_of(timeline, recorded, {step, {}});
  figures.step = step;
  figures.rows = rows_of(timeline, step);
  figures.window = metrics::common_window(timeline);
  if (step) {
    const std::optional<Window> window = metrics::common_step_window(timeline, *step);
    SHARDBOOK_CHECK(window.has_value(), "the timeline has no step ", *step);
    figures.window = *window;
  }
  const metrics::CriticalPath path = metrics::critical_path(timeline, figures.window);
  figures.inferred = path.inferred;
  figures.exposures = metrics::exposures(timeline, path);
  figures.sentence = figures.exposures.empty() ? metrics::exposure_sentence(timeline, figures.window)
                                               : metrics::sentence(timeline, figures.exposures.front());
  figures.kinds = metrics::exposed_kinds(timeline, figures.window);
  figures.ops = ops_of(timeline, figures.rows);
  choose_picture(timeline, figures);
  return figures;
}

std::vector<ClockRows> by_clock(const Timeline& timeline, const std::vector<RankRow>& rows) {
  std::vector<ClockRows> clocks;
  for (const RankRow& row : rows) {
    const timeline::Provenance* provenance = timeline.provenance(row.rank);
    SHARDBOOK_CHECK(provenance != nullptr, "the timeline has no rank ", row.rank);
    auto clock = std::find_if(clocks.begin(), clocks.end(), [&](const ClockRows& other) {
      return other.provenance.clock == provenance->clock && other.provenance.profile == provenance->profile;
    });
    if (clock == clocks.end()) clock = clocks.insert(clock, ClockRows{*provenance, 0, {}});
    clock->largest_error_ns = std::max(clock->largest_error_ns, provenance->clock_error_ns);
    clock->rows.push_back(row);
  }
  return clocks;
}

namespace {

// The innermost span of the book around a line. Markers of inner spans are lines of the file, but not of its text.
void name_span(const std::string& content, const std::vector<std::string>& file, SourcePlace& place) {
  const base::Result<std::vector<book::Excerpt>> spans = book::excerpts_of(content, place.path);
  if (!spans) return;
  for (const book::Excerpt& span : spans.value()) {   // by line, so that the last one that fits is the innermost
    auto at = static_cast<std::size_t>(span.line - 1);
    for (std::size_t text = 0; text < span.text.size() && at < file.size(); ++at) {
      text += file[at].find("//@") == std::string::npos;
    }
    if (place.line < span.line || static_cast<std::size_t>(place.line) > at) continue;
    place.span = span.name;
    place.title = span.title;
  }
}

}  // namespace

SourcePlace source_of(const Timeline& timeline, timeline::Line line, const timeline::RunInfo* run) {
  SourcePlace place;
  if (!line.known()) return place;
  place.path = timeline.strings[line.file];
  place.line = line.line;
  if (run == nullptr) return place;
  const auto source = std::find_if(run->sources.begin(), run->sources.end(),
                                   [&](const timeline::SourceExcerpt& one) { return one.path == place.path; });
  if (source == run->sources.end()) return place;

  std::vector<std::string> file;
  std::istringstream in(source->content);
  for (std::string text; std::getline(in, text);) file.push_back(text);
  const int count = static_cast<int>(file.size());
  if (line.line < 1 || line.line > count) return place;
  place.first = std::max(1, line.line - lines_around);
  const int last = line.line > count - lines_around ? count : line.line + lines_around;
  place.text.assign(file.begin() + (place.first - 1), file.begin() + last);
  name_span(source->content, file, place);
  return place;
}

nlohmann::json to_json(const Timeline& timeline, const Figures& figures, std::size_t most) {
  nlohmann::json exposures = nlohmann::json::array(), ops = nlohmann::json::array();
  for (const Exposure& exposure : figures.exposures) {
    if (exposures.size() == most) break;
    exposures.push_back({{"rank", timeline.rank(exposure.span)},
                         {"layer", timeline.detail(exposure.span).layer},
                         {"op", op_name(timeline, exposure.span)},
                         {"step", timeline.step(exposure.span)},
                         {"span_ns", exposure.span_ns},
                         {"exposed_ns", exposure.exposed_ns},
                         {"blocking_ns", exposure.blocking_ns},
                         {"line", timeline::line_text(timeline, exposure.line)},
                         {"sentence", metrics::sentence(timeline, exposure)}});
  }
  for (const OpRow& op : figures.ops) {
    ops.push_back({{"class", name_of(op.cls)}, {"op", op.name}, {"count", op.count}, {"median_ns", op.median_ns}, {"sum_ns", op.sum_ns}});
  }
  return {{"tables", metrics::table_json(timeline, figures.rows)},
          {"exposed_kinds", metrics::kinds_json(timeline, figures.kinds)},
          {"sentence", figures.headline},
          {"exposure", figures.sentence},
          {"exposures", std::move(exposures)},
          {"ops", std::move(ops)},
          {"banners", timeline.banners}};
}

}  // namespace shardbook::report
