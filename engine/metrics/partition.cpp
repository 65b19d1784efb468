// metrics/partition: sets of a rank and their sums; see partition.hpp.
#include "engine/metrics/partition.hpp"

#include <algorithm>
#include <map>

namespace shardbook::metrics {

using timeline::Class;
using timeline::Track;
using timeline::TrackKind;

DeviceSets device_sets(const Timeline& timeline, Rank rank) {
  std::vector<Interval> compute, communication, memory;
  timeline::for_each_device_span(timeline, rank, [&](SpanRef span) {
    const Interval time{timeline.start(span), timeline.end(span)};
    switch (timeline.cls(span)) {
      case Class::compute: compute.push_back(time); break;
      case Class::communication: communication.push_back(time); break;
      default: memory.push_back(time);
    }
  });
  return {union_of(std::move(compute)), union_of(std::move(communication)), union_of(std::move(memory))};
}

DeviceSets clip(const DeviceSets& sets, Window window) {
  return {clip(sets.compute, window), clip(sets.communication, window), clip(sets.memory, window)};
}

std::optional<double> Partition::overlap() const {
  if (communication_ns == 0) return std::nullopt;
  return static_cast<double>(overlapped_ns) / static_cast<double>(communication_ns);
}

std::optional<double> Partition::attainable() const {
  const Nanoseconds smaller = std::min(communication_ns, compute_ns);
  if (smaller == 0) return std::nullopt;
  return static_cast<double>(overlapped_ns) / static_cast<double>(smaller);
}

Partition partition(const DeviceSets& all, Window window) {
  const DeviceSets sets = clip(all, window);
  const Intervals busy_but_memory = unite(sets.compute, sets.communication);
  Partition out;
  out.window = window;
  out.compute_ns = length(sets.compute);
  out.communication_ns = length(sets.communication);
  out.overlapped_ns = length(intersect(sets.communication, sets.compute));
  out.exposed_communication_ns = out.communication_ns - out.overlapped_ns;
  out.exposed_memory_ns = length(subtract(sets.memory, busy_but_memory));
  out.idle_ns = length(idle(sets, window));
  return out;
}

Partition partition(const Timeline& timeline, Rank rank, Window window) {
  return partition(device_sets(timeline, rank), window);
}

Intervals exposed_communication(const DeviceSets& sets) { return subtract(sets.communication, sets.compute); }

Intervals idle(const DeviceSets& sets, Window window) {
  if (window.end <= window.start) return {};
  return subtract(Intervals{window}, unite(unite(sets.compute, sets.communication), sets.memory));
}

Window device_window(const Timeline& timeline, Rank rank) {
  Window window;
  bool any = false;
  for (const Track& track : timeline.tracks) {
    if (track.rank != rank || track.kind != TrackKind::stream) continue;
    for (std::size_t i = 0; i < track.size(); ++i) {
      if (!is_op_of_stream(track.cls[i])) continue;
      window.start = any ? std::min(window.start, track.start[i]) : track.start[i];
      window.end = any ? std::max(window.end, track.end[i]) : track.end[i];
      any = true;
    }
  }
  return window;
}

Window steps_window(const Timeline& timeline, Rank rank) {
  Window window;
  bool any = false;
  for (const timeline::Step& step : timeline.steps) {
    if (step.rank != rank) continue;
    window.start = any ? std::min(window.start, step.start) : step.start;
    window.end = any ? std::max(window.end, step.end) : step.end;
    any = true;
  }
  return any ? window : device_window(timeline, rank);
}

std::optional<Window> step_window(const Timeline& timeline, Rank rank, int number) {
  for (const timeline::Step& step : timeline.steps) {
    if (step.rank == rank && step.number == number) return Window{step.start, step.end};
  }
  return std::nullopt;
}

std::vector<StreamBusy> stream_busy(const Timeline& timeline, Rank rank, Window window) {
  std::map<std::int64_t, std::vector<Interval>> spans;
  std::map<std::int64_t, std::string> names;
  for (const Track& track : timeline.tracks) {
    if (track.rank != rank || track.kind != TrackKind::stream) continue;
    names[track.id] = track.name;
    for (std::size_t i = 0; i < track.size(); ++i) {
      if (is_device_work(track.cls[i])) spans[track.id].push_back({track.start[i], track.end[i]});
    }
  }
  std::vector<StreamBusy> out;
  for (auto& [stream, intervals] : spans) {
    out.push_back({stream, names[stream], length(clip(union_of(std::move(intervals)), window))});
  }
  return out;
}

Nanoseconds exposed_ns(const Timeline& timeline, const DeviceSets& sets, SpanRef span) {
  const Interval time{timeline.start(span), timeline.end(span)};
  return time.length() - length_within(sets.compute, time);
}

}  // namespace shardbook::metrics
