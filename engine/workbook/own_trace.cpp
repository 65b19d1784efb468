// workbook/own_trace: rows become steps, ranks and calls; see own_trace.hpp.
#include "engine/workbook/own_trace.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/metrics/exposure.hpp"
#include "engine/timeline/links.hpp"

namespace shardbook::workbook {

using base::Error;
using base::text;
using base::Intervals;
using timeline::Class;
using timeline::SpanRef;
using timeline::Timeline;
using timeline::Track;
using timeline::TrackKind;

namespace {

// A call that returns sooner has waited for nothing.
constexpr Nanoseconds shortest_wait_ns = 10'000;
// From the host's call to the device, where nothing else is in the way: the call, a copy into a buffer, the start.
constexpr Nanoseconds longest_launch_ns = 250'000;
constexpr std::string_view engine_row = "autograd::engine::evaluate_function";

// Whether a time is in one of the intervals.
bool within(const Intervals& intervals, Nanoseconds time) {
  const auto after = std::upper_bound(intervals.begin(), intervals.end(), time, [](Nanoseconds t, const Interval& one) { return t < one.start; });
  return after != intervals.begin() && time < std::prev(after)->end;
}

// The rows of one rank's host, by thread.
class Host {
 public:
  Host(const Timeline& timeline, Rank rank) : timeline_(timeline), rank_(rank) {
    std::map<std::int64_t, std::vector<Interval>> engine;
    for (std::uint32_t t = 0; t < timeline_.tracks.size(); ++t) {
      const Track& track = timeline_.tracks[t];
      if (track.rank != rank_ || track.kind != TrackKind::host) continue;
      for (std::uint32_t i = 0; i < track.size(); ++i) {
        if (timeline_.strings[track.label[i]].starts_with(engine_row)) engine[track.id].push_back({track.start[i], track.end[i]});
        if (track.cls[i] == Class::sync && track.end[i] - track.start[i] >= shortest_wait_ns) waits_.push_back({t, i});
      }
    }
    for (auto& [thread, rows] : engine) backward_[thread] = base::union_of(std::move(rows));
  }

  bool has_engine() const { return !backward_.empty(); }
  bool in_backward(SpanRef call) const {
    const auto rows = backward_.find(timeline_.tracks[call.track].id);
    return rows != backward_.end() && within(rows->second, timeline_.start(call));
  }

  // "blocks.3" of the annotation "FSDP::all_gather (blocks.3)" around this call.
  std::string unit_around(SpanRef call) const {
    std::string unit;
    each_around(call, [&](const Track& track, std::uint32_t i) {
      if (!unit.empty()) return;                 // the innermost is first
      const std::string label(timeline_.strings[track.label[i]]);
      const std::size_t open = label.find(" (");
      if (label.starts_with("FSDP::") && open != std::string::npos && label.back() == ')') unit = label.substr(open + 2, label.size() - open - 3);
    });
    return unit;
  }

  // The longest operator around this call.
  std::string operator_around(SpanRef call) const {
    std::string name;
    Nanoseconds longest = 0;
    each_around(call, [&](const Track& track, std::uint32_t i) {
      const std::string_view label = timeline_.strings[track.label[i]];
      if (!label.starts_with("aten::") || track.end[i] - track.start[i] <= longest) return;
      longest = track.end[i] - track.start[i];
      name = label;
    });
    return name;
  }

  std::vector<HostWait> waits(Interval issuing) const {
    std::vector<HostWait> all;
    for (const SpanRef row : waits_) {
      const Interval time{timeline_.start(row), timeline_.end(row)};
      if (time.start >= issuing.start && time.end <= issuing.end) all.push_back({row, time, operator_around(row)});
    }
    std::sort(all.begin(), all.end(), [](const HostWait& a, const HostWait& b) { return a.time.start < b.time.start; });
    return all;
  }

 private:
  // The rows of this call's thread that enclose it. They begin not long before it.
  template <class Visit>
  void each_around(SpanRef call, Visit visit) const {
    constexpr int most_looked_at = 4096;
    const std::int64_t thread = timeline_.tracks[call.track].id;
    const Nanoseconds start = timeline_.start(call), end = timeline_.end(call);
    for (const Track& track : timeline_.tracks) {
      if (track.rank != rank_ || track.kind != TrackKind::host || track.id != thread) continue;
      auto at = static_cast<std::uint32_t>(std::upper_bound(track.start.begin(), track.start.end(), start) - track.start.begin());
      for (int looked_at = 0; at-- > 0 && looked_at < most_looked_at; ++looked_at) {
        if (track.end[at] >= end) visit(track, at);
      }
    }
  }

