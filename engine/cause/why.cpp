#include "engine/cause/why.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/cause/causes.hpp"
#include "engine/cause/idle.hpp"
#include "engine/cause/recorded.hpp"
#include "engine/cause/shares.hpp"
#include "engine/cause/text.hpp"
#include "engine/metrics/exposure.hpp"

namespace shardbook::cause {

using base::Error;
using base::text;

namespace {

// Where all that is no compute costs less than this part of the step, compute bounds it.
constexpr double little = 0.15;
// From this part of the step on, a cause is worth a change.
constexpr double worth_a_change = 0.05;
// Up to this part of the step, what is gained says nothing; and from this part of the most on, another gains as much.
constexpr double no_gain = 0.02, as_much = 0.95;

// What is late on one rank is part of the path as that rank's compute or host: it is shown as waiting for the rank.
void take_out_rank(std::vector<Share>& shares, Nanoseconds rank_ns) {
  const auto at = [&](Regime regime) -> Share& { return shares[static_cast<std::size_t>(regime)]; };
  Share& from = at(Regime::compute).path_ns >= at(Regime::host).path_ns ? at(Regime::compute) : at(Regime::host);
  const Nanoseconds moved = std::clamp<Nanoseconds>(rank_ns, 0, from.path_ns);
  from.path_ns -= moved;
  at(Regime::rank).path_ns += moved;
}

Regime largest(const std::vector<Share>& shares) {
  return std::max_element(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.path_ns < b.path_ns; })->regime;
}

// By what would be gained, else by the path. Two that gain the same little are both stopped by what stands close behind.
Regime regime_of(const std::vector<Share>& shares, const Findings& findings, Nanoseconds step_ns) {
  if (part_of(findings.all_but_compute_ns, step_ns) < little) return Regime::compute;
  constexpr Regime besides_compute[] = {Regime::host, Regime::latency, Regime::bandwidth, Regime::rank, Regime::memory};
  const Regime best = *std::max_element(std::begin(besides_compute), std::end(besides_compute), [&](Regime a, Regime b) { return findings.of(a) < findings.of(b); });
  const Nanoseconds most = findings.of(best);
  const bool is_alone = std::count_if(std::begin(besides_compute), std::end(besides_compute), [&](Regime regime) { return part_of(findings.of(regime), most) > as_much; }) == 1;
  return part_of(most, step_ns) < (is_alone ? no_gain : worth_a_change) ? largest(shares) : best;
}

base::Status explain_record(const Timeline& timeline, const Recorded& recorded, const WhyOptions& options, Why& why) {
  base::Result<Study> made = study_of(recorded, options.step);
  if (!made) return made.as_error();
  const Study& study = made.value();
  why.profile = study.profile;
  why.basis = basis_of(study);
  why.step_ns = study.step_ns();
  why.step = study.step;
  // Of a measured step the trace itself is the timeline; a modelled one was resolved without tracing.
  const bool modelled = study.clock == timeline::Clock::modelled;
  if (!modelled && study.conditions.ideal_network && recorded.records.size() > 1) {
    return Error{"in this run the network was ideal, so no rank waited for another and there is no step of all ranks to explain: ask why of a "
                 "run with the real one, and what it gains without communication by whatif RUN comm=0"};
  }
  const std::optional<Window> traced = study.step ? metrics::common_step_window(timeline, *study.step) : std::nullopt;
  const Timeline& shown = traced ? timeline : study.timeline;
  const Window window = traced.value_or(study.window);
  if (!modelled) why.step_ns = window.length();
  const metrics::CriticalPath path = metrics::critical_path(shown, window);
  why.shares = shares_of(shown, path, latency_by(study, shown));

  const Findings findings = find_causes(study, recorded);
  take_out_rank(why.shares, part_of(findings.rank_ns, why.step_ns) >= 0.02 ? findings.rank_ns : 0);
  for (Share& share : why.shares) {
    if (share.regime != Regime::unexplained) share.gain_ns = findings.of(share.regime);
  }
  why.regime = regime_of(why.shares, findings, why.step_ns);
  why.causes = findings.causes;
  const bool has_rank = shown.provenance(why.rank) != nullptr;
  const Rank told = has_rank ? why.rank : shown.ranks.front().rank;
  why.idle = idle_of(shown, told, window);
  why.idle_ns = metrics::partition(shown, told, window).idle_ns;
  if (modelled) {
    const nlohmann::json& results = recorded.info->results;
    if (results.contains("traced_step_ns") && results["traced_step_ns"].is_number()) {
      why.traced_step_ns = std::llround(results["traced_step_ns"].get<double>());
    }
  }
  return base::Done{};
}

// A step of a trace whose host runs ahead: from the end of what the step before computed to the end of its own, over all
// ranks. Its gathers may run before that; so these steps tile the time, where the windows of their device work overlap.
std::map<int, Window> steps_by_compute(const Timeline& timeline) {
  std::map<int, Nanoseconds> ends;
  for (const timeline::Provenance& rank : timeline.ranks) {
    timeline::for_each_device_span(timeline, rank.rank, [&](SpanRef span) {
      if (timeline.cls(span) != timeline::Class::compute || timeline.step(span) < 0) return;
      Nanoseconds& end = ends[timeline.step(span)];
      end = std::max(end, timeline.end(span));
    });
  }
  std::map<int, Window> windows;
  for (auto step = ends.begin(); step != ends.end(); ++step) {
    const auto before = step == ends.begin() ? ends.end() : std::prev(step);
    const bool follows = before != ends.end() && before->first == step->first - 1 && before->second < step->second;
    if (const auto whole = metrics::common_step_window(timeline, step->first)) windows[step->first] = follows ? Window{before->second, step->second} : *whole;
  }
  return windows;
}

base::Status explain_trace(const Timeline& timeline, const WhyOptions& options, const std::string& reason, Why& why) {
  Window window = metrics::common_window(timeline);
  std::map<int, Window> steps = steps_by_compute(timeline);
  if (options.step) {
    const auto asked = steps.find(*options.step);
    if (asked == steps.end()) return Error{text("there is no step ", *options.step, " in this timeline")};
    window = asked->second;
    why.step = options.step;
  } else if (!steps.empty()) {
    // The step in the middle by length; not the first, which a profiler's start has made wait, if there is another.
    if (steps.size() > 1) steps.erase(steps.begin());
    std::vector<std::pair<Nanoseconds, int>> lengths;
    for (const auto& [number, step] : steps) lengths.emplace_back(step.length(), number);
    std::sort(lengths.begin(), lengths.end());
    why.step = lengths[(lengths.size() - 1) / 2].second;
    window = steps.at(*why.step);
  }
  if (window.length() <= 0) return Error{"nothing ran in this timeline, so there is nothing to explain"};
  why.step_ns = window.length();
  why.basis = reason;
  const metrics::CriticalPath path = metrics::critical_path(timeline, window);
  why.shares = shares_of(timeline, path, latency_seen(timeline));
  why.causes = causes_on_path(timeline, path, why.step);
  const Nanoseconds compute_ns = why.shares[static_cast<std::size_t>(Regime::compute)].path_ns;
  why.regime = part_of(why.step_ns - compute_ns, why.step_ns) < little ? Regime::compute : largest(why.shares);
  if (!why.causes.empty() && part_of(why.causes.front().gain_ns, why.step_ns) >= worth_a_change) why.regime = why.causes.front().regime;
  why.idle = idle_of(timeline, why.rank, window);
  why.idle_ns = metrics::partition(timeline, why.rank, window).idle_ns;
  return base::Done{};
}

}  // namespace

