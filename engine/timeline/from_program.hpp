// timeline/from_program: the record of a rank becomes spans and edges.
//
// A program says what was issued, its times say when: each op that ran is a span of its stream, each
// command a row of the host thread, each wait an edge from the op that the event covered to the
// next op of the waiting stream (and a row "Stream Wait Event", by which HTA finds the same). The
// line where the awaited event was recorded goes to the span that waited. Equal correlations join a
// launch and its span. What the ops read and write becomes the memory counters (memory.hpp).
#pragma once

#include <limits>
#include <vector>

#include "engine/program/program.hpp"
#include "engine/program/times.hpp"
#include "engine/timeline/builder.hpp"

namespace shardbook::timeline {

// One traced step of one rank.
struct ProgramStep {
  const program::Program* program = nullptr;
  const program::StepTimes* times = nullptr;
  // Per op: how long a collective waited for its last rank; null or negative = not known.
  const std::vector<Nanoseconds>* wait_ns = nullptr;
  // When the step before, if it was not traced, left the device: this one's window does not begin earlier.
  Nanoseconds device_free_at = std::numeric_limits<Nanoseconds>::min();
};

// Adds one rank with its steps, in order. All ranks must add the same steps, for collectives are
// numbered through them. Times are taken as they are: one base for all ranks.
void add_program(TimelineBuilder& builder, const Provenance& provenance, const program::Catalogue& catalogue,
                 const std::vector<ProgramStep>& steps);

// The number under which stream `id` of a program stands in a timeline (CUPTI counts from 7).
constexpr std::int64_t stream_number(program::StreamId id) { return id == 0 ? 7 : 16 + 4 * std::int64_t{id}; }

}  // namespace shardbook::timeline
