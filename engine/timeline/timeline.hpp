// timeline/timeline: when did it run?
//
// A Timeline holds the spans of one or several ranks. A track is one row of the picture: a stream
// of a device or a thread of a host, and on it one lane (spans of a lane nest or follow each
// other; what overlaps otherwise goes to the next lane). A track is a struct of arrays, so that a
// million spans are a few flat columns: 38 bytes a span, and about 52 with edges, counters and collectives.
//
// What many spans share is stored once and named by an index: names, details (op, layer, source
// line ...; equal in every step), groups of ranks. Only collectives carry more (Collective).
//
// Invariants: times are integer nanoseconds since Timeline::base_ns, one base for all ranks.
// Tracks are sorted by (rank, kind, id, lane), the spans of a track by (start, longest first).
// Index 0 of details and collectives means "none". A Timeline does not need the program it came
// from: a trace of PyTorch has none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/timeline/edges.hpp"
#include "engine/timeline/strings.hpp"

namespace shardbook::timeline {

using base::Bytes;
using base::Nanoseconds;
using base::Rank;

// What a span is for. compute, communication and memory are work of a device; sync is a device's
// or host's wait that is written down as a row of its own; host is a call, or on a stream's track the CPU's own work
// among the stream's ops; annotation names others.
enum class Class : std::uint8_t { compute, communication, memory, sync, host, annotation };
const char* name_of(Class cls);
constexpr bool is_device_work(Class cls) { return cls <= Class::memory; }
// On a stream's track: an op in its place among the stream's, the CPU's own work too.
constexpr bool is_op_of_stream(Class cls) { return is_device_work(cls) || cls == Class::host; }

// Which clock told the times: on the GPUs; a machine profile; this CPU; or a file that doesn't say.
enum class Clock : std::uint8_t { measured, modelled, wall, unknown };
const char* name_of(Clock clock);

enum class CollectiveOp : std::uint8_t {
  other, all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, send, recv, barrier, shift
};
const char* name_of(CollectiveOp op);

// A line of source, file as a path from the root of the project (0 = not known).
struct Line {
  std::uint32_t file = 0;   // id in Timeline::strings
  std::int32_t line = 0;
  bool known() const { return file != 0; }
  friend bool operator==(const Line&, const Line&) = default;
};

// What an op is, without when: shared by the spans of all steps. -1 and 0 mean "does not apply".
struct Detail {
  std::uint32_t op = 0;            // strings: "all_gather", "gemm_qkv" ...
  std::uint32_t part = 0;          // strings: the piece of the layer: "qkv", "norm_1"
  std::uint32_t phase = 0;         // strings: "forward", "backward", "update" ...
  std::int32_t micro_batch = -1;
  std::int32_t chunk = -1;         // of an interleaved pipeline
  std::int32_t layer = -1;
  std::int32_t n = -1;             // the n-th op of this key
  Line source;                     // the line that launched it
  Line awaits;                     // the line that recorded the event it waited for
  Line planned;                    // the line of the plan that asked for it
  std::int32_t planned_leads = 0;  // 1: who would change its time changes `planned`, not `source`
  std::int64_t flops = 0;
  Bytes bytes = 0;                 // read and written by a kernel, or moved by a copy
  friend bool operator==(const Detail&, const Detail&) = default;
  // The line to look at first.
  const Line& leading() const { return planned_leads != 0 && planned.known() ? planned : source; }
};

// Ranks that call collectives together; `name` is unique in a Timeline together with `ranks`.
struct Group {
  std::uint32_t name = 0;          // strings
  std::vector<Rank> ranks;         // ascending; empty if the trace doesn't say
  friend bool operator==(const Group&, const Group&) = default;
};

// One rank's part of one collective. The same (group, seq) on other ranks is the same collective.
struct Collective {
  std::uint32_t group = 0;         // index into Timeline::groups
  std::int64_t seq = -1;           // -1 if the trace numbers none: then they match by order
  CollectiveOp op = CollectiveOp::other;
  std::uint32_t dtype = 0;         // strings
  Bytes bytes = 0;                 // of the whole buffer (for an all-gather: what each rank has after it)
  Nanoseconds wait_ns = -1;        // part of the span before the last rank came; -1 = not split
  friend bool operator==(const Collective&, const Collective&) = default;
};

// stream: work of a device, which rarely nests. host: the calls of a thread, which do. marks: what is
// written beside a stream without being work: annotations and waits (gpu_user_annotation, cuda_sync).
enum class TrackKind : std::uint8_t { stream, host, marks };

constexpr std::uint8_t flag_launch_bound = 1;   // the host launched it later than its inputs were ready

struct Track {
  Rank rank = 0;
  TrackKind kind = TrackKind::stream;
  std::int64_t id = 0;             // stream number as CUPTI counts (> 0), or thread id
  std::int32_t lane = 0;
  std::string name;                // "stream 20 comm", "thread 909 (python)"

