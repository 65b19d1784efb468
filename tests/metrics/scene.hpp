// Short ways to build timelines for tests of metrics.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "engine/metrics/partition.hpp"
#include "engine/timeline/builder.hpp"

namespace shardbook::metrics {

using timeline::Class;
using timeline::CollectiveOp;
using timeline::EdgeKind;
using timeline::TrackKind;

// A timeline under construction: spans by stream, launches on request, collectives in one group.
class Scene {
 public:
  using Span = timeline::TimelineBuilder::SpanNumber;

  explicit Scene(int ranks = 1, Nanoseconds clock_error_ns = 0, timeline::Clock clock = timeline::Clock::modelled) {
    std::vector<Rank> all;
    for (Rank rank = 0; rank < ranks; ++rank) {
      timeline::Provenance provenance;
      provenance.rank = rank;
      provenance.world_size = ranks;
      provenance.clock = clock;
      provenance.profile = clock == timeline::Clock::modelled ? "h200x8" : "";
      provenance.clock_error_ns = clock_error_ns;
      builder.add_rank(provenance);
      all.push_back(rank);
    }
    group_ = builder.group("dp_shard", all);
  }

  Span compute(Rank rank, Nanoseconds start, Nanoseconds end, timeline::Detail detail = {}, std::int64_t stream = 7) {
    return add(rank, stream, start, end, Class::compute, "gemm", detail, 0);
  }
  Span memory(Rank rank, Nanoseconds start, Nanoseconds end, std::int64_t stream = 7) {
    return add(rank, stream, start, end, Class::memory, "copy", {}, 0);
  }
  // The CPU's own work, in its place among a stream's ops.
  Span cpu(Rank rank, Nanoseconds start, Nanoseconds end, timeline::Detail detail = {}, std::int64_t stream = 30) {
    return add(rank, stream, start, end, Class::host, "adam_w_on_host", detail, 0);
  }
  Span collective(Rank rank, Nanoseconds start, Nanoseconds end, std::int64_t seq, timeline::Detail detail = {},
                  CollectiveOp op = CollectiveOp::all_gather, base::Bytes bytes = 0, std::int64_t stream = 20) {
    timeline::Collective collective{.group = group_, .seq = seq, .op = op, .bytes = bytes};
    return add(rank, stream, start, end, Class::communication, name_of(op), detail, builder.collective(collective));
  }
  // The call that launches the span added last.
  Span launched_at(Rank rank, Nanoseconds start, Nanoseconds end) {
    return builder.add(builder.track(rank, TrackKind::host, 1, "host thread"),
                       {.start = start, .end = end, .label = builder.intern("cudaLaunchKernel"), .cls = Class::host,
                        .correlation = correlation_});
  }
  Span host_wait(Rank rank, Nanoseconds start, Nanoseconds end) {
    return builder.add(builder.track(rank, TrackKind::host, 1, "host thread"),
                       {.start = start, .end = end, .label = builder.intern("cudaEventSynchronize"), .cls = Class::sync});
  }
  timeline::Detail detail(const char* op, int layer, const char* phase = "forward") {
    timeline::Detail detail;
    detail.op = builder.intern(op);
    detail.phase = builder.intern(phase);
    detail.layer = layer;
    return detail;
  }
  timeline::Line line(const char* file, int number) { return {builder.intern(file), number}; }
  Timeline done() { return builder.finish(&where); }
  SpanRef at(Span span) const { return where[span]; }

  timeline::TimelineBuilder builder;
  std::vector<SpanRef> where;

 private:
  Span add(Rank rank, std::int64_t stream, Nanoseconds start, Nanoseconds end, Class cls, const char* label,
           const timeline::Detail& detail, std::uint32_t collective) {
    const auto track = builder.track(rank, TrackKind::stream, stream, "stream " + std::to_string(stream));
    return builder.add(track, {.start = start, .end = end, .label = builder.intern(label), .cls = cls,
                               .correlation = ++correlation_, .detail = builder.detail(detail), .collective = collective});
  }
  std::uint32_t group_ = 0;
  std::uint32_t correlation_ = 0;
};

// Random spans of small integers on a few streams, so that a reference can look at every nanosecond.
inline Timeline random_timeline(std::mt19937& random, int ranks = 1, Nanoseconds longest = 120) {
  Scene scene(ranks);
  std::uniform_int_distribution<Nanoseconds> at(0, longest), length(0, 14);
  std::uniform_int_distribution<int> kind(0, 2), count(0, 25);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const int spans = count(random);
    for (int i = 0; i < spans; ++i) {
      const Nanoseconds start = at(random), end = start + length(random);
      switch (kind(random)) {
        case 0: scene.compute(rank, start, end, {}, 7 + 13 * kind(random)); break;
        case 1: scene.collective(rank, start, end, i, {}, CollectiveOp::all_reduce, 0, 20 + 13 * kind(random)); break;
        default: scene.memory(rank, start, end, 7 + 13 * kind(random));
      }
    }
  }
  return scene.done();
}

}  // namespace shardbook::metrics
