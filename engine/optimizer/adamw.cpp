#include "engine/optimizer/adamw.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/kernels/reduce.hpp"

namespace shardbook::optimizer {

float LearningRate::at(std::int64_t step) const {
  if (step < warmup) return peak * static_cast<float>(step + 1) / static_cast<float>(warmup);
  if (step >= steps) return floor;
  const double progress = static_cast<double>(step - warmup) / static_cast<double>(std::max<std::int64_t>(1, steps - warmup));
  return floor + (peak - floor) * static_cast<float>(0.5 * (1.0 + std::cos(std::numbers::pi * progress)));
}

AdamW::AdamW(device::Device& device, const AdamWConfig& config, std::vector<ShardState>& shards, const Tensor& scalars, const shard::Place& place,
             device::Stream* cpu)
    : config_(config), shards_(shards), cpu_(cpu), squares_(scalars.slice(0, {1})), factor_(scalars.slice(1, {1})), norm_(scalars.slice(2, {1})) {
  using program::MemoryKind;
  std::int64_t intervals = 0;
  for (ShardState& shard : shards_) {
    auto make = [&](const char* what) {
      const std::string name = shard.layout->name() + what;
      return shard.on_host != OnHost::nothing ? on_host(device, shard.flat.size(), base::DType::f32, MemoryKind::optimizer, name)
                                              : tensor::allocate(device, {shard.flat.size()}, base::DType::f32, MemoryKind::optimizer, name);
    };
    shard.first_moment = make(".first_moment");
    shard.second_moment = make(".second_moment");
    Counted& counted = counted_.emplace_back();
    counted.intervals = shard.layout->counted(place);
    if (counted.intervals.empty()) counted.intervals.push_back({});
    counted.first = intervals;
    intervals += static_cast<std::int64_t>(shard.layout->parameters().size());   // as many as there can be, on each rank
  }
  const OnHost lies = shards_.empty() ? OnHost::nothing : shards_.front().on_host;
  SHARDBOOK_CHECK((lies == OnHost::everything) == (cpu_ != nullptr), "shards that lie in host memory whole are the CPU's to update, and no others");
  if (lies == OnHost::states) offload_ = std::make_unique<Offload>(device, config.offload, shards_);
  if (cpu_ != nullptr) {
    factor_on_host_ = on_host(device, 1, base::DType::f32, MemoryKind::optimizer, "optimizer.factor");
    factor_there_ = device.create_event("optimizer.factor_there");
    device.set_up_crew();
    early_ = tensor::allocate(device, {intervals}, base::DType::f32, MemoryKind::workspace, "optimizer.squares");
  }
  scratch_ = tensor::allocate(device, {kernels::sum_of_squares_scratch()}, base::DType::f32, MemoryKind::workspace, "optimizer.scratch");
}

void AdamW::send_for_states() { offload_->send(); }

void AdamW::square(device::Lane lane, std::size_t shard, const Tensor& gradient) {
  Counted& counted = counted_[shard];
  for (std::size_t at = 0; at < counted.intervals.size(); ++at) {
    const shard::Interval& of = counted.intervals[at];
    kernels::sum_of_squares(lane, gradient, shards_[shard].flat.begin, of.begin, of.end, early_.slice(counted.first + static_cast<std::int64_t>(at), {1}), scratch_, false);
  }
  counted.is_early = true;
}

//@ optimizer.norm: The global norm counts every parameter once, however many ranks hold it; shard after shard, as their sums come.
void AdamW::sum_squares(device::Lane lane, const std::vector<std::size_t>& order, const std::function<void(std::size_t)>& await) {
  bool accumulate = false;
  for (std::size_t at : order) {
    await(at);
    const ShardState& shard = shards_[at];
    Counted& counted = counted_[at];
    for (std::size_t part = 0; part < counted.intervals.size(); ++part) {
      const shard::Interval& of = counted.intervals[part];
      if (!counted.is_early) kernels::sum_of_squares(lane, shard.gradient, shard.flat.begin, of.begin, of.end, squares_, scratch_, accumulate);
      else kernels::sum(lane, early_.slice(counted.first + static_cast<std::int64_t>(part), {1}), 1.0f, squares_, accumulate);
      accumulate = true;
    }
    counted.is_early = false;
  }
}
//@end

void AdamW::step(device::Lane lane, std::int64_t step, float learning_rate, const std::function<void(std::size_t)>& moved) {
  kernels::clip_factor(lane, squares_, config_.clip, factor_, norm_);
  const kernels::AdamWStep now = settings(step, learning_rate);
  if (cpu_ != nullptr) step_on_host(lane, now);
  const auto move = [&](const Here& part) {
    const ShardState& shard = shards_[part.shard];
    const base::Shape shape{part.elements.size()};
    kernels::adam_w(lane, now, shard.gradient.slice(part.elements.begin, shape), factor_, shard.flat.begin + part.elements.begin, shard.layout->decay_end(), part.master,
                    part.first_moment, part.second_moment, shard.parameter.exists() ? shard.parameter.slice(part.elements.begin, shape) : Tensor{}, factors_there_);
  };
  if (offload_ != nullptr) offload_->each(*lane.stream, move);
  const bool whole = cpu_ == nullptr && offload_ == nullptr;
  for (std::size_t at = 0; at < shards_.size(); ++at) {
    const ShardState& shard = shards_[at];
    if (whole) move({at, {0, shard.flat.size()}, shard.master, shard.first_moment, shard.second_moment});
    moved(at);
  }
}

//@ optimizer.on_host: The CPU moves each shard where it lies, once it has the clip factor; no thread waits for it.
void AdamW::step_on_host(device::Lane lane, const kernels::AdamWStep& settings) {
  device::Device& device = lane.device();
  to_host(lane, factor_, factor_on_host_);
  device.record(lane, factor_there_);
  device.wait(*cpu_, factor_there_);
  for (const ShardState& shard : shards_) {
    kernels::adam_w_on_host(*cpu_, settings, shard.gradient, factor_on_host_, shard.flat.begin, shard.layout->decay_end(), shard.master,
                            shard.first_moment, shard.second_moment, shard.parameter);
    device.record(*cpu_, shard.updated);
  }
}
//@end

}  // namespace shardbook::optimizer
