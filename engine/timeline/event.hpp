// timeline/event: one object of traceEvents, parsed.
//
// Only the fields that a Timeline keeps are read; all others are skipped where they stand. Text is
// left as it is in the file (RawString), so that parsing an event allocates nothing.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/timeline/json_cursor.hpp"

namespace shardbook::timeline {

constexpr std::int64_t absent = std::numeric_limits<std::int64_t>::min();

struct EventArgs {
  // Kineto's.
  std::int64_t stream = absent, device = absent, correlation = 0, bytes = 0;
  std::int64_t in_elements = 0, out_elements = 0, seq = -1;
  std::int64_t wait_on_stream = absent, wait_on_record = 0;
  RawString collective, group, group_ranks, dtype, name;
  std::int64_t value = absent;
  // Ours.
  RawString op, part, phase, source, awaits, planned, label, cls, edges, kind;
  std::int64_t step = -1, micro_batch = -1, chunk = -1, layer = -1, n = -1, flops = 0;
  std::int64_t buffer_bytes = absent, wait_ns = -1, launch_bound = 0, planned_leads = 0, id = 0;
  std::int64_t device_start_ns = absent, device_end_ns = absent, closing = 0;
  std::int64_t track_id = absent;
};

struct Event {
  char phase = 0;                            // "X", "M", "C" ...
  RawString cat, name;
  std::int64_t pid = absent, tid = absent;   // absent for names ("Spans") instead of numbers
  std::int64_t ts = absent, dur = absent;    // ns
  EventArgs args;
};

// Parses {...}. On false the cursor is where it failed; what was not given stays at its default.
bool parse_event(JsonCursor& cursor, Event& event);

// Takes over what `from` gives and leaves the rest: an end event's arguments belong to its begin.
void merge_args(EventArgs& args, const EventArgs& from);

}  // namespace shardbook::timeline
