// optimizer: how does a shard of parameters move?
//
// Each rank keeps, for its shard of each flat unit, the fp32 master and the two moments, and moves only
// those: the optimizer state of the whole is there once over all fsdp ranks (ZeRO; Rajbhandari et al.
// 2020). The clip factor stays on the device, so no step waits for the host.
//
// Sources: Loshchilov and Hutter 2019 (AdamW), arXiv:1711.05101; pytorch/pytorch v2.8.0,
// torch/optim/adamw.py, torch/nn/utils/clip_grad.py.
#pragma once

#include <functional>
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
  OnHost on_host = OnHost::nothing;   // what of the tensors below lies in host memory
  Tensor master;
  Tensor gradient;         // summed over micro-batches and fsdp ranks
  Tensor parameter;        // the copy that is gathered and computed with; none where each gather makes it
  Tensor first_moment, second_moment;
  device::Event updated;   // of those that the CPU updates: it has moved this shard
};

struct AdamWConfig {
  float beta1 = 0.9f, beta2 = 0.95f, epsilon = 1e-8f, weight_decay = 0.1f;
  float clip = 1.0f;  // largest global norm; 0 = off
  OffloadConfig offload;   // of states that come to the device
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
  // will be summed. `cpu`: the stream of the CPU's own work, where everything lies in host memory; else null. REQUIRES: all
  // shards lie alike, and their tensors where `on_host` says.
  AdamW(device::Device& device, const AdamWConfig& config, std::vector<ShardState>& shards, const Tensor& scalars, const shard::Place& place,
        device::Stream* cpu = nullptr);

  // Sends for the first states, where they come to the device for the update. Before anything that is to hide that.
  void send_for_states();
  // The squares of a shard's gradient, which is complete in `gradient` and leaves the device then. Any lane, before sum_squares.
  void square(device::Lane lane, std::size_t shard, const Tensor& gradient);
  // squares()[0] = Σ of gradient² over what this rank counts (shard::counts), so that a plain sum over ranks is the square
  // of the global norm. Shards are added up in this order, each once; before one is read, `await` makes the lane see it whole.
  void sum_squares(device::Lane lane, const std::vector<std::size_t>& order, const std::function<void(std::size_t shard)>& await);
  // To be summed over the axes of `place`, between sum_squares and step.
  const Tensor& squares() const { return squares_; }
  // Clips by the global norm and moves every shard, in the order of forward. `step` counts from 0. `moved` is called once a shard's
  // update has been issued. Where the CPU updates, each shard's `updated` says when.
  void step(device::Lane lane, std::int64_t step, float learning_rate, const std::function<void(std::size_t shard)>& moved);
  // From here on the device reads what depends on the step where this tensor lies (kernels::AdamWFactors), and whoever has it writes
  // factors() there before each step. Set-up. REQUIRES: the device updates.
  void read_factors(const Tensor& there) { factors_there_ = there; }
  kernels::AdamWFactors factors(std::int64_t step, float learning_rate) const { return kernels::factors_of(settings(step, learning_rate)); }
  const Tensor& norm() const { return norm_; }  // f32 [1], after step

 private:
  kernels::AdamWStep settings(std::int64_t step, float learning_rate) const {
    return {learning_rate, config_.beta1, config_.beta2, config_.epsilon, config_.weight_decay, step + 1};
  }
  void step_on_host(device::Lane lane, const kernels::AdamWStep& settings);

  AdamWConfig config_;
  std::vector<ShardState>& shards_;
  // What is counted of a shard, at least one interval; and where their squares are, if they were taken before the others'.
  struct Counted {
    std::vector<shard::Interval> intervals;
    std::int64_t first = 0;   // place in early_
    bool is_early = false;
  };
  std::vector<Counted> counted_;
  Tensor early_;                       // squares of intervals
  std::unique_ptr<Offload> offload_;   // null: states need not come to the device
  device::Stream* cpu_;                // null: the device updates
  Tensor factor_on_host_;              // for the CPU, a copy of the clip factor
  device::Event factor_there_;
  Tensor factors_there_;               // AdamWFactors; or none
  Tensor squares_, factor_, norm_, scratch_;
};

}  // namespace shardbook::optimizer
