#include "engine/optimizer/adamw.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardbook::optimizer {

float LearningRate::at(std::int64_t step) const {
  if (step < warmup) return peak * static_cast<float>(step + 1) / static_cast<float>(warmup);
  if (step >= steps) return floor;
  const double progress = static_cast<double>(step - warmup) / static_cast<double>(std::max<std::int64_t>(1, steps - warmup));
  return floor + (peak - floor) * static_cast<float>(0.5 * (1.0 + std::cos(std::numbers::pi * progress)));
}

AdamW::AdamW(device::Device& device, const AdamWConfig& config, std::vector<ShardState>& shards, const Tensor& scalars, const shard::Place& place)
    : config_(config), shards_(shards), squares_(scalars.slice(0, {1})), factor_(scalars.slice(1, {1})), norm_(scalars.slice(2, {1})) {
  using program::MemoryKind;
  for (ShardState& shard : shards_) {
    auto make = [&](const char* what) {
      const std::string name = shard.layout->name() + what;
      return config.offload.states ? on_host(device, shard.flat.size(), name) : tensor::allocate(device, {shard.flat.size()}, base::DType::f32, MemoryKind::optimizer, name);
    };
    shard.first_moment = make(".first_moment");
    shard.second_moment = make(".second_moment");
    counted_.push_back(shard.layout->counted(place));
    if (counted_.back().empty()) counted_.back().push_back({});
  }
  if (config.offload.states) offload_ = std::make_unique<Offload>(device, config.offload, shards_);
  scratch_ = tensor::allocate(device, {kernels::sum_of_squares_scratch()}, base::DType::f32, MemoryKind::workspace, "optimizer.scratch");
}

void AdamW::begin_step() {
  if (offload_ != nullptr) offload_->begin_step();
}

//@ optimizer.norm: The global norm counts every parameter once, however many ranks hold it.
void AdamW::sum_squares(device::Lane lane) {
  bool accumulate = false;
  for (std::size_t at = 0; at < shards_.size(); ++at) {
    const ShardState& shard = shards_[at];
    for (const shard::Interval& counted : counted_[at]) {
      kernels::sum_of_squares(lane, shard.gradient, shard.flat.begin, counted.begin, counted.end, squares_, scratch_, accumulate);
      accumulate = true;
    }
  }
}
//@end

void AdamW::step(device::Lane lane, std::int64_t step, float learning_rate) {
  kernels::clip_factor(lane, squares_, config_.clip, factor_, norm_);
  const kernels::AdamWStep settings{learning_rate, config_.beta1, config_.beta2, config_.epsilon, config_.weight_decay, step + 1};
  if (offload_ != nullptr) {
    return offload_->each(*lane.stream, [&](const Here& here) {
      const ShardState& shard = shards_[here.shard];
      const base::Shape shape{here.elements.size()};
      kernels::adam_w(lane, settings, shard.gradient.slice(here.elements.begin, shape), factor_, shard.flat.begin + here.elements.begin, shard.layout->decay_end(), here.master,
                      here.first_moment, here.second_moment, shard.parameter.slice(here.elements.begin, shape));
    });
  }
  for (const ShardState& shard : shards_) {
    kernels::adam_w(lane, settings, shard.gradient, factor_, shard.flat.begin, shard.layout->decay_end(), shard.master,
                    shard.first_moment, shard.second_moment, shard.parameter);
  }
}

}  // namespace shardbook::optimizer
