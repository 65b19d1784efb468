// tensor_parallel/partial_gradients: what if tp ranks hold a parameter whole, and each sees other tokens?
//
// With tokens cut (sequence.hpp) the gradients of norms, of row-parallel biases and of positions are summands: each rank
// has those of its rows. They must be summed over tp before the update, or replicas of one number would go different ways.
// Their placement says so (shard/placement.hpp), and in a unit's flat gradient they lie together (shard/flat_unit.hpp), so a unit takes one all-reduce, or two.
//
// Source: NVIDIA/Megatron-LM @d98e8a64, megatron/core/distributed/finalize_model_grads.py
// (_allreduce_non_tensor_model_parallel_grads): one call for all of them at the end of the step. Here it is a unit's own,
// before its gradient is cut into shards, so that all fsdp ranks issue the same.
#pragma once

#include <vector>

#include "engine/comm/comm.hpp"
#include "engine/optimizer/store.hpp"
#include "engine/plan/executor.hpp"
#include "engine/tensor_parallel/regions.hpp"

namespace shardbook::tensor_parallel {

class PartialGradients final : public plan::Executor {
 public:
  // Streams on which the sum is awaited by what sums the same gradient over another axis; compute where there is none.
  struct Next {
    device::Stream& dp_shard;
    device::Stream& dp_replicate;
  };
  // Set-up. All outlive this.
  PartialGradients(device::Device& device, device::Stream& compute, TensorParallelGroup group, optimizer::Store& store, Next next);

  void begin_step() override { open_.clear(); }
  void await(const plan::Action& action) override;
  // Of a reduction over "tp".
  void run(const plan::Action& action) override;

 private:
  device::Device& device_;
  device::Stream& compute_;
  TensorParallelGroup group_;
  optimizer::Store& store_;
  Next next_;
  std::vector<int> open_;   // units whose sum nobody has awaited yet
  device::Event complete_, summed_;
};

}  // namespace shardbook::tensor_parallel
