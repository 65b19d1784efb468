// simulate/clocked: what becomes of a step when each GPU's matmuls go as fast as its limit on power then has it?
//
// A step is resolved, what each device draws in it is added up (clock.hpp), and its ops get longer or shorter; which makes another step,
// of which the same is asked, until it no longer moves.
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

// What draws power as a matmul does: less in the proportion of its rate.
inline bool is_matmul(const program::OpDesc& desc) { return desc.kind == program::OpKind::gemm || desc.kind == program::OpKind::attention; }

// How long a kernel that is measured at speed 1 takes at another, as a factor.
double slowed_by(double speed, const program::OpDesc& desc);

// When do collectives draw what they draw? Beside kernels too; or only where nothing computes, for what they draw beside is in what a
// matmul loses there: that was measured at the limit (GemmPoint::beside_ns).
enum class Drawn : std::uint8_t { beside_kernels_too, where_nothing_computes };

// What a rank's device did in each part of a step that begins at `begin` and takes `window_ns`: what runs alone as `costs` has it,
// collectives from start to end, waits included. A moment belongs to the part of the op that was the last to start, collectives aside.
// REQUIRES: costs.power is known; all steps of `times` are of `program`.
Loads loads_of(const Costs& costs, const program::Program& program, const RankTimes& times, base::Nanoseconds begin, base::Nanoseconds window_ns, Drawn drawn);

// The last step of `resolved`: from when the first host began it (it was measured), or as long as a step takes in a row of them.
struct Reported {
  base::Nanoseconds begin = 0, end = 0;
};
Reported reported_of(const Resolved& resolved, bool measured);

// What `first`, the steps of `ranks` resolved, becomes, with durations as they are then, and at which speeds. `speeds` of each rank: at
// which its costs' durations are as long as given. `measured` as in reported_of. Errors: those of resolve().
struct AtItsClock {
  Resolved resolved;
  std::vector<RankSteps> steps;
  std::vector<Speeds> speeds;
};
base::Result<AtItsClock> at_its_clock(const std::vector<RankSteps>& ranks, const Machine& machine, const ResolveOptions& options,
                                      const std::vector<Speeds>& speeds, bool measured, Resolved first);

}  // namespace shardbook::simulate
