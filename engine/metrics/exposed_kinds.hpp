// metrics/exposed_kinds: where does the exposed time come from, in sum?
//
// The longest exposure may be a small part of the whole: forty gathers of a millisecond outweigh one of two. So the
// exposed communication of a window is dealt out to kinds of span: same op, same phase, issued by the same line.
// Where communication overlaps, each has an equal part of what is exposed then (nanoseconds that do not divide go to those
// that started first), so that no kind vanishes behind another, and the kinds sum to the exposed communication of
// partition().
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/metrics/collectives.hpp"

namespace shardbook::metrics {

struct ExposedKind {
  std::string name;               // "all-gather in backward"; of what is no collective, its label
  std::string op;                 // the same without the phase: "all-gather"
  timeline::Line line;            // that issued it; may be unknown
  std::int64_t spans = 0;         // that have a part of it, over all ranks
  Nanoseconds exposed_ns = 0;     // over all ranks
  Nanoseconds waiting_ns = 0;     // of it before the collective's last rank had come, where that is known
  SpanRef longest;                // the one whose part is largest
};

// The collective that a span belongs to, nullptr if none is known.
using FindCollective = std::function<const MatchedCollective*(SpanRef)>;

// Most exposed first; equal ones by name, then by line. O(spans + spans of the window · log of them).
std::vector<ExposedKind> exposed_kinds(const Timeline& timeline, Window window, const FindCollective& find_collective);
// The same, matching the collectives of the timeline first.
std::vector<ExposedKind> exposed_kinds(const Timeline& timeline, Window window);

// A table of the first `most`, at most 100 columns wide with the engine's own lines: the part of all exposed
// communication, name, time, spans, the part of it that was waiting, line. Empty if there are none.
std::string kinds_text(const Timeline& timeline, const std::vector<ExposedKind>& kinds, std::size_t most);
// [{"name": "all-gather in backward", "line": "engine/fsdp/schedule.cpp:64", "spans": 48, "exposed_ns": ..., "waiting_ns": ...}]
nlohmann::json kinds_json(const Timeline& timeline, const std::vector<ExposedKind>& kinds);

}  // namespace shardbook::metrics
