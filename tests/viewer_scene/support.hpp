// Short ways to build scenes for tests of viewer/scene.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "tests/metrics/scene.hpp"
#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

using Sketch = metrics::Scene;                 // a timeline under construction
using timeline::Class;
using timeline::Track;
using timeline::TrackKind;

inline std::shared_ptr<const Scene> scene_of(Timeline timeline, std::shared_ptr<const timeline::RunInfo> info = nullptr) {
  return Scene::make(std::move(timeline), std::move(info), "test");
}

inline Row row_named(const Scene& scene, const std::string& name) {
  const std::optional<Row> row = scene.row_of(name);
  EXPECT_TRUE(row.has_value()) << name;
  return row.value_or(Row{});
}

// Spans at random distances, in bursts, so that some columns hold many and some none. Flat lanes of the
// streams 7 (compute, copies) and 20 (communication) of each rank, and a host thread of nested calls.
inline Timeline random_run(unsigned seed, int ranks, int spans, bool hosts = true) {
  std::mt19937 random(seed);
  const auto any = [&](Nanoseconds least, Nanoseconds most) { return std::uniform_int_distribution<Nanoseconds>(least, most)(random); };
  Sketch sketch(ranks);
  for (Rank rank = 0; rank < ranks; ++rank) {
    for (const std::int64_t stream : {7, 20}) {
      Nanoseconds now = any(0, 1000);
      for (int i = 0; i < spans; ++i) {
        now += any(0, 40) == 0 ? any(0, 200'000) : any(0, 3) == 0 ? 0 : any(0, 900);
        const Nanoseconds end = now + (any(0, 30) == 0 ? any(0, 60'000) : any(0, 1500));
        if (stream == 20) sketch.collective(rank, now, end, i, {}, timeline::CollectiveOp::all_gather, 1 << 20);
        else if (any(0, 9) == 0) sketch.memory(rank, now, end);
        else sketch.compute(rank, now, end);
        now = end;
      }
    }
    Nanoseconds now = 0;
    for (int i = 0; hosts && i < spans / 4; ++i) {
      const auto track = sketch.builder.track(rank, TrackKind::host, 909, "thread 909");
      const auto call = [&](Nanoseconds start, Nanoseconds end, const char* name) {
        sketch.builder.add(track, {.start = start, .end = end, .label = sketch.builder.intern(name), .cls = Class::host});
      };
      const Nanoseconds end = now + any(100, 4000);
      call(now, end, "outer");
      for (Nanoseconds at = now; at < end;) {
        const Nanoseconds inner = std::min(end, at + any(1, 900));
        call(at, inner, "inner");
        if (any(0, 2) == 0) call(at, at + (inner - at) / 2, "innermost");
        at = inner + any(0, 300);
      }
      now = end + any(0, 500);
    }
  }
  return sketch.done();
}

// The plain reference: looks at each span for each question, and knows no index.
inline Nanoseconds union_length(std::vector<Interval> spans, Window window) {
  std::sort(spans.begin(), spans.end(), [](Interval a, Interval b) { return a.start < b.start; });
  Nanoseconds sum = 0, until = window.start;
  for (const Interval& span : spans) {
    const Nanoseconds start = std::max(span.start, until), end = std::min(span.end, window.end);
    if (end > start) sum += end - start;
    until = std::max(until, std::min(span.end, window.end));
  }
  return sum;
}

inline std::vector<Interval> device_spans(const Timeline& timeline, Rank rank, std::set<Class> classes) {
  std::vector<Interval> out;
  for (const Track& track : timeline.tracks) {
    if (track.rank != rank || track.kind != TrackKind::stream) continue;
    for (std::size_t i = 0; i < track.size(); ++i) {
      if (classes.contains(track.cls[i])) out.push_back({track.start[i], track.end[i]});
    }
  }
  return out;
}

}  // namespace shardbook::scene
