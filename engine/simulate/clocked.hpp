// simulate/clocked: what becomes of a step when each GPU's matmuls go as fast as its limit on power then has it?
//
// A step is resolved, what each device draws in it is added up (clock.hpp), and its ops get longer or shorter; which makes another step,
// of which the same is asked, until it no longer moves. So it is resolved up to nine times.
#pragma once

#include <array>
#include <vector>

#include "engine/simulate/clock.hpp"
#include "engine/simulate/resolver.hpp"

namespace shardbook::simulate {

// Parts of a step that each have a clock: forward, backward, and what comes before, between and after.
inline constexpr std::size_t stretches = 3;
using Speeds = std::array<double, stretches>;
using Loads = std::array<Load, stretches>;

// How long does a collective draw what it draws? For its whole span, as measured steps are read; or for as long as its bytes take alone,
// and while it waits for other ranks: one that matmuls slow down moves no more bytes for that. So modelled steps have it (experiments/speed,
// "drawn").
enum class Drawn : std::uint8_t { its_span, its_bytes };

// The step that is looked at: of measured ones the last, from when the first host began it; of modelled ones in a row one that goes before
// another, where there are so many, from the end of the one before it to its own.
struct LookedAt {
  std::size_t step = 0;
  base::Nanoseconds begin = 0, end = 0;
};
LookedAt looked_at(const Resolved& resolved, bool measured);

// What a rank's device did in each part of that step: what runs alone as `costs` has it, collectives from start to end, waits included. A
// moment belongs to the part of the op that was the last to start, collectives aside.
// REQUIRES: costs.power is known; all steps of `times` are of `program`.
Loads loads_of(const Costs& costs, const program::Program& program, const RankTimes& times, const LookedAt& at, Drawn drawn);

// What `first` becomes, with durations as they are then, and at which speeds. `speeds` of each rank: at which its costs' durations are as
// long as given. Errors: those of resolve(). REQUIRES: `first` is resolve(ranks, machine, options); a rank's steps are all the same, and
// what their ops draw is known.
struct AtItsClock {
  Resolved resolved;
  std::vector<RankSteps> steps;
  std::vector<Speeds> speeds;
};
base::Result<AtItsClock> at_its_clock(const std::vector<RankSteps>& ranks, const Machine& machine, const ResolveOptions& options,
                                      const std::vector<Speeds>& speeds, bool measured, Resolved first);

}  // namespace shardbook::simulate
