// A small timeline of two ranks with everything a timeline can hold, for tests of writer and reader.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "engine/timeline/builder.hpp"

namespace shardbook::timeline {

// A folder that is gone after the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "shardbook-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& file) const { return (path_ / file).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline std::string content_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

inline void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// Two ranks, two steps; a gather on stream 20 that a matmul on stream 7 waits for; odd nanoseconds, a span of
// no length, two that overlap without nesting, quotes and control characters in names.
inline Timeline sample_timeline(Clock clock = Clock::modelled) {
  TimelineBuilder builder;
  builder.set_base_ns(1'790'000'000'000'000'123);
  for (Rank rank : {0, 1}) {
    Provenance provenance;
    provenance.rank = rank;
    provenance.world_size = 2;
    provenance.clock = clock;
    provenance.profile = clock == Clock::modelled ? "h200x8" : "";
    provenance.clock_error_ns = 40 * rank;
    provenance.device = "NVIDIA H200";
    builder.add_rank(provenance);

    const auto host = builder.track(rank, TrackKind::host, 1, "host thread");
    const auto compute = builder.track(rank, TrackKind::stream, 7, "stream 7 compute");
    const auto comm = builder.track(rank, TrackKind::stream, 20, "stream 20 fsdp");
    const auto marks = builder.track(rank, TrackKind::marks, 7, "stream 7 compute waits");
    const auto group = builder.group("dp_shard", {0, 1});
    std::uint32_t correlation = 100;

    for (std::int32_t number = 0; number < 2; ++number) {
      const Nanoseconds t = 1000 + number * 1'000'000 + rank * 7;
      Detail gather_detail;
      gather_detail.op = builder.intern("all_gather");
      gather_detail.part = builder.intern("unit");
      gather_detail.phase = builder.intern("forward");
      gather_detail.layer = 3;
      gather_detail.micro_batch = 0;
      gather_detail.chunk = 0;
      gather_detail.n = 2;
      gather_detail.source = {builder.intern("engine/fsdp/schedule.cpp"), 118};
      gather_detail.bytes = 4096;
      Detail gemm_detail = gather_detail;
      gemm_detail.op = builder.intern("gemm");
      gemm_detail.part = builder.intern("qkv");
      gemm_detail.flops = 123'456'789'012'345;
      gemm_detail.source.line = 240;
      gemm_detail.awaits = {builder.intern("engine/fsdp/schedule.cpp"), 121};

      const auto call = [&](const char* name, Nanoseconds at, Class cls = Class::host) {
        return builder.add(host, {.start = at, .end = at + 501, .label = builder.intern(name), .cls = cls,
                                  .correlation = ++correlation, .step = number});
      };
      call("cudaLaunchKernel", t);
      Collective collective{.group = group, .seq = number, .op = CollectiveOp::all_gather,
                            .dtype = builder.intern("bf16"), .bytes = 8192, .wait_ns = rank == 0 ? 7 : 0};
      const auto gather = builder.add(comm, {.start = t + 2000, .end = t + 102'345, .label = builder.intern("all_gather unit"),
                                             .cls = Class::communication, .correlation = correlation,
                                             .detail = builder.detail(gather_detail),
                                             .collective = builder.collective(collective), .step = number});
      const auto record = call("cudaEventRecord", t + 1000);
      call("cudaStreamWaitEvent", t + 2000);
      const auto wait = builder.add(marks, {.start = t + 102'345, .end = t + 102'345, .label = builder.intern("Stream Wait Event"),
                                            .cls = Class::sync, .correlation = correlation, .step = number});
      builder.add_edge(record, wait, EdgeKind::event);
      builder.add_edge(gather, wait, EdgeKind::event);
      call("cudaLaunchKernel", t + 3000);
      const auto gemm = builder.add(compute, {.start = t + 103'000, .end = t + 250'001,
                                              .label = builder.intern("gemm \"qkv\"\n\\ Sync"), .cls = Class::compute,
                                              .correlation = correlation, .detail = builder.detail(gemm_detail),
                                              .step = number, .launch_bound = true});
      builder.add_edge(gather, gemm, EdgeKind::event);
      call("cudaLaunchKernel", t + 4000);
      const auto overlapping = builder.add(compute, {.start = t + 200'000, .end = t + 300'000, .label = builder.intern("gelu_forward"),
                                                     .cls = Class::compute, .correlation = correlation, .step = number});
      call("cudaMemcpyAsync", t + 5000);
      const auto copy = builder.add(compute, {.start = t + 310'000, .end = t + 310'400, .label = builder.intern("copy_out"),
                                              .cls = Class::memory, .correlation = correlation, .step = number});
      builder.add_edge(overlapping, copy, EdgeKind::limiter);
      call("cudaMemsetAsync", t + 6000);
      builder.add(compute, {.start = t + 311'000, .end = t + 311'300, .label = builder.intern("fill_zero"),
                            .cls = Class::memory, .correlation = correlation, .step = number});
      const auto sync = call("cudaEventSynchronize", t + 310'900, Class::sync);
      builder.add_edge(copy, sync, EdgeKind::host);
      builder.add(host, {.start = t + 100, .end = t + 7000, .label = builder.intern("forward"), .cls = Class::annotation});
      builder.add_step({.rank = rank, .number = number, .start = t, .end = t + 312'000, .host_start = t, .host_end = t + 320'000});
      builder.add_counter(rank, "activation bytes", t, 1'000'000'007 * (number + 1));
    }
  }
  return builder.finish();
}

// Everything that a reader sees of a span, as text: two timelines are equal if their descriptions are.
inline std::string description(const Timeline& timeline) {
  std::ostringstream out;
  out << "base " << timeline.base_ns << "\n";
  for (const Provenance& p : timeline.ranks) {
    out << "rank " << p.rank << " of " << p.world_size << " " << name_of(p.clock) << " " << p.profile << " " << p.clock_error_ns
        << " " << p.device << "\n";
  }
  const auto text = [&](std::uint32_t id) { return "'" + std::string(timeline.strings[id]) + "'"; };
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const Track& track = timeline.tracks[t];
    out << "track " << track.rank << " " << int(track.kind) << " " << track.id << " lane " << track.lane << " " << track.name << "\n";
    for (std::uint32_t i = 0; i < track.size(); ++i) {
      const SpanRef span{t, i};
      const Detail& d = timeline.detail(span);
      out << " " << track.start[i] << ".." << track.end[i] << " " << text(track.label[i]) << " " << name_of(track.cls[i]) << " c"
          << track.correlation[i] << " s" << track.step[i] << " f" << int(track.flags[i]) << " | " << text(d.op) << text(d.part)
          << text(d.phase) << " " << d.micro_batch << " " << d.chunk << " " << d.layer << " " << d.n << " "
          << line_text(timeline, d.source) << " " << line_text(timeline, d.awaits) << " " << d.flops << " " << d.bytes;
      if (timeline.has_collective(span)) {
        const Collective& c = timeline.collective(span);
        const Group& g = timeline.groups[c.group];
        out << " | " << text(g.name);
        for (Rank rank : g.ranks) out << " " << rank;
        out << " seq " << c.seq << " " << name_of(c.op) << " " << text(c.dtype) << " " << c.bytes << " wait " << c.wait_ns;
      }
      out << "\n";
    }
  }
  for (const Edge& e : timeline.edges) {
    out << "edge " << e.from.track << "/" << e.from.index << " -> " << e.to.track << "/" << e.to.index << " " << name_of(e.kind) << "\n";
  }
  for (const Step& s : timeline.steps) {
    out << "step " << s.rank << " " << s.number << " " << s.start << " " << s.end << " " << s.host_start << " " << s.host_end << "\n";
  }
  for (const Counter& c : timeline.counters) {
    out << "counter " << c.rank << " " << c.name;
    for (std::size_t i = 0; i < c.time.size(); ++i) out << " " << c.time[i] << "=" << c.value[i];
    out << "\n";
  }
  return out.str();
}

}  // namespace shardbook::timeline
