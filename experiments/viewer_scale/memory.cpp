// How many bytes a span does a real run take, and for what? Opens runs as the viewer does; at will repeats one in time.
//
//   viewer_memory_bench RUN [MILLIONS]
//
// RUN is a pack, a folder or a trace. With MILLIONS its steps follow themselves until there are so many spans: what is
// shared by all steps (names, details) is then as little of it as in a long run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "viewer/scene/loader.hpp"

namespace {

using namespace shardbook;
using timeline::Timeline;

template <class T>
double heap(const std::vector<T>& column) {
  return static_cast<double>(column.capacity() * sizeof(T));
}

template <class T, class Change>
void repeat(std::vector<T>& column, int times, Change change) {
  const std::size_t once = column.size();
  column.reserve(once * static_cast<std::size_t>(times));
  for (int k = 1; k < times; ++k) {
    for (std::size_t i = 0; i < once; ++i) column.push_back(change(column[i], k));
  }
}

Timeline repeated(Timeline run, int times) {
  base::Nanoseconds first = 0, last = 0;
  std::uint32_t correlations = 0;
  for (const timeline::Track& track : run.tracks) {
    first = std::min(first, track.start.front());
    last = std::max(last, *std::max_element(track.end.begin(), track.end.end()));
    correlations = std::max(correlations, *std::max_element(track.correlation.begin(), track.correlation.end()));
  }
  std::int32_t steps = 0;
  std::int64_t sequences = 0;
  for (const timeline::Step& step : run.steps) steps = std::max(steps, step.number + 1);
  for (const timeline::Collective& collective : run.collectives) sequences = std::max(sequences, collective.seq + 1);
  const base::Nanoseconds period = last - first + 1000;
  const auto later = [&](base::Nanoseconds time, int k) { return time + k * period; };
  const auto same = [](auto value, int) { return value; };

  // Edges before the columns, whose sizes they need.
  std::vector<timeline::Edge> edges(run.edges.begin(), run.edges.end());
  repeat(edges, times, [&](timeline::Edge edge, int k) {
    for (timeline::SpanRef* span : {&edge.from, &edge.to}) span->index += static_cast<std::uint32_t>(run.tracks[span->track].size()) * static_cast<std::uint32_t>(k);
    return edge;
  });
  std::sort(edges.begin(), edges.end(), [](const timeline::Edge& a, const timeline::Edge& b) { return std::tie(a.to, a.from, a.kind) < std::tie(b.to, b.from, b.kind); });
  run.edges = timeline::Edges(edges);
  const auto collectives = static_cast<std::uint32_t>(run.collectives.size() - 1);
  std::vector<timeline::Collective> parts(run.collectives.begin() + 1, run.collectives.end());
  repeat(parts, times, [&](timeline::Collective part, int k) {
    if (part.seq >= 0) part.seq += k * sequences;
    return part;
  });
  run.collectives.resize(1);
  run.collectives.insert(run.collectives.end(), parts.begin(), parts.end());
  run.collectives.shrink_to_fit();
  for (timeline::Track& track : run.tracks) {
    repeat(track.start, times, later), repeat(track.end, times, later);
    repeat(track.label, times, same), repeat(track.detail, times, same), repeat(track.cls, times, same), repeat(track.flags, times, same);
    repeat(track.correlation, times, [&](std::uint32_t value, int k) { return value == 0 ? 0 : value + correlations * static_cast<std::uint32_t>(k); });
    repeat(track.collective, times, [&](std::uint32_t value, int k) { return value == 0 ? 0 : value + collectives * static_cast<std::uint32_t>(k); });
    repeat(track.step, times, [&](std::int32_t value, int k) { return value < 0 ? value : value + k * steps; });
  }
  for (timeline::Counter& counter : run.counters) repeat(counter.time, times, later), repeat(counter.value, times, same);
  repeat(run.steps, times, [&](timeline::Step step, int k) {
    step.number += k * steps;
    for (base::Nanoseconds* time : {&step.start, &step.end, &step.host_start, &step.host_end}) *time = later(*time, k);
    return step;
  });
  std::sort(run.steps.begin(), run.steps.end(), [](const timeline::Step& a, const timeline::Step& b) { return std::tie(a.rank, a.number) < std::tie(b.rank, b.number); });
  return run;
}

void print(const scene::Scene& scene) {
  const Timeline& run = scene.timeline();
  const auto spans = static_cast<double>(run.spans());
  const auto say = [&](const char* what, double bytes) { std::printf("  %-28s %6.1f\n", what, bytes / spans); };
  std::printf("%.0f spans, %.2f edges and %.2f counter points a span; bytes a span:\n", spans, static_cast<double>(run.edges.size()) / spans, [&] {
    double points = 0;
    for (const timeline::Counter& counter : run.counters) points += static_cast<double>(counter.time.size());
    return points / spans;
  }());
  double columns = 0, counters = 0, indices = 0, matched = heap(scene.collectives()), sets = 0;
  for (const timeline::Track& t : run.tracks) {
    columns += heap(t.start) + heap(t.end) + heap(t.label) + heap(t.correlation) + heap(t.detail) + heap(t.collective) + heap(t.step) + heap(t.cls) + heap(t.flags);
  }
  for (const timeline::Counter& counter : run.counters) counters += heap(counter.time) + heap(counter.value);
  for (std::size_t t = 0; t < run.tracks.size(); ++t) indices += static_cast<double>(scene.index(t).memory());
  for (const metrics::MatchedCollective& collective : scene.collectives()) matched += heap(collective.spans);
  const double path = heap(scene.path().pieces), exposures = heap(scene.exposures());
  say("columns of the spans", columns);
  say("edges", static_cast<double>(run.edges.memory()));
  say("counters", counters);
  say("details", heap(run.details));
  say("collectives", heap(run.collectives));
  say("names, tracks, the rest", static_cast<double>(run.memory()) - columns - counters - heap(run.details) - heap(run.collectives) - static_cast<double>(run.edges.memory()));
  say("timeline", static_cast<double>(run.memory()));
  say("index of the rows", indices);
  say("edges by where they begin", 4.0 * static_cast<double>(run.edges.size()));
  say("matched collectives", matched);
  say("critical path, exposures", path + exposures);
  sets = static_cast<double>(scene.memory()) - static_cast<double>(run.memory()) - indices - 4.0 * static_cast<double>(run.edges.size()) - matched - path - exposures;
  say("derived rows, lookups", sets);
  say("timeline and scene", static_cast<double>(scene.memory()));
  for (const scene::RankScene& rank : scene.ranks()) scene.links(rank.rank);
  say("links, of all ranks", static_cast<double>(scene.memory()) - static_cast<double>(run.memory()) - indices - 4.0 * static_cast<double>(run.edges.size()) - matched - path - exposures - sets);
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return std::fprintf(stderr, "usage: viewer_memory_bench RUN [MILLIONS]\n"), 2;
  const auto loaded = scene::load({words[1]});
  if (!loaded) return std::fprintf(stderr, "%s\n", loaded.error().c_str()), 2;
  if (count < 3) return print(*loaded.value()), 0;
  const Timeline& run = loaded.value()->timeline();
  const int times = std::max(1, static_cast<int>(std::atof(words[2]) * 1e6 / static_cast<double>(run.spans())));
  print(*scene::Scene::make(repeated(run, times), {}, "repeated"));
  return 0;
}
