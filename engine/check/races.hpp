// check/races: does every use of a buffer wait for whoever may still be using it?
//
// The streams of a rank run side by side. Where one writes bytes that another uses, an event must put the two in
// order; if none does, the step is right by luck. This walks over what a rank issued, in the order of issue, keeps
// what has surely ended (order.hpp) and who touched which bytes last (accesses.hpp), and tells every pair of ops
// that use the same bytes, one of them writing, with nothing between them that orders them.
//
// Steps follow each other without the host waiting, so the list given should hold at least two: what the last
// gather of one step reads, the update of the same step may overwrite, and the first gather of the next one needs.
// For steps that are all alike, two show every race: the third meets what the second met.
//
// It finds a race in a byte if and only if there is one (for the closest pair of uses in conflict has no write
// between its two), whatever the clocks of the run said. It sees buffers of devices alone: memory of the host that
// a copy reads is not in the record.
//
// Sources: Flanagan & Freund 2009, "FastTrack: Efficient and Precise Dynamic Race Detection" (last writer, last
// readers); NVIDIA's compute-sanitizer documentation, racecheck (two accesses named as hazards: read after write,
// write after read, write after write); pytorch/pytorch @666c810d, torch/cuda/_sanitizer.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/program/program.hpp"

namespace shardbook::check {

// An op of a list of steps.
struct Place {
  std::uint32_t step = 0;  // place in the list
  program::OpIndex op = program::no_op;
  bool operator==(const Place&) const = default;
};

struct Race {
  program::BufferId buffer = program::no_buffer;
  base::Bytes begin = 0, end = 0;             // from the first to the last byte of it that both use
  Place first, second;                        // in the order of issue; of two streams
  bool first_writes = false, second_writes = false;
  // A wait that an earlier race of the list asks for would order this one as well.
  bool follows = false;
};

using Steps = std::vector<const program::Program*>;

// Every race, by the issue of its second op; of one op, the latest first op leads. A pair of ops is told once for
// each buffer. Time and memory grow like the commands and the ranges that their ops use.
// REQUIRES: ops name buffers, streams and events of the catalogue (program::load checks that).
std::vector<Race> races(const program::Catalogue& catalogue, const Steps& steps);

// The steps to look at for all that a run may have issued: the programs of the traced steps in order, at most two of
// a kind in a row, and the last one twice.
Steps steps_to_check(const std::vector<const program::Program*>& traced);

// One race in one sentence: both ops with stream, layer and line, the buffer, and the wait that is missing.
std::string sentence(const Race& race, const program::Catalogue& catalogue, const Steps& steps);

}  // namespace shardbook::check
