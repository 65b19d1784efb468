// The set-up half of FullyShardedModel: layouts, memory, first values.
#include <algorithm>

#include "engine/fsdp/schedule.hpp"

namespace shardbook::fsdp {

using program::MemoryKind;
using program::Phase;

FullyShardedModel::FullyShardedModel(model::Model& model, device::Device& device, device::Stream& compute,
                                     device::Stream& stream, comm::Communicator& group, const ScheduleConfig& config,
                                     std::uint64_t seed)
    : device_(device), compute_(compute), stream_(stream), group_(group), config_(config),
      updated_(device.create_event("fsdp.updated")) {
  lay_out(model, seed);
  make_slots();
}

void FullyShardedModel::lay_out(model::Model& model, std::uint64_t seed) {
  // Cut every unit and keep this rank's shard of it.
  std::int64_t largest_shard = 0;
  for (model::Unit* unit : model.units()) {
    ShardedUnit& sharded = units_.emplace_back();
    sharded.unit = unit;
    sharded.layout = layout_of(*unit, group_.size());
    sharded.state = shards_.size();
    sharded.resident = unit->layer < 0 || !config_.reshard || group_.size() == 1;
    const base::Shape shape{sharded.layout->shard_elements()};
    largest_shard = std::max(largest_shard, shape[0]);
    optimizer::ShardState& state = shards_.emplace_back();
    state.layout = sharded.layout.get();
    state.flat = sharded.layout->shard(group_.index());
    state.master = tensor::allocate(device_, shape, base::DType::f32, MemoryKind::optimizer, unit->name + ".master");
    state.gradient = tensor::allocate(device_, shape, base::DType::f32, MemoryKind::gradient, unit->name + ".gradient_shard");
    state.parameter = tensor::allocate(device_, shape, config_.parameter, MemoryKind::parameter, unit->name + ".parameter_shard");
    initialize(compute_, sharded, state, seed);
  }
  if (config_.micro_batches > 1) {
    staging_ = tensor::allocate(device_, {largest_shard}, base::DType::f32, MemoryKind::gradient, "fsdp.gradient_staging");
  }

  // The order of uses in one micro-batch. A tied root, the first unit, is used from the start of forward to
  // its end, and again from the start of backward to its end.
  const int count = static_cast<int>(units_.size());
  const bool tied = count > 0 && units_[0].unit->name == "root";
  for (int unit = 0; unit < count; ++unit) uses_.push_back({unit, Phase::forward});
  if (tied) uses_.push_back({0, Phase::backward});
  for (int unit = count - 1; unit >= (tied ? 1 : 0); --unit) uses_.push_back({unit, Phase::backward});
}

GatherSlot FullyShardedModel::make_gather_slot(std::int64_t elements, const std::string& name) {
  GatherSlot slot;
  slot.full = tensor::allocate(device_, {elements}, config_.parameter, MemoryKind::gathered, name);
  slot.gathered = device_.create_event(name + ".gathered");
  slot.released = device_.create_event(name + ".released");
  return slot;
}

GradientSlot FullyShardedModel::make_gradient_slot(std::int64_t elements, const std::string& name) {
  GradientSlot slot;
  slot.full = tensor::allocate(device_, {elements}, base::DType::f32, MemoryKind::gradient, name);
  slot.complete = device_.create_event(name + ".complete");
  slot.reduced = device_.create_event(name + ".reduced");
  return slot;
}

//@ fsdp.slots: One slot more than is gathered ahead, two for gradients; what is resident has its own.
void FullyShardedModel::make_slots() {
  // Shared slots: one more than is gathered ahead; two gradients, one being made while one is reduced.
  std::int64_t largest = 0;
  const ShardedUnit* first_block = nullptr;
  for (const ShardedUnit& unit : units_) {
    if (unit.unit->layer < 0) continue;
    if (first_block == nullptr) first_block = &unit;
    // A slot's gaps between parameters hold zeros because all of its users have the same gaps.
    SHARDBOOK_CHECK_EQ(unit.layout->padded(), first_block->layout->padded(), "blocks that share slots differ in layout");
    largest = std::max(largest, unit.layout->padded());
  }
  // Alone, a rank's gradient needs no reduction: it is made where the optimizer reads it.
  const bool gradient_in_place = group_.size() == 1 && config_.micro_batches == 1;
  if (first_block != nullptr && !first_block->resident) {
    for (int slot = 0; slot <= config_.prefetch; ++slot) {
      gather_slots_.push_back(make_gather_slot(largest, "fsdp.gathered." + std::to_string(slot)));
    }
  }
  if (first_block != nullptr && !gradient_in_place) {
    for (int slot = 0; slot < 2; ++slot) {
      gradient_slots_.push_back(make_gradient_slot(largest, "fsdp.gradient." + std::to_string(slot)));
    }
  }
  // Own slots
  for (ShardedUnit& unit : units_) {
    const optimizer::ShardState& state = shards_[unit.state];
    if (group_.size() == 1) {
      unit.own_slot = std::make_unique<GatherSlot>();
      unit.own_slot->full = state.parameter;
    } else if (unit.resident) {
      unit.own_slot = std::make_unique<GatherSlot>(make_gather_slot(unit.layout->padded(), unit.unit->name + ".gathered"));
    }
    if (gradient_in_place) {
      unit.own_gradient_slot = std::make_unique<GradientSlot>();
      unit.own_gradient_slot->full = state.gradient;
    } else if (unit.unit->layer < 0) {
      unit.own_gradient_slot = std::make_unique<GradientSlot>(make_gradient_slot(unit.layout->padded(), unit.unit->name + ".gradient"));
    }
  }
}
//@end

}  // namespace shardbook::fsdp
