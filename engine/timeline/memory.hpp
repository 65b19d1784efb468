// timeline/memory: how many bytes are in use, for what, and when?
//
// Arenas are laid out before the first step, so what is allocated never changes, and tells nothing. What
// changes is which of those bytes hold a value that somebody still reads: *live bytes, by the record*.
// The record says for each op which byte ranges it reads and writes, the times say when it ran:
//
//   - A value is what one op writes of one buffer without reading it. It is live, as a whole, from that op's
//     start to the end of the last op that reads or updates any of it; bytes that are overwritten, until then.
//     A gathered unit is so live from its all-gather's start to its last reader's end, an activation from
//     the forward op that writes it to the last backward op that reads it.
//   - A byte that a step reads before it writes it holds a value from before: it is live from the step's
//     begin, and its last value of the step on to the next step (after the last one for good).
//   - Parameters and optimizer state are live all the time, all of their buffers.
//   - What lies in host memory (program/host_memory.hpp) counts nowhere: no device holds it.
//
// This is what the schedule needs, derived from its record: not what an allocator gave, and nothing that a
// device measured. Memory of libraries (NCCL, cuBLAS) is not in the record. Bytes are nominal; times
// are by the clock of the spans.
#pragma once

#include <vector>

#include "engine/timeline/from_program.hpp"

namespace shardbook::timeline {

// A counter per kind of memory and rank is named by this and program::name_of(kind): "live bytes: gathered".
constexpr const char* memory_counter_prefix = "live bytes: ";

// When a step begins and ends on its device, as Timeline::steps has it.
struct StepBounds {
  Nanoseconds start = 0, end = 0;
};

// Adds the counters of one rank: for each kind that the catalogue has buffers of, the level from the first
// step's start on, a point where it changes. Ops that never ran are passed over.
// REQUIRES: as many bounds as steps, in order.
void add_memory(TimelineBuilder& builder, Rank rank, const program::Catalogue& catalogue, const std::vector<ProgramStep>& steps,
                const std::vector<StepBounds>& bounds);

}  // namespace shardbook::timeline
