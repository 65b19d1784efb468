#include "engine/workbook/facts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "engine/cause/recorded.hpp"
#include "engine/cause/whatif.hpp"
#include "engine/cause/why.hpp"
#include "engine/metrics/collectives.hpp"
#include "engine/metrics/exposure.hpp"
#include "engine/metrics/predicates.hpp"
#include "engine/simulate/profile.hpp"
#include "engine/timeline/reader.hpp"

namespace shardbook::workbook {

namespace fs = std::filesystem;
using base::Error;
using base::Rank;
using base::text;
using timeline::Timeline;

struct OpenRun {
  Timeline timeline;
  cause::Recorded recorded;
};

struct Facts::Runs {
  std::map<std::string, OpenRun> by_path;
};

Facts::Facts(std::string root, const Lab& lab) : root_(std::move(root)), lab_(lab), runs_(std::make_unique<Runs>()) {}
Facts::~Facts() = default;

namespace {

using Keys = std::map<std::string, std::string>;
using Number = base::Result<double>;

constexpr double ns_per_ms = 1e6;

// The numbers and words that a fact gives beside its figure.
class Given {
 public:
  Given(const std::string& figure, const Keys& keys) : figure_(figure), keys_(keys) {}
  const std::string* find(const std::string& key) const {
    const auto found = keys_.find(key);
    return found == keys_.end() ? nullptr : &found->second;
  }
  std::optional<int> number(const std::string& key) const {
    const std::string* found = find(key);
    return found == nullptr ? std::nullopt : std::optional<int>(std::atoi(found->c_str()));
  }
  base::Result<std::string> needed(const std::string& key) const {
    if (const std::string* found = find(key)) return *found;
    return Error{text("the fact '", figure_, "' needs \"", key, "\"")};
  }
  const std::string& figure() const { return figure_; }

