// simulate/replay: what would this step have taken, had one thing been otherwise?
//
// A Replay is a recorded step with a duration for each op and a cost for each call, ready to be resolved again and
// again, each time with one Change: a cost scaled, a wait left out, one rank as the others are. The durations are a
// profile's (a modelled run) or those that were measured, op by op; the recorded edges place them.
//
// Of a measured step: what an op took is its span; what a collective took is its span on the rank that came last, for
// on the others it also waited. A device's latencies (stream gap, event, launch) are medians over the step. The host's
// time is from the entry of one call to that of the next, but where the host stood because the device's queue was full
// it costs what calls of its kind usually do. How long an op would have taken alone is found with a profile's factors of
// contention, such that all together take what was measured, waits for room included; so what no longer runs together is
// shorter, and what is newly hidden slows what hides it. A matmul that was slowed beside a collective did not hold it up.
//
// Where the profile knows what the device draws, and of a modelled step at which speed its matmuls were measured, a step that waits less
// also runs its matmuls at a slower clock, as the device's limit on power has it (clocked.hpp).
//
// A modelled step whose ranks all do the same is resolved on one of them, which stands for all.
//
// A measured step can also be carried over to another program of the same ranks (a switch set otherwise): see carry.cpp.
//
// What comes out is a model in every case. With no Change a modelled step is resolved as it was when it was run, and
// of a measured one, step_ns() beside it says how far the model is off.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <memory>
#include <vector>

#include "engine/simulate/clocked.hpp"
#include "engine/simulate/reorder.hpp"
#include "engine/simulate/resolver.hpp"

namespace shardbook::simulate {

struct Change {
  Scale scale;                                    // of all ranks
  std::map<base::Rank, Scale> of_rank;            // of one, on top of it
  std::vector<program::EdgeKind> without;         // as in ResolveOptions
  std::vector<program::SourceLine> without_waits;
  std::vector<program::SourceLine> earlier;       // collectives of these lines are issued one place earlier: reorder.hpp
  // Each rank as the ranks with its program are: op by op and call by call what the one in the middle takes (of two the
  // faster), and it begins when that one begins.
  bool alike = false;
  // The device of this rank, or its host, as that of the one in the middle; all others as they are.
  std::optional<base::Rank> usual_device, usual_host;
  // The clock stays as it was, whatever the device then draws.
  bool same_clock = false;
  // A factor on the duration of each op; empty: 1.
  std::function<double(base::Rank, program::OpIndex)> factor;
  // A factor on what each command costs the host; empty: 1.
  std::function<double(base::Rank, std::uint32_t command)> issue_factor;
};

// One rank's step as it was measured: `issued` of all commands and `ran` of all ops are known.
struct MeasuredRank {
  base::Rank rank = 0;
  const program::Catalogue* catalogue = nullptr;
  const program::Program* program = nullptr;
  const program::StepTimes* times = nullptr;
};

// One way that a step went: the reported step's times a rank, from `begin` to `end`.
struct Replayed {
  std::vector<RankTimes> ranks;                   // the reported step is the last of each
  base::Nanoseconds begin = 0, end = 0;
  base::Nanoseconds step_ns() const { return end - begin; }
};

// Where the times of a step that was issued otherwise come from.
struct Kept {
  std::size_t measured = 0;   // ops with a time of their own: the same op stood in the measured step
  std::size_t alike = 0;      // ops of the size and kind of measured ones: the one in the middle of those
  std::size_t modelled = 0;   // the profile's
};

class Replay {
 public:
  // REQUIRES: programs, catalogues and times outlive the Replay.
  // Errors: those of resolve().
  static base::Result<Replay> modelled(const std::vector<RankProgram>& ranks, const CostModel& model);
  // `model`, of the machine that it was measured on, says what running together costs and which part of a collective's
  // time does not depend on its size; null: neither is known, so that contention and latency cannot be taken out.
  static base::Result<Replay> measured(const std::vector<MeasuredRank>& ranks, const CostModel* model);

  // This measured step as the ranks would go through it that issue `ranks` instead, under `conditions` (it was measured
  // under `measured_under`). Ops are the same by their key and size. REQUIRES: is_measured(); programs outlive the result.
  // Errors: a rank that was not measured; an op that was not, where there is no profile; those of resolve().
  base::Result<Replay> issued_otherwise(const std::vector<RankProgram>& ranks, const CostModel* model, const Conditions& measured_under,
                                        const Conditions& conditions, Kept& kept) const;

  bool is_measured() const { return measured_; }
  // One rank does for all.
  bool is_symmetric() const { return steps_.size() == 1 && steps_.front().for_all; }
  const std::vector<RankSteps>& steps() const { return steps_; }
  const Machine& machine() const { return machine_; }
  // Of a measured step: from when the first host began it to its last op's end, over all ranks. Of a modelled one: as resolved.
  base::Nanoseconds step_ns() const { return step_ns_; }

  // Errors: ranks wait for each other for ever.
  base::Result<Replayed> resolve(const Change& change = {}) const;

 private:
  // Makes of durations together durations alone: such that together they are again what was measured.
  base::Status find_durations_alone(const std::vector<std::shared_ptr<Costs>>& costs);
  // The steps under a change, but for the clock. What `earlier` reorders is kept in `reorderings`.
  using Reorderings = std::map<const program::Program*, Reordered>;
  std::vector<RankSteps> changed(const Change& change, Reorderings& reorderings) const;

  bool measured_ = false;
  std::vector<RankSteps> steps_;
  Machine machine_;
  std::map<base::Rank, Speeds> speed_;   // at which the durations of steps_ are so long; empty: power is not known
  base::Nanoseconds step_ns_ = 0;
};

}  // namespace shardbook::simulate