  // The columns, one entry a span.
  std::vector<Nanoseconds> start, end;
  std::vector<std::uint32_t> label;          // strings: the name that is shown
  std::vector<std::uint32_t> correlation;    // equal on a launch call and what it launched; 0 = none
  std::vector<std::uint32_t> detail;         // Timeline::details
  std::vector<std::uint32_t> collective;     // Timeline::collectives
  std::vector<std::int32_t> step;            // -1 = none
  std::vector<Class> cls;
  std::vector<std::uint8_t> flags;

  std::size_t size() const { return start.size(); }
};

// One training step of one rank: when its work ran on the device (the window that metrics use) and
// when the host issued it (what a ProfilerStep#N row is).
struct Step {
  Rank rank = 0;
  std::int32_t number = 0;
  Nanoseconds start = 0, end = 0;
  Nanoseconds host_start = 0, host_end = 0;
  friend bool operator==(const Step&, const Step&) = default;
};

// A quantity over time (memory in use by kind, for one): value[i] holds from time[i] to time[i + 1].
struct Counter {
  Rank rank = 0;
  std::string name;
  std::vector<Nanoseconds> time;
  std::vector<std::int64_t> value;
};

// Where the times of a rank come from.
struct Provenance {
  Rank rank = 0;
  int world_size = 1;
  Clock clock = Clock::unknown;
  std::string profile;             // of a modelled clock: "h200x8"
  Nanoseconds clock_error_ns = 0;  // against the clock of rank 0; waits below it are not claimed
  std::string device;              // "NVIDIA H200", "host"
  std::string path;                // the file it was read from, if any
  bool foreign = false;            // that file is not ours: PyTorch's, for one
};

// "MODELLED h200x8", "measured", "wall", "clock not stated"
std::string clock_text(const Provenance& provenance);

struct Timeline {
  Timeline();

  Strings strings;
  std::vector<Track> tracks;
  std::vector<Detail> details;          // [0] = none
  std::vector<Collective> collectives;  // [0] = none
  std::vector<Group> groups;            // [0] = none
  Edges edges;                          // by (to, from, kind), each once
  std::vector<Step> steps;              // by (rank, number)
  std::vector<Counter> counters;
  std::vector<Provenance> ranks;        // ascending by rank
  std::int64_t base_ns = 0;             // Unix time of time 0
  std::vector<std::string> banners;     // what the reader must tell the user: a truncated file ...

  // The parts of one span.
  Nanoseconds start(SpanRef s) const { return tracks[s.track].start[s.index]; }
  Nanoseconds end(SpanRef s) const { return tracks[s.track].end[s.index]; }
  Class cls(SpanRef s) const { return tracks[s.track].cls[s.index]; }
  std::string_view label(SpanRef s) const { return strings[tracks[s.track].label[s.index]]; }
  Rank rank(SpanRef s) const { return tracks[s.track].rank; }
  std::int32_t step(SpanRef s) const { return tracks[s.track].step[s.index]; }
  std::uint32_t correlation(SpanRef s) const { return tracks[s.track].correlation[s.index]; }
  const Detail& detail(SpanRef s) const { return details[tracks[s.track].detail[s.index]]; }
  bool has_collective(SpanRef s) const { return tracks[s.track].collective[s.index] != 0; }
  const Collective& collective(SpanRef s) const { return collectives[tracks[s.track].collective[s.index]]; }
  bool launch_bound(SpanRef s) const { return tracks[s.track].flags[s.index] & flag_launch_bound; }

  std::size_t spans() const;
  // Heap bytes of all columns and tables.
  std::size_t memory() const;
  // The provenance of a rank, or null if the timeline has no such rank.
  const Provenance* provenance(Rank rank) const;
};

// "engine/fsdp/schedule.cpp:118", or "" for a line that is not known.
std::string line_text(const Timeline& timeline, Line line);

// Calls visit(SpanRef) for each span of a rank that is work of its device, track by track.
template <class Visit>
void for_each_device_span(const Timeline& timeline, Rank rank, Visit visit) {
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const Track& track = timeline.tracks[t];
    if (track.rank != rank || track.kind != TrackKind::stream) continue;
    for (std::uint32_t i = 0; i < track.size(); ++i) {
      if (is_device_work(track.cls[i])) visit(SpanRef{t, i});
    }
  }
}

}  // namespace shardbook::timeline
