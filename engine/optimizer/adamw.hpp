// optimizer: how does a shard of parameters move?
//
// Each rank keeps, for its shard of each flat unit, the fp32 master and the two moments, and moves only
// those: the optimizer state of the whole is there once over all fsdp ranks (ZeRO; Rajbhandari et al.
// 2020). The clip factor stays on the device, so no step waits for the host.
//
// Sources: Loshchilov and Hutter 2019 (AdamW), arXiv:1711.05101; pytorch/pytorch v2.8.0,
// torch/optim/adamw.py, torch/nn/utils/clip_grad.py.
#pragma once

#include <memory>
#include <vector>

#include "engine/kernels/optimizer.hpp"
#include "engine/optimizer/offload.hpp"
#include "engine/shard/flat_unit.hpp"

namespace shardbook::optimizer {

using tensor::Tensor;

// One rank's shard of what is cut as one, a unit or a parameter, as the optimizer sees it. All but `parameter` are nominal f32.
struct ShardState {
  const shard::FlatUnit* layout = nullptr;
  shard::Interval flat;    // this shard, in flat indices of the layout
  Tensor master;           // in host memory where states are offloaded, as are both moments
  Tensor gradient;         // summed over micro-batches and fsdp ranks
  Tensor parameter;        // the copy that is gathered and computed with
  Tensor first_moment, second_moment;
};

struct AdamWConfig {
  float beta1 = 0.9f, beta2 = 0.95f, epsilon = 1e-8f, weight_decay = 0.1f;
  float clip = 1.0f;  // largest global norm; 0 = off
  OffloadConfig offload;
};

// Linear warm-up to `peak` over `warmup` steps, then a cosine to `floor` at step `steps`. Steps count from 0.
struct LearningRate {
  float peak = 0, floor = 0;
  std::int64_t warmup = 0, steps = 0;
  float at(std::int64_t step) const;
};

class AdamW {
 public:
  // Set-up: allocates the moments. `shards` must outlive the optimizer. `scalars` is f32 [3], the caller's:
  // the sum of squares, the clip factor, the norm. `place`: where this rank stands along the axes over which squares
  // will be summed. REQUIRES: masters lie where config.offload says.
  AdamW(device::Device& device, const AdamWConfig& config, std::vector<ShardState>& shards, const Tensor& scalars, const shard::Place& place);

  // Sends for states that are offloaded. Before anything else of a step.
  void begin_step();
  // squares()[0] = Σ of gradient² over what this rank counts (shard::counts), so that a plain sum over ranks is the square
  // of the global norm.
  void sum_squares(device::Lane lane);
  // To be summed over the axes of `place`, between sum_squares and step.
  const Tensor& squares() const { return squares_; }
  // Clips by the global norm and moves every shard. `step` counts from 0.
  void step(device::Lane lane, std::int64_t step, float learning_rate);
  const Tensor& norm() const { return norm_; }  // f32 [1], after step

 private:
  AdamWConfig config_;
  std::vector<ShardState>& shards_;
  std::vector<std::vector<shard::Interval>> counted_;   // of each shard's layout; one interval at least
  std::unique_ptr<Offload> offload_;   // null: states lie on the device
  Tensor squares_, factor_, norm_, scratch_;
};

}  // namespace shardbook::optimizer