  const Timeline& timeline_;
  Rank rank_;
  std::map<std::int64_t, Intervals> backward_;
  std::vector<SpanRef> waits_;
};

// What the rank's device did in each step, and where its host waited. `place` is a step's place in `steps`.
void take_rank(const Timeline& timeline, Rank rank, const Host& host, const std::map<int, std::size_t>& place, std::vector<TracedStep>& steps) {
  const timeline::Links links(timeline, rank);
  for (TracedStep& step : steps) step.ranks.push_back({rank, metrics::step_window(timeline, rank, step.number).value_or(Interval{}), {}, {}, {}});
  timeline::for_each_device_span(timeline, rank, [&](SpanRef span) {
    const auto at = place.find(timeline.step(span));
    const SpanRef call = at == place.end() ? SpanRef{} : links.launch_of(span);
    if (!call.valid()) return;
    RankStep& step = steps[at->second].ranks.back();
    const Nanoseconds issued = timeline.start(call);
    const Interval time{timeline.start(span), timeline.end(span)};
    if (timeline.cls(span) == Class::compute) step.kernels.push_back({time, issued, host.in_backward(call)});
    if (!timeline.has_collective(span)) return;
    const timeline::Collective& of = timeline.collective(span);
    step.calls.push_back({span, of.op, of.bytes, issued, host.in_backward(call), host.unit_around(call), time, 0, time.start, false});
  });
  for (TracedStep& one : steps) {
    RankStep& step = one.ranks.back();
    std::sort(step.calls.begin(), step.calls.end(), [](const Call& a, const Call& b) { return a.began < b.began; });
    std::sort(step.kernels.begin(), step.kernels.end(), [](const Kernel& a, const Kernel& b) { return a.time.start < b.time.start; });
    if (step.calls.empty()) continue;
    // Between the first call that the host issued and the last
    const auto [first, last] = std::minmax_element(step.calls.begin(), step.calls.end(), [](const Call& a, const Call& b) { return a.issued < b.issued; });
    step.waits = host.waits({first->issued, last->issued});
  }
}

// The calls of each group in the order in which this rank issued them.
std::map<std::uint32_t, std::vector<Call*>> by_group(const Timeline& timeline, RankStep& step) {
  std::map<std::uint32_t, std::vector<Call*>> groups;
  for (Call& call : step.calls) groups[timeline.collective(call.span).group].push_back(&call);
  for (auto& [group, calls] : groups) {
    std::stable_sort(calls.begin(), calls.end(), [](const Call* a, const Call* b) { return a->issued < b->issued; });
  }
  return groups;
}

std::string said(const std::vector<Call*>& calls, std::size_t k) {
  return k < calls.size() ? text(timeline::name_of(calls[k]->op), " of ", calls[k]->bytes, " bytes") : std::string("nothing more");
}

// Finds since when each collective moved data. What two ranks do differently is noted, and nothing is matched then.
void match(const Timeline& timeline, TracedStep& step) {
  std::vector<std::map<std::uint32_t, std::vector<Call*>>> ranks;
  for (RankStep& one : step.ranks) ranks.push_back(by_group(timeline, one));
  std::map<std::uint32_t, std::size_t> reference;      // group -> the first rank that calls it
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (auto& [group, calls] : ranks[r]) {
      const auto [entry, is_first] = reference.try_emplace(group, r);
      if (is_first) continue;
      const std::vector<Call*>& other = ranks[entry->second][group];
      for (std::size_t k = 0; k < std::max(calls.size(), other.size()); ++k) {
        const bool same = k < calls.size() && k < other.size() && calls[k]->op == other[k]->op && calls[k]->bytes == other[k]->bytes;
        if (same) continue;
        step.disagreement = text("call ", k + 1, " is ", said(other, k), " on rank ", step.ranks[entry->second].rank, " and ", said(calls, k), " on rank ", step.ranks[r].rank);
        return;
      }
    }
  }
  for (const auto& [group, first_rank] : reference) {
    const std::size_t count = ranks[first_rank][group].size();
    for (std::size_t k = 0; k < count; ++k) {
      const Call* last = nullptr;
      for (auto& rank : ranks) {
        if (rank.contains(group) && (last == nullptr || rank[group][k]->began > last->began)) last = rank[group][k];
      }
      const Nanoseconds last_start = last->began;
      const bool host_late = last->began - last->issued < longest_launch_ns;
      for (auto& rank : ranks) {
        if (!rank.contains(group)) continue;
        Call& call = *rank[group][k];
        call.moved.start = std::min(std::max(call.moved.start, last_start), call.moved.end);
        call.host_late = host_late;
      }
    }
  }
}

// The steps of which every rank has rows.
std::vector<int> common_steps(const Timeline& timeline) {
  std::map<int, std::size_t> ranks_of;
  for (const timeline::Step& step : timeline.steps) ++ranks_of[step.number];
  std::vector<int> numbers;
  for (const auto& [number, ranks] : ranks_of) {
    if (ranks == timeline.ranks.size()) numbers.push_back(number);
  }
  return numbers;
}

base::Status expect_traces_of_a_run(const Timeline& timeline) {
  for (const timeline::Provenance& rank : timeline.ranks) {
    if (!rank.foreign) return Error{text(rank.path, " is of a run of shardbook, and no trace of PyTorch: ./shardbook why explains it")};
  }
  if (timeline.ranks.size() < 2) {
    const timeline::Provenance& only = timeline.ranks.front();
    return Error{text(only.path, " is one rank", only.world_size > 1 ? text(" of ", only.world_size) : std::string(), ": name the traces of all ranks, as a collective begins when its last rank comes")};
  }
  if (timeline.steps.empty()) return Error{text(timeline.ranks.front().path, " has no steps: give torch.profiler.profile a schedule, and call step() after each step")};
  return base::Done{};
}

}  // namespace

