// data_parallel/schedule: when are the gradients of replicas summed?
//
// Replicas hold the same parameters, see other tokens, and must agree on the gradient before the update. What makes
// the sum cheap is *when* it begins and *how much* goes at once:
//
//   naive     | backward ...................... | sum | sum | sum | ... (a parameter each) | update
//   flat      | backward ...................... | sum of everything | update
//   bucketed  | backward .. | .. | .. | ....... |
//                     | sum of a bucket | ... | sum of the last one | update
//
// A bucket is what has come to so many bytes since the last one, in the order in which backward makes gradients: the
// last layers first. Small buckets begin early and pay the latency often; large ones hide less of the last.
//
// Sources: Li et al. 2020, "PyTorch Distributed", §4 (VLDB 13:12); pytorch/pytorch v2.8.0,
// torch/csrc/distributed/c10d/reducer.cpp; NVIDIA/Megatron-LM @d98e8a64,
// megatron/core/distributed/param_and_grad_buffer.py.
#pragma once

#include "engine/plan/plan.hpp"

namespace shardbook::data_parallel {

enum class Sums : std::uint8_t { naive, flat, bucketed };

struct Schedule {
  Sums sums = Sums::bucketed;
  base::Bytes bucket = base::Bytes{25} << 20;   // of `bucketed`
};

// `plan` with the sums of all units over "dp_replicate", once for all micro-batches. Comes after the passes that
// reduce over other axes. Units that are no summand over it (there is one replica) get none.
plan::Plan sum_over_replicas(const plan::Plan& plan, const plan::Network& network, const Schedule& schedule);

}  // namespace shardbook::data_parallel
