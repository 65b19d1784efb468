// fsdp/schedule: when is a parameter whole?
//
// Fully sharded data parallelism: every rank keeps a shard of each unit, makes the unit whole just before it is used
// (all-gather), frees it after, makes it whole again for backward, and sums the gradients so that each rank gets its
// shard of the sum (reduce-scatter). What makes it fast is *when* these are asked for:
//
//   compute  | block 0        | block 1        | block 2        |
//   fsdp     | gather 1 | ... | gather 2 | ... | gather 3 | ...       one unit ahead: prefetch
//
// Here is only the order, as a pass over a plan. How a unit is gathered is parameters.hpp's.
//
// Sources: Zhao et al. 2023, "PyTorch FSDP", §3.3; pytorch/pytorch v2.8.0, torch/distributed/fsdp/_runtime_utils.py
// (_pre_forward, _prefetch_handle, BackwardPrefetch), _fully_shard/_fsdp_param_group.py (one unit ahead in forward, by
// the order of the last post-forward in backward).
#pragma once

#include "engine/plan/plan.hpp"

namespace shardbook::fsdp {

// How many uses ahead are gathered, at the begin and at the end of a use. PyTorch's BACKWARD_PRE is {1, 0},
// BACKWARD_POST {0, 1}, no prefetch {0, 0}.
struct Ahead {
  int at_begin = 1;
  int at_end = 0;
};

struct Schedule {
  Ahead forward, backward;
  bool across_micro_batches = false;  // look beyond the end of a micro-batch
  bool for_the_next_step = false;     // what a step needs first is gathered at the end of the one before
  const Ahead& of(plan::Phase phase) const { return phase == plan::Phase::forward ? forward : backward; }
};

// `compute` with a gather before each use of a unit that is not whole, and a release after it.
plan::Plan gather_and_release(const plan::Plan& compute, const plan::Network& network, const Schedule& schedule);

// What a plan gathers before anything computes is gathered behind the update instead, for the next step: there other units' updates
// run beside it. Not where the shard lies in host memory, for that comes first.
plan::Plan gather_for_the_next_step(const plan::Plan& plan, const plan::Network& network);

// Of units whose shards lie in host memory: each comes to the device before its gather over all ranks that shard it, and the
// shard of its gradient's sum goes to host memory after the reduction. Other units are left alone, and so is a plan that says
// itself when they come and go.
plan::Plan bring_and_take_back(const plan::Plan& plan, const plan::Network& network);

}  // namespace shardbook::fsdp