base::Result<OwnTrace> own_trace(Timeline timeline) {
  if (base::Status expected = expect_traces_of_a_run(timeline); !expected) return expected.as_error();
  OwnTrace trace{std::move(timeline), {}, ""};
  const Timeline& all = trace.timeline;
  for (const int number : common_steps(all)) trace.steps.push_back({number, {}, ""});
  if (trace.steps.empty()) return Error{"these traces have no step in common: are they of one run?"};

  std::map<int, std::size_t> place;
  for (std::size_t i = 0; i < trace.steps.size(); ++i) place[trace.steps[i].number] = i;
  for (const timeline::Provenance& rank : all.ranks) {
    const Host host(all, rank.rank);
    if (!host.has_engine()) return Error{text(rank.path, " has no rows of autograd, so forward and backward cannot be told apart: trace ProfilerActivity.CPU, too")};
    take_rank(all, rank.rank, host, place, trace.steps);
  }
  std::size_t calls = 0;
  for (const TracedStep& step : trace.steps) {
    for (const RankStep& rank : step.ranks) calls += rank.calls.size();
  }
  if (calls == 0) return Error{text("no step of these ", all.ranks.size(), " traces has a collective: was the script started by torchrun --nproc-per-node 2, and traced with ProfilerActivity.CUDA?")};

  for (TracedStep& step : trace.steps) match(all, step);
  for (const timeline::Provenance& rank : all.ranks) {
    const metrics::DeviceSets sets = metrics::device_sets(all, rank.rank);
    for (TracedStep& step : trace.steps) {
      for (RankStep& one : step.ranks) {
        if (one.rank != rank.rank) continue;
        for (Call& call : one.calls) call.exposed = call.moved.length() - base::length_within(sets.compute, call.moved);
      }
    }
  }
  const std::size_t ranks = all.ranks.size(), world = static_cast<std::size_t>(std::max(all.ranks.front().world_size, 0));
  trace.about = text(ranks, world > ranks ? text(" of ", world) : std::string(), " ranks", all.ranks.front().device.empty() ? "" : " on " + all.ranks.front().device, ", ", trace.steps.size(), trace.steps.size() == 1 ? " step" : " steps");
  return trace;
}

std::string shares_text(const OwnTrace& trace) {
  metrics::Partition all;
  Nanoseconds whole = 0;
  for (const TracedStep& step : trace.steps) {
    for (const RankStep& rank : step.ranks) {
      const metrics::Partition one = metrics::partition(trace.timeline, rank.rank, rank.window);
      whole += one.window.length();
      all.compute_ns += one.compute_ns;
      all.exposed_communication_ns += one.exposed_communication_ns;
      all.idle_ns += one.idle_ns;
    }
  }
  const auto percent = [whole](Nanoseconds part) { return text(whole > 0 ? std::lround(100 * static_cast<double>(part) / static_cast<double>(whole)) : 0, " %"); };
  return text("compute ", percent(all.compute_ns), ", open communication ", percent(all.exposed_communication_ns), ", nothing ", percent(all.idle_ns));
}

}  // namespace shardbook::workbook
