// metrics/exposure: which collective should the learner look at first?
//
// Exposed is not blocking: a collective may fill a hole that nothing needed. `blocking` is the
// part of a span that is exposed and on the cross-rank critical path; the headline is the span
// where it is longest. Command line, checks and viewer print the same sentence, from here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/metrics/critical_path.hpp"

namespace shardbook::metrics {

enum class ExposureCause : std::uint8_t {
  event,          // it waited for an event (line known or not)
  launch,         // the host launched it late
  stream,         // it queued behind the span before it on its stream
  late_rank,      // another rank came late
  limiter,        // the limiter held it back
  buffer,         // the memory it writes was still in use
  needed_at_once, // it started as early as it could; what came next needed it
};

struct Exposure {
  SpanRef span;
  Nanoseconds span_ns = 0;
  Nanoseconds exposed_ns = 0;
  Nanoseconds blocking_ns = 0;
  ExposureCause cause = ExposureCause::needed_at_once;
  SpanRef awaited;              // what decided its start, if known
  timeline::Line line;          // of the event it awaited, else of its launch; may be unknown
  bool inferred = false;        // the trace records no waits: `awaited` is what ended last before

  double exposed_share() const { return span_ns > 0 ? double(exposed_ns) / double(span_ns) : 0; }
};

// Every communication span of the window with exposed time, longest blocking first, then longest
// exposed, then by span: the order of the viewer's "next exposed" key.
std::vector<Exposure> exposures(const Timeline& timeline, const CriticalPath& path);

// What a reader calls spans like this one: "all-gather", "gemm qkv", "copy".
std::string kind_name(const Timeline& timeline, SpanRef span);

// Those of a window, of these ranks (empty: of all), in the same order.
std::vector<Exposure> exposures_of(const Timeline& timeline, Window window, const std::vector<Rank>& ranks);

// The first of exposures(); none if no communication is exposed.
std::optional<Exposure> longest_blocking_exposure(const Timeline& timeline, Window window);

// "rank 0, layer 7: the all-gather was 62 % exposed and blocked the step for 1.2 ms, because it
//  waited for the event recorded at engine/fsdp/schedule.cpp:118" (no full stop).
std::string sentence(const Timeline& timeline, const Exposure& exposure);
// The sentence for a window, also when nothing is exposed.
std::string exposure_sentence(const Timeline& timeline, Window window);

// "1.2 ms", "62 µs", "310 ns": three significant digits at most.
std::string duration_text(Nanoseconds ns);

}  // namespace shardbook::metrics