 private:
  const std::string& figure_;
  const Keys& keys_;
};

// A part of the time of one rank, or its mean over ranks.
std::optional<double> partition_figure(const Timeline& timeline, const Given& given, std::optional<int> step) {
  double sum = 0;
  int ranks = 0;
  for (const timeline::Provenance& one : timeline.ranks) {
    if (given.number("rank").value_or(one.rank) != one.rank) continue;
    const std::optional<metrics::Window> of_step = step ? metrics::step_window(timeline, one.rank, *step) : std::nullopt;
    if (step && !of_step) return std::nullopt;
    const metrics::Partition parts = metrics::partition(timeline, one.rank, of_step.value_or(metrics::steps_window(timeline, one.rank)));
    const double window = static_cast<double>(parts.window.length());
    const auto figure = [&]() -> double {
      const std::string& name = given.figure();
      if (name == "window_ms" || name == "step_ms") return window / ns_per_ms;
      if (name == "compute_ms") return static_cast<double>(parts.compute_ns) / ns_per_ms;
      if (name == "exposed_ms") return static_cast<double>(parts.exposed_communication_ns) / ns_per_ms;
      if (name == "memory_ms") return static_cast<double>(parts.exposed_memory_ns) / ns_per_ms;
      if (name == "idle_ms") return static_cast<double>(parts.idle_ns) / ns_per_ms;
      if (name == "compute_percent") return 100 * static_cast<double>(parts.compute_ns) / window;
      return 100 * static_cast<double>(parts.exposed_communication_ns) / window;
    }();
    sum += figure;
    ++ranks;
  }
  return ranks == 0 ? std::nullopt : std::optional<double>(sum / ranks);
}

bool is_partition(const std::string& name) {
  for (const char* one : {"window_ms", "step_ms", "compute_ms", "exposed_ms", "memory_ms", "idle_ms", "compute_percent", "exposed_percent"}) {
    if (name == one) return true;
  }
  return false;
}

// By how much the device of a rank ends later than the last call that its host made for the step. Waiting is no call.
Number behind_host_ms(const Timeline& timeline, Rank rank, int step) {
  const std::optional<metrics::Window> window = metrics::step_window(timeline, rank, step);
  if (!window) return Error{text("rank ", rank, " has no step ", step)};
  base::Nanoseconds last_call = window->start;
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const timeline::Track& track = timeline.tracks[t];
    if (track.rank != rank || track.kind != timeline::TrackKind::host) continue;
    for (std::uint32_t i = 0; i < track.size(); ++i) {
      const bool waits = track.cls[i] == timeline::Class::sync;
      if (track.step[i] == step && !waits && track.correlation[i] != 0) last_call = std::max(last_call, track.end[i]);
    }
  }
  return static_cast<double>(window->end - last_call) / ns_per_ms;
}

Number blocking_ms(const Timeline& timeline, int step) {
  const std::optional<metrics::Window> window = metrics::common_step_window(timeline, step);
  if (!window) return Error{text("there is no step ", step)};
  base::Nanoseconds sum = 0;
  for (const metrics::Exposure& one : metrics::exposures(timeline, metrics::critical_path(timeline, *window))) sum += one.blocking_ns;
  return static_cast<double>(sum) / ns_per_ms;
}

// Which part of the step's path is of this rank.
Number own_percent(const Timeline& timeline, Rank rank, int step) {
  const std::optional<metrics::Window> window = metrics::common_step_window(timeline, step);
  if (!window) return Error{text("there is no step ", step)};
  base::Nanoseconds own = 0;
  for (const metrics::PathPiece& piece : metrics::critical_path(timeline, *window).pieces) {
    if (piece.rank == rank) own += piece.time.length();
  }
  return 100 * static_cast<double>(own) / static_cast<double>(window->length());
}

Number span_us(const Timeline& timeline, const Given& given) {
  metrics::Filter filter;
  filter.rank = given.number("rank").value_or(0);
  filter.step = given.number("step");
  if (const std::string* op = given.find("op")) filter.op = *op;
  if (const std::string* phase = given.find("phase")) filter.phase = *phase;
  const std::vector<timeline::SpanRef> spans = metrics::select(timeline, filter);
  if (spans.empty()) return Error{text("the fact '", given.figure(), "' means no span of this run")};
  double sum = 0;
  for (const timeline::SpanRef span : spans) sum += static_cast<double>(timeline.end(span) - timeline.start(span));
  return sum / static_cast<double>(spans.size()) / 1e3;
}

Number price_ms(const OpenRun& run, const Given& given) {
  const base::Result<std::string> scale = given.needed("scale");
  if (!scale) return scale.as_error();
  const base::Result<cause::Study> study = cause::study_of(run.recorded, given.number("step"));
  if (!study) return study.as_error();
  cause::Asked asked;
  asked.scale = {scale.value()};
  const base::Result<cause::WhatIf> answer = cause::what_if(study.value(), asked);
  if (!answer) return answer.as_error();
  return static_cast<double>(answer.value().before_ns - answer.value().after_ns) / ns_per_ms;
}

base::Result<Value> explained(const OpenRun& run, const Given& given, int step) {
  cause::WhyOptions options;
  options.step = step;
  const base::Result<cause::Why> why = cause::why_of(run.timeline, run.recorded, options);
  if (!why) return why.as_error();
  if (given.figure() == "regime") return Value{false, 0, cause::name_of(why.value().regime)};
  const base::Result<std::string> regime = given.needed("regime");
  if (!regime) return regime.as_error();
  double sum = 0;
  for (const cause::Share& share : why.value().shares) {
    if (cause::name_of(share.regime) == regime.value()) sum += static_cast<double>(share.path_ns);
  }
  return Value{true, 100 * sum / static_cast<double>(why.value().step_ns), ""};
}

Number of_profile(const Given& given) {
  for (const char* key : {"profile", "op", "ranks", "bytes"}) {
    if (base::Result<std::string> found = given.needed(key); !found) return found.as_error();
  }
  base::Result<simulate::Profile> profile = simulate::find_profile(*given.find("profile"));
  if (!profile) return profile.as_error();
  for (const auto& [kind, by_ranks] : profile.value().collectives) {
    const auto curve = by_ranks.find(*given.number("ranks"));
    if (program::name_of(kind) == *given.find("op") && curve != by_ranks.end()) {
      return simulate::at(curve->second, std::strtoll(given.find("bytes")->c_str(), nullptr, 10)) / 1e3;
    }
  }
  return Error{text("profile ", *given.find("profile"), " has no ", *given.find("op"), " over ", *given.find("ranks"), " ranks")};
}

base::Result<Value> as_value(const Number& number) {
  if (!number) return number.as_error();
  return Value{true, number.value(), ""};
}

base::Result<Value> of_run(const OpenRun& run, const Given& given) {
  const Timeline& timeline = run.timeline;
  const std::string& figure = given.figure();
  if (is_partition(figure)) {
    const std::optional<double> number = partition_figure(timeline, given, given.number("step"));
    if (!number) return Error{text("the fact '", figure, "' means no rank or step of this run")};
    return Value{true, *number, ""};
  }
  if (figure == "ranks") return Value{true, static_cast<double>(timeline.ranks.size()), ""};
  if (figure == "late_rank") {
    const std::optional<Rank> late = metrics::straggler(timeline, metrics::match_collectives(timeline));
    if (!late) return Error{"no rank of this run is late by more than its clocks' error"};
    return Value{true, static_cast<double>(*late), ""};
  }
  if (figure == "span_us") return as_value(span_us(timeline, given));
  if (figure == "price_ms") return as_value(price_ms(run, given));
  const base::Result<std::string> step = given.needed("step");
  if (!step) return step.as_error();
  const int number = std::atoi(step.value().c_str());
  if (figure == "blocking_ms") return as_value(blocking_ms(timeline, number));
  if (figure == "own_percent") return as_value(own_percent(timeline, given.number("rank").value_or(0), number));
  if (figure == "behind_host_ms") return as_value(behind_host_ms(timeline, given.number("rank").value_or(0), number));
  if (figure == "regime" || figure == "share_percent") return explained(run, given, number);
  return Error{text("there is no figure '", figure, "'; engine/workbook/facts.hpp lists them")};
}

}  // namespace

