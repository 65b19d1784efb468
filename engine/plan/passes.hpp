// plan/passes: functions from plans to plans that need no room of their own.
//
// A step's order is made in stages, each a pass over the list of the one before: what is computed, when gradients are
// summed, when parameters are gathered and freed (fsdp/schedule.hpp), what the host may run ahead of, and last
// finish(), which fills in what follows from the order.
#pragma once

#include "engine/plan/plan.hpp"

namespace shardbook::plan {

// Forward and backward of each micro-batch in turn, then norm and update: gradient accumulation.
Plan one_after_the_other(const Network& network);

// Keeps nothing of a block but its input, and makes the rest again just before its backward.
Plan recompute_blocks(const Plan& plan, const Network& network);
// Keeps what took a matmul to make, or attention, and makes the rest again just before its backward.
Plan remake_blocks(const Plan& plan, const Network& network);

// Which micro-batches' gradients are summed over ranks: each by itself, or all of them once, after the last (DDP's and
// FSDP's no_sync).
enum class Reduce : std::uint8_t { every_micro_batch, last_micro_batch };
// Adds a reduction over `axis` where a unit's gradient is complete. Units that are no summand over it get none.
Plan reduce_gradients(const Plan& plan, const Network& network, Reduce when, const char* axis = "dp_shard");

// At most `most` gathers whose memory is not yet free: before a further one the host waits for the oldest release.
Plan limit_gathers(const Plan& plan, int most);

// Sends for states that lie in host memory before anything else: the first of them come while forward and backward run.
// Leaves a plan alone that does so itself.
Plan send_for_states(const Plan& plan, const Network& network);

// The host waits for the device after each layer, as a forgotten print of a loss makes it do.
Plan synchronize_after_layers(const Plan& plan);

// How many buffers units share, each as large as the largest that uses it.
struct Slots {
  int gathered = 0;
  int gradient = 0;
  int shards = 0;             // places for shards on their way from host memory to a gather
  int gradient_shards = 0;    // ... and from a reduction to host memory
};
// Fills in what follows from the order: for which use a gather is, whose micro-batch a reduction sums, which unit a
// layer belongs to, and which of the shared buffers and places for shards each takes, in turn; -1 where none was free (the verifier says so).
// Every plan ends with it.
Plan finish(Plan plan, const Network& network, const Slots& slots);

}  // namespace shardbook::plan
