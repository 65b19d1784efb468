#include "engine/cause/idle.hpp"

#include <algorithm>
#include <map>

#include "engine/metrics/dependencies.hpp"
#include "engine/metrics/exposure.hpp"

namespace shardbook::cause {

using metrics::Decision;

namespace {

// Gaps up to so long behind what decided are what starting costs, not lateness.
constexpr Nanoseconds launch_ns = 10'000;

const char* const cpu_works = "the CPU's own work";

struct Named {
  std::string cause, line;
};

Named name_of(const Timeline& timeline, const metrics::Dependencies& dependencies, SpanRef next, Nanoseconds gap_ns) {
  const Decision decision = dependencies.decide(next);
  const timeline::Detail& detail = timeline.detail(next);
  if (decision.kind == Decision::Kind::device && timeline.cls(decision.from) == timeline::Class::host) {
    return {cpu_works, timeline::line_text(timeline, timeline.detail(decision.from).source)};
  }
  const std::string source = timeline::line_text(timeline, detail.source);
  if (decision.kind == Decision::Kind::host) return {"the host was late", source};
  if (decision.kind == Decision::Kind::none) return {"nothing recorded says", source};
  if (gap_ns <= launch_ns) return {"launching the next kernel", ""};
  const std::string awaits = timeline::line_text(timeline, detail.awaits);
  if (decision.edge == timeline::EdgeKind::stream) return {"launching the next kernel", source};
  return {"an event that it awaits", awaits.empty() ? source : awaits};
}

// The CPU's own work of a rank that ended last by then; not valid() where there is none.
SpanRef last_of_cpu(const Timeline& timeline, Rank rank, Nanoseconds until) {
  SpanRef last;
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const timeline::Track& track = timeline.tracks[t];
    if (track.rank != rank || track.kind != timeline::TrackKind::stream) continue;
    for (std::uint32_t i = 0; i < track.size(); ++i) {
      if (track.cls[i] != timeline::Class::host || track.end[i] > until) continue;
      if (!last.valid() || track.end[i] > timeline.end(last)) last = {t, i};
    }
  }
  return last;
}

}  // namespace

std::vector<Idle> idle_of(const Timeline& timeline, Rank rank, Window window) {
  std::vector<SpanRef> spans;
  timeline::for_each_device_span(timeline, rank, [&](SpanRef span) {
    if (timeline.end(span) > window.start && timeline.start(span) < window.end) spans.push_back(span);
  });
  std::sort(spans.begin(), spans.end(), [&](SpanRef a, SpanRef b) {
    return std::pair(timeline.start(a), a) < std::pair(timeline.start(b), b);
  });
  const metrics::Dependencies dependencies(timeline, window);
  std::map<std::string, Idle> by_cause;
  std::map<std::string, std::map<std::string, Nanoseconds>> lines;
  const auto add = [&](const Named& named, Nanoseconds ns) {
    Idle& idle = by_cause[named.cause];
    idle.ns += ns;
    ++idle.gaps;
    lines[named.cause][named.line] += ns;
  };
  Nanoseconds busy_until = window.start;
  for (const SpanRef span : spans) {
    const Nanoseconds start = timeline.start(span);
    if (start > busy_until) add(name_of(timeline, dependencies, span, start - busy_until), start - busy_until);
    busy_until = std::max(busy_until, timeline.end(span));
  }
  // Behind the last of the device the CPU may work on, or other ranks
  if (busy_until < window.end) {
    const SpanRef cpu = last_of_cpu(timeline, rank, window.end);
    if (cpu.valid() && timeline.end(cpu) > busy_until) {
      add({cpu_works, timeline::line_text(timeline, timeline.detail(cpu).source)}, timeline.end(cpu) - busy_until);
      busy_until = timeline.end(cpu);
    }
  }
  if (busy_until < window.end) add({"other ranks are not done", ""}, window.end - busy_until);

  std::vector<Idle> out;
  for (auto& [cause, idle] : by_cause) {
    idle.cause = cause;
    const auto& of = lines[cause];
    idle.line = std::max_element(of.begin(), of.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
    out.push_back(idle);
  }
  std::stable_sort(out.begin(), out.end(), [](const Idle& a, const Idle& b) { return a.ns > b.ns; });
  return out;
}

}  // namespace shardbook::cause
