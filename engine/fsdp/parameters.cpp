#include "engine/fsdp/parameters.hpp"

#include <cstring>

#include "engine/kernels/initialize.hpp"
#include "engine/kernels/residual.hpp"

namespace shardbook::fsdp {

using plan::Action;
using plan::Kind;
using program::WaitReason;

void ShardedParameters::begin_step() {
  if (!alone() && !by_unit()) device_.wait(stream_, updated_);
  reductions_ = 0;
  updated_all_ = false;
  for (ShardedUnit& unit : units_) {
    unit.gathered = unit.carried;
    if (!unit.carried) unit.slot = nullptr;
    unit.awaited = false;
    unit.gradient_slot = nullptr;
    unit.summed = false;
    if (alone()) take_whole(unit, -1);
  }
}

void ShardedParameters::run(const Action& action) {
  ShardedUnit& of = unit(action.unit);
  switch (action.kind) {
    case Kind::to_device: {
      const program::Part part(device_.recorder(), of.part);
      return host_->to_device(of, action.shard_slot);
    }
    case Kind::gather: return gather(of, action);
    case Kind::keep: return keep(of);
    case Kind::release: return release(of);
    case Kind::limit: return limit(of);
    case Kind::reduce: return reduce(of, action.shard_slot);
    case Kind::to_host: return to_host(of, action.shard_slot);
    default: SHARDBOOK_CHECK(false, "fsdp cannot ", plan::name_of(action.kind));
  }
}

void ShardedParameters::await(const Action& action) {
  if (action.kind == Kind::norm) await_sums();
  if (plan::computes(action.kind)) await_parameters(unit(action.unit));
  if (action.kind == Kind::backward && unit(action.unit).gradient_slot == nullptr) open_gradient(unit(action.unit), action.slot);
  // What another room sums in place is closed for more
  if (action.kind == Kind::reduce && gradient_in_place()) {
    for (int number = action.unit; number < action.unit + action.units; ++number) unit(number).gradient_slot = nullptr;
  }
}

//@ fsdp.gather: All-gather one unit into a slot, once the slot's last user is done with it.
void ShardedParameters::gather(ShardedUnit& unit, const Action& action) {
  take_whole(unit, action.slot);
  program::Part part(device_.recorder(), unit.part);
  await_update(unit);
  if (action.slot >= 0) device_.wait(stream_, unit.slot->released, WaitReason::buffer_reuse);
  if (*action.axis != 0) {
    device_.wait(stream_, unit.kept_there);
    for (const Flat& flat : unit.flats) near_->all_gather(stream_, flat.part_in(unit.kept, near_->size()), flat.in(unit.slot->full));
  } else if (on_host()) {
    host_->await_shard(stream_, action.shard_slot);
    for (const Flat& flat : unit.flats) group_.all_gather(stream_, host_->shard(unit, flat, action.shard_slot), flat.in(unit.slot->full));
    host_->left(stream_, action.shard_slot);
  } else {
    for (const Flat& flat : unit.flats) group_.all_gather(stream_, my_part(unit, flat), flat.in(unit.slot->full));
  }
  device_.record(stream_, unit.slot->gathered);
}
//@end

// No gather before the update of what it gathers: this step's, if it is for the next one.
void ShardedParameters::await_update(ShardedUnit& unit) {
  if (by_unit() && !unit.gathered) device_.wait(stream_, unit.updated);
  if (!by_unit() && updated_all_) device_.wait(stream_, updated_);
  unit.gathered = true;
}

void ShardedParameters::gather_for_the_first_step() {
  for (const Action& action : carried_) gather(unit(action.unit), action);
}

//@ fsdp.my_part: What this rank gives to a gather: a copy that it keeps, or one that it makes where it will be of the whole.
Tensor ShardedParameters::my_part(ShardedUnit& unit, const Flat& flat) {
  const optimizer::ShardState& state = shards_[flat.state];
  if (keeps_copy()) return state.parameter;
  const Tensor mine = flat.in(unit.slot->full).slice(state.flat.begin, state.master.shape);
  kernels::cast(stream_, state.master, mine);
  return mine;
}
//@end

// Where the unit is whole from here on, or will be.
void ShardedParameters::take_whole(ShardedUnit& unit, int slot) {
  unit.slot = slot < 0 ? unit.own_slot.get() : &gather_slots_[static_cast<std::size_t>(slot)];
  unit.awaited = false;
  view_values(unit, unit.slot->full);
}

//@ fsdp.keep: Before a unit is freed, each rank copies the part of it that it keeps for those near.
void ShardedParameters::keep(ShardedUnit& unit) {
  await_parameters(unit);
  program::Part part(device_.recorder(), unit.part);
  for (const Flat& flat : unit.flats) {
    const Tensor whole = flat.in(unit.slot->full), mine = flat.part_in(unit.kept, near_->size());
    kernels::copy(compute_, whole.slice(near_->index() * mine.elements(), mine.shape), mine);
  }
  device_.record(compute_, unit.kept_there);
}
//@end

// Compute may not start before the unit is whole.
void ShardedParameters::await_parameters(ShardedUnit& unit) {
  SHARDBOOK_CHECK(unit.slot != nullptr, "unit ", unit.unit->name, " is not whole");
  if (!alone() && !unit.awaited) device_.wait(compute_, unit.slot->gathered);
  unit.awaited = true;
}

//@ fsdp.release: Free a unit: its slot may be overwritten once what was issued so far has run.
void ShardedParameters::release(ShardedUnit& unit) {
  device_.record(compute_, unit.slot->released);
  unit.freed = unit.slot;
  unit.slot = nullptr;
}
//@end

//@ fsdp.limit: The host itself waits until a freed buffer is free: memory is bounded, and the host no longer runs ahead.
void ShardedParameters::limit(ShardedUnit& unit) { device_.host_wait(unit.freed->released); }
//@end

// A place for its gradient, which the reduction of an earlier unit may still be reading.
void ShardedParameters::open_gradient(ShardedUnit& unit, int slot) {
  unit.gradient_slot = slot < 0 ? unit.own_gradient_slot.get() : &gradient_slots_[static_cast<std::size_t>(slot)];
  if (!alone()) device_.wait(compute_, unit.gradient_slot->reduced, WaitReason::buffer_reuse);
  for (const shard::Interval& gap : unit.gaps) kernels::fill(compute_, unit.gradient_slot->full.slice(gap.begin, {gap.size()}), 0);
  view_gradients(unit, unit.gradient_slot->full);
}

//@ fsdp.reduce: Sum the gradient over ranks; each keeps its shard of the sum, and adds up micro-batches. The last have no block beside them.
void ShardedParameters::reduce(ShardedUnit& unit, int place) {
  GradientSlot& slot = *unit.gradient_slot;
  program::Part part(device_.recorder(), unit.part);
  // Alone there is nothing to overlap with: what remains is done on compute itself.
  device::Stream& lane = alone() ? compute_ : stream_;
  if (!alone()) {
    device_.record(compute_, slot.complete);
    device_.wait(stream_, slot.complete);
  }
  if (on_host()) host_->await_room(lane, place);
  const comm::Beside beside = reductions_++ < beside_blocks_ ? comm::Beside::kernels : comm::Beside::nothing;
  for (const Flat& flat : unit.flats) {
    const bool stays = !on_host();   // with the sums of earlier micro-batches
    reduce_into(flat.in(slot.full), stays ? shards_[flat.state].gradient : host_->sum(unit, flat, place), lane, stays && unit.summed, beside);
    // All of it is here, and later would have to be read over the bus
    if (!stays && unit.once && complete_) complete_(lane, flat.state, host_->sum(unit, flat, place));
  }
  if (on_host()) host_->summed(lane, place);
  else unit.summed = true;
  if (!alone()) device_.record(stream_, slot.reduced);
  if (by_unit()) device_.record(stream_, unit.sum_there);
  unit.sum_awaited = false;
  unit.gradient_slot = nullptr;
  unit.reduced_in = &slot;
}

void ShardedParameters::reduce_into(Tensor full, const Tensor& into, device::Stream& lane, bool add, comm::Beside beside) {
  const Tensor sum = add || rounds() ? staging_.slice(0, into.shape) : into;
  // In fewer bytes: rounded before, and summed over ranks in that type; micro-batches are added up in f32
  if (rounds()) {
    const Tensor rounded = rounded_.slice(0, full.shape);
    kernels::cast(lane, full, rounded);
    full = rounded;
  }
  group_.reduce_scatter(lane, full, sum, beside);
  if (rounds()) kernels::widen(lane, sum, into, add);
  else if (add) kernels::accumulate(lane, sum, into);
}
//@end

void ShardedParameters::to_host(ShardedUnit& unit, int place) {
  const program::Part part(device_.recorder(), unit.part);
  host_->to_host(unit, place, unit.summed);
  unit.summed = true;
}

Tensor ShardedParameters::gradients(int unit, int units) const {
  std::int64_t begin = 0, elements = 0;
  for (int number = 0; number < unit + units; ++number) (number < unit ? begin : elements) += units_[static_cast<std::size_t>(number)].shard_elements();
  return gradients_.slice(begin, {elements});
}

std::vector<Tensor> ShardedParameters::summands(int number, std::string_view axis) const {
  const ShardedUnit& of = units_[static_cast<std::size_t>(number)];
  const Tensor& full = gradient_in_place() ? of.own_gradient_slot->full : of.gradient_slot->full;
  std::vector<Tensor> parts;
  for (const shard::Interval& part : of.summands_over(axis)) parts.push_back(full.slice(part.begin, {part.size()}));
  return parts;
}

void ShardedParameters::await_gradient(device::Stream& stream, int number) {
  ShardedUnit& of = unit(number);
  if (!alone()) device_.wait(stream, of.reduced_in->reduced);
  else {
    device_.record(compute_, of.own_gradient_slot->complete);
    device_.wait(stream, of.own_gradient_slot->complete);
  }
}

void ShardedParameters::await_sums() {
  if (alone()) return;
  if (on_host()) host_->await_sums(compute_);
  if (by_unit()) return;
  for (GradientSlot& slot : gradient_slots_) device_.wait(compute_, slot.reduced);
  for (ShardedUnit& unit : units_) {
    if (unit.own_gradient_slot != nullptr) device_.wait(compute_, unit.own_gradient_slot->reduced);
  }
}

//@ fsdp.by_unit: A block's squares are taken while the embedding's gradient is still summed, and the embedding is gathered while blocks are updated.
void ShardedParameters::await_sum(std::size_t shard) {
  ShardedUnit& of = unit(unit_of_shard_[shard]);
  if (!by_unit() || of.reduced_in == nullptr || of.sum_awaited) return;
  device_.wait(compute_, of.sum_there);
  of.sum_awaited = true;
}

void ShardedParameters::updated(std::size_t shard) {
  ShardedUnit& of = unit(unit_of_shard_[shard]);
  if (by_unit() && shard == of.flats.back().state) {
    device_.record(compute_, of.updated);
    of.gathered = false;
  }
  updated_all_ = shard + 1 == shards_.size();
  if (!by_unit() && !alone() && updated_all_) device_.record(compute_, updated_);
}
//@end

}  // namespace shardbook::fsdp
