#include "engine/fsdp/schedule.hpp"

#include "engine/kernels/residual.hpp"

namespace shardbook::fsdp {

using program::Phase;
using program::Scope;
using program::WaitReason;

int FullyShardedModel::index_of(const model::Unit& unit) const {
  for (std::size_t index = 0; index < units_.size(); ++index) {
    if (units_[index].unit == &unit) return static_cast<int>(index);
  }
  SHARDBOOK_CHECK(false, "unit ", unit.name, " is not sharded here");
  return -1;
}

void FullyShardedModel::begin_step() {
  if (group_.size() > 1) device_.wait(stream_, updated_);
  for (ShardedUnit& unit : units_) unit.slot = nullptr;
  // The same slots in every step: then every step is the same program.
  next_gather_slot_ = next_gradient_slot_ = 0;
}

void FullyShardedModel::begin_micro_batch(int micro_batch) {
  micro_batch_ = micro_batch;
  at_ = 0;
}

//@ fsdp.use: Make the unit whole for this use, and begin on the next ones while it computes.
void FullyShardedModel::use(model::Unit& unit, Phase phase) {
  SHARDBOOK_CHECK(at_ < uses_.size() && units_[static_cast<std::size_t>(uses_[at_].unit)].unit == &unit && uses_[at_].phase == phase,
                  "unit ", unit.name, " is used out of the order that was announced");
  ShardedUnit& now = units_[static_cast<std::size_t>(uses_[at_].unit)];
  if (now.slot == nullptr) gather(now, phase);

  //@ fsdp.prefetch: Gather the units of the next uses while this one computes.
  for (int ahead = 1; ahead <= config_.prefetch; ++ahead) {
    if (at_ + ahead >= uses_.size()) break;
    const Use& next = uses_[at_ + ahead];
    ShardedUnit& later = units_[static_cast<std::size_t>(next.unit)];
    if (later.slot == nullptr) gather(later, next.phase);
  }
  //@end
  ++at_;

  // Compute may not start before the unit is whole.
  if (group_.size() > 1 && !now.awaited) device_.wait(compute_, now.slot->gathered);
  now.awaited = true;
}
//@end

//@ fsdp.gather: All-gather one unit into a slot, once the slot's last user is done with it.
void FullyShardedModel::gather(ShardedUnit& unit, Phase phase) {
  unit.slot = unit.resident ? unit.own_slot.get() : free_slot();
  unit.slot->free = false;
  unit.awaited = false;
  view_values(unit, unit.slot->full);
  if (group_.size() == 1) return;
  Scope scope(device_.recorder(), phase, unit.unit->layer);
  program::Part part(device_.recorder(), "fsdp_unit");
  if (!unit.resident) device_.wait(stream_, unit.slot->released, WaitReason::buffer_reuse);
  group_.all_gather(stream_, shards_[unit.state].parameter, unit.slot->full.slice(0, {unit.layout->padded()}));
  device_.record(stream_, unit.slot->gathered);
}
//@end

GatherSlot* FullyShardedModel::free_slot() {
  // In turn, so that the slot taken is the one released longest ago.
  for (std::size_t tried = 0; tried < gather_slots_.size(); ++tried) {
    GatherSlot& slot = gather_slots_[next_gather_slot_];
    next_gather_slot_ = (next_gather_slot_ + 1) % gather_slots_.size();
    if (slot.free) return &slot;
  }
  SHARDBOOK_CHECK(false, "all ", gather_slots_.size(), " gather slots are in use: prefetch + 1 must suffice");
  return nullptr;
}

//@ fsdp.release: Free a unit: its slot may be overwritten once what was issued so far has run.
void FullyShardedModel::release(ShardedUnit& unit) {
  if (unit.resident) return;
  device_.record(compute_, unit.slot->released);
  unit.slot->free = true;
  unit.slot = nullptr;
}
//@end

void FullyShardedModel::before_forward(model::Unit& unit) { use(unit, Phase::forward); }

void FullyShardedModel::after_forward(model::Unit& unit) { release(units_[static_cast<std::size_t>(index_of(unit))]); }

void FullyShardedModel::before_backward(model::Unit& unit) {
  use(unit, Phase::backward);
  // A place for its gradient, which the reduction of an earlier unit may still be reading.
  ShardedUnit& sharded = units_[static_cast<std::size_t>(index_of(unit))];
  sharded.gradient_slot = sharded.own_gradient_slot.get();
  if (sharded.gradient_slot == nullptr) {
    sharded.gradient_slot = &gradient_slots_[next_gradient_slot_];
    next_gradient_slot_ = (next_gradient_slot_ + 1) % gradient_slots_.size();
  }
  if (group_.size() > 1) device_.wait(compute_, sharded.gradient_slot->reduced, WaitReason::buffer_reuse);
  view_gradients(sharded, sharded.gradient_slot->full);
}

void FullyShardedModel::after_backward(model::Unit& unit) {
  ShardedUnit& sharded = units_[static_cast<std::size_t>(index_of(unit))];
  release(sharded);
  reduce(sharded);
}

//@ fsdp.reduce: Sum the gradient over ranks; each keeps its shard of the sum, and adds up micro-batches.
void FullyShardedModel::reduce(ShardedUnit& unit) {
  const optimizer::ShardState& state = shards_[unit.state];
  GradientSlot& slot = *unit.gradient_slot;
  const bool alone = group_.size() == 1;
  if (alone && config_.micro_batches == 1) return;

  program::Part part(device_.recorder(), "fsdp_unit");
  // Alone there is nothing to overlap with: what remains is done on compute itself.
  device::Stream& lane = alone ? compute_ : stream_;
  const Tensor full = slot.full.slice(0, {unit.layout->padded()});
  const bool first = micro_batch_ == 0;
  const Tensor sum = first ? state.gradient : staging_.slice(0, {state.flat.size()});
  if (!alone) {
    device_.record(compute_, slot.complete);
    device_.wait(stream_, slot.complete);
  }
  group_.reduce_scatter(lane, full, sum);
  if (!first) kernels::accumulate(lane, sum, state.gradient);
  if (!alone) device_.record(stream_, slot.reduced);
}
//@end

void FullyShardedModel::finish_backward() {
  if (group_.size() == 1) return;
  for (GradientSlot& slot : gradient_slots_) device_.wait(compute_, slot.reduced);
  for (ShardedUnit& unit : units_) {
    if (unit.own_gradient_slot != nullptr) device_.wait(compute_, unit.own_gradient_slot->reduced);
  }
}

void FullyShardedModel::updated() {
  if (group_.size() > 1) device_.record(compute_, updated_);
}

}  // namespace shardbook::fsdp