const char* name_of(Regime regime) {
  switch (regime) {
    case Regime::host: return "host";
    case Regime::latency: return "latency";
    case Regime::bandwidth: return "bandwidth";
    case Regime::rank: return "rank";
    case Regime::memory: return "memory";
    case Regime::compute: return "compute";
    case Regime::unexplained: break;
  }
  return "unexplained";
}

const char* adjective_of(Regime regime) {
  switch (regime) {
    case Regime::host: return "host-bound";
    case Regime::latency: return "latency-bound";
    case Regime::bandwidth: return "bandwidth-bound";
    case Regime::rank: return "waiting for a rank";
    case Regime::memory: return "memory-bound";
    case Regime::compute: return "compute-bound";
    case Regime::unexplained: break;
  }
  return "waiting for something that is not recorded";
}

base::Result<Why> why_of(const Timeline& timeline, const Recorded& recorded, const WhyOptions& options) {
  Why why;
  if (timeline.ranks.empty()) return Error{"this timeline has no rank, so there is nothing to explain"};
  why.clock = timeline.ranks.front().clock;
  why.rank = options.rank.value_or(timeline.ranks.front().rank);
  if (timeline.provenance(why.rank) == nullptr) {
    return Error{text("there is no rank ", why.rank, " in this timeline; it has ", timeline.ranks.front().rank, " to ", timeline.ranks.back().rank)};
  }
  const bool has_record = recorded.has_record() && !recorded.records.front().programs.empty();
  const base::Status explained =
      has_record ? explain_record(timeline, recorded, options, why)
                 : explain_trace(timeline, options, "read off the timeline, which has no record to resolve again: gains are bounds.", why);
  if (!explained) return explained.as_error();
  why.has_problem = std::ranges::any_of(why.causes, [&](const Cause& cause) { return cause.avoidable && part_of(cause.gain_ns, why.step_ns) >= worth_a_change; });
  std::stable_sort(why.shares.begin(), why.shares.end(), [](const Share& a, const Share& b) { return a.path_ns > b.path_ns; });
  return why;
}

std::string headline_of(const Timeline& timeline, const Recorded& recorded, const WhyOptions& options) {
  const base::Result<Why> why = why_of(timeline, recorded, options);
  return why ? headline(why.value()) : why.error();
}

}  // namespace shardbook::cause
