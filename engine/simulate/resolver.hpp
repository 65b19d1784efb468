// simulate/resolver: when would it have run?
//
// A fluid discrete-event simulation of hosts, streams and links. Each rank's host issues its commands one
// after the other and pays for each. A stream runs its ops in order; an op starts when its host has issued
// it, the op before it has ended and the events that its stream awaits have completed. A collective runs
// from the moment its last rank arrives (what comes before is wait, what comes after is transfer). What runs
// together on one device shares it: matmuls and collectives slow each other down by the machine's measured
// factors, k ops of one class take turns (each at 1/k); copies to and from host memory, and the CPU's work, share nothing with them. A collective goes as fast as its slowest rank.
// Rates change only when something starts or ends, so between two events all work shrinks linearly.
//
// A matmul that fills the device (Costs::fills) lets no collective in until it ends; a collective that is already
// there slows it instead, and one that follows it on its stream at once takes over its room. Where Machine::last_blocks is set, such a
// matmul is no fluid: the blocks that were kept out begin when the last of these has gone, and what is left of it grows to what they take. Where both become ready
// at one event, what follows on the event's own stream goes first. A collective's span begins before its wait for
// room, as a timer's mark in the stream does. This decides how much of tensor parallelism's backward overlaps:
// Megatron-LM asks for CUDA_DEVICE_MAX_CONNECTIONS=1 so that the all-reduce is there before the weight gradient.
//
// Order of collectives: those of one communicator run one after the other; those of one device start in the
// order of their issue (NCCL's implicit launch order), or run one after the other where the machine says so.
//
// Steps follow each other as in training: the host issues step k + 1 while the device still runs step k. In the
// first step every stream is empty, so resolve one step more than you report; Resolved::step_ns is the
// time from the end of the last step but one to the end of the last.
//
// Deterministic: equal input gives equal output, to the nanosecond. Without contention every end is the
// longest path through the edges.
//
// Sources: for room on the device, NVIDIA/Megatron-LM, megatron/core/tensor_parallel/layers.py, and the kernels that
// cost.hpp names. Fluid sharing after SimGrid (Casanova et al. 2014, "Versatile, Scalable, and Accurate Simulation
// of Distributed Applications and Platforms"); replay of a recorded graph after dPRO (Hu et al., MLSys 2022).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/program/program.hpp"
#include "engine/program/times.hpp"
#include "engine/simulate/cost.hpp"
#include "engine/simulate/profile.hpp"

namespace shardbook::simulate {

// One step of one rank. Steps and ranks may share programs and costs.
struct Step {
  const program::Program* program = nullptr;
  std::shared_ptr<const Costs> costs;
};

// What one rank does, step after step. All ranks have equally many steps.
struct RankSteps {
  base::Rank rank = 0;
  const program::Catalogue* catalogue = nullptr;
  std::vector<Step> steps;
  base::Nanoseconds start_ns = 0;  // when its host begins
  // Its groups' other ranks do the same at the same instants and are not given: it arrives for all of them.
  bool for_all = false;
};

// How ops start and share. Default: they start at once and share nothing.
struct Machine {
  enum class CollectiveOrder : std::uint8_t { free, launch, serial };

  base::Nanoseconds launch_latency_ns = 0;
  base::Nanoseconds stream_gap_ns = 0;
  base::Nanoseconds event_latency_ns = 0;
  bool shares = false;                 // ops that run together on a device slow down
  std::vector<Contention> contention;  // ascending in ranks
  bool last_blocks = false;            // a matmul that fills the device and began beside a collective needs a block's time when that has gone
  double beside = 1;                   // a part, 0 to 1, of what collectives cost matmuls of a known factor (Costs::beside)
  PowerCosts power;                    // what the clock follows from (clocked.hpp)
  CollectiveOrder order = CollectiveOrder::launch;
};
Machine machine_of(const Profile& profile);
// The same under the model's conditions: where memory is windows, running together costs what was measured there.
Machine machine_of(const CostModel& model);
// The machine under a scale's launch and contention.
Machine scaled(Machine machine, const Scale& scale);

struct ResolveOptions {
  // The host waits for its device at the end of each step, as it does in a traced step on a GPU.
  bool drain_each_step = false;
  // With what tracing costs, as the profile says: a timed step on a GPU. Only of resolve() by a profile.
  bool traced = false;
  // What if there were no such waits? Of event, host, limiter, buffer_reuse and communicator (which also
  // lifts the order of a device's collectives). A model of another program: label it so.
  std::vector<program::EdgeKind> without;
  // Nor the waits of these lines: each is where a wait was issued, or where the event that it awaits was recorded.
  std::vector<program::SourceLine> without_waits;
};

struct RankTimes {
  base::Rank rank = 0;
  // One entry a step: host calls (`issued`), device (`ran`), and as `window` the host's step.
  // StepTimes::step counts from 0; StepTimes::program is not set.
  std::vector<program::StepTimes> steps;
  // [step][op]: from the start of a collective's `ran` to that of its last rank's; 0 of other ops.
  std::vector<std::vector<base::Nanoseconds>> wait_ns;
};

struct Resolved {
  std::vector<RankTimes> ranks;             // in the order of the input
  std::vector<base::Nanoseconds> step_end;  // per step: when its last op ended on any rank
  // Of the steady state: the last step's end minus that of the step before it.
  base::Nanoseconds step_ns = 0;
};

// Resolves all ranks together. All ranks of every group that is used must be given.
// Errors: a rank of a group is missing; ranks call different collectives under one number; ranks wait for
// each other for ever (who waits where for whom is said).
base::Result<Resolved> resolve(const std::vector<RankSteps>& ranks, const Machine& machine,
                               const ResolveOptions& options = {});

// The same by a profile: `steps` times the program that each rank has; at the clock that comes of it, where the profile knows it.
struct RankProgram {
  base::Rank rank = 0;
  const program::Catalogue* catalogue = nullptr;
  const program::Program* program = nullptr;
};
base::Result<Resolved> resolve(const std::vector<RankProgram>& ranks, const CostModel& model, int steps = 3,
                               const ResolveOptions& options = {}, const Scale& scale = {});

}  // namespace shardbook::simulate