base::Result<Value> Facts::value(const Fact& fact) {
  if (!fact.less.empty()) {
    base::Result<Value> left = value(Fact{fact.figure, fact.of, {}});
    if (!left) return left;
    base::Result<Value> right = value(Fact{fact.figure, fact.less, {}});
    if (!right) return right;
    if (!left.value().is_number) return Error{text("the fact '", fact.figure, "' is a word: nothing can be taken off it")};
    return Value{true, left.value().number - right.value().number, ""};
  }
  const Given given(fact.figure, fact.of);
  if (given.find("profile") != nullptr) return as_value(of_profile(given));
  base::Result<std::string> path = given.needed("run");
  if (!path) return path.as_error();
  if (!runs_->by_path.contains(path.value())) {
    const std::string whole = (fs::path(root_) / path.value()).string();
    base::Result<Timeline> timeline = timeline::read(whole);
    if (!timeline) return timeline.as_error();
    base::Result<cause::Recorded> recorded = cause::read_recorded({whole});
    if (!recorded) return recorded.as_error();
    runs_->by_path[path.value()] = OpenRun{std::move(timeline).value(), std::move(recorded).value()};
  }
  return of_run(runs_->by_path[path.value()], given);
}

base::Result<Value> Facts::value(const std::string& name) {
  const auto found = lab_.facts.find(name);
  if (found == lab_.facts.end()) return Error{text("lab ", lab_.id, " has no fact '", name, "'")};
  base::Result<Value> result = value(found->second);
  if (!result) return Error{text("lab ", lab_.id, ", fact '", name, "': ", result.error())};
  return result;
}

base::Result<std::string> Facts::filled(const std::string& content) {
  std::string out;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t open = content.find('{', at);
    const std::size_t close = open == std::string::npos ? open : content.find('}', open);
    if (close == std::string::npos) return out + content.substr(at);
    out += content.substr(at, open - at);
    std::string name = content.substr(open + 1, close - open - 1);
    int decimals = -1;
    if (const std::size_t colon = name.find(':'); colon != std::string::npos) {
      decimals = std::atoi(name.c_str() + colon + 1);
      name.resize(colon);
    }
    base::Result<Value> found = value(name);
    if (!found) return found.as_error();
    out += shown(found.value(), decimals);
    at = close + 1;
  }
  return out;
}

std::string shown(const Value& value, int decimals) {
  if (!value.is_number) return value.word;
  const double size = std::fabs(value.number);
  const bool whole = value.number == std::floor(value.number) && size < 1e6;
  if (decimals < 0) decimals = whole ? 0 : size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
  char out[64];
  std::snprintf(out, sizeof out, "%.*f", decimals, value.number);
  return out;
}

}  // namespace shardbook::workbook
