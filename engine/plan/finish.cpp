#include <algorithm>
#include <utility>

#include "engine/plan/passes.hpp"
#include "engine/plan/uses.hpp"

namespace shardbook::plan {

namespace {

// Buffers that many units use, in turn, so that the one taken is the one given back longest ago.
class InTurn {
 public:
  explicit InTurn(int count) : taken_(static_cast<std::size_t>(count)) {}
  // -1: none is free.
  int take() {
    for (std::size_t tried = 0; tried < taken_.size(); ++tried) {
      const std::size_t slot = next_;
      next_ = (next_ + 1) % taken_.size();
      if (taken_[slot]) continue;
      taken_[slot] = true;
      return static_cast<int>(slot);
    }
    return -1;
  }
  // This one, or -1 where it is taken.
  int take(int slot) {
    if (slot < 0 || taken_[static_cast<std::size_t>(slot)]) return -1;
    taken_[static_cast<std::size_t>(slot)] = true;
    return slot;
  }
  void give_back(int slot) {
    if (slot >= 0) taken_[static_cast<std::size_t>(slot)] = false;
  }

 private:
  std::vector<bool> taken_;
  std::size_t next_ = 0;
};

// What is known of a unit at a place in the plan.
struct Now {
  int gathered_slot = -1, gradient_slot = -1;
  int first_slot = -1;          // where it is whole when the step begins
  int shard_slot = -1, gradient_shard_slot = -1;
  int micro_batch = -1;         // that last added to its gradient
  bool gradient_open = false;   // holds what is not reduced yet
};

}  // namespace

//@ plan.finish: Which buffer each takes, in turn, and for which use a gather is: all of it follows from the order.
Plan finish(Plan plan, const Network& network, const Slots& slots) {
  InTurn gathered(slots.gathered), gradients(slots.gradient), shards(slots.shards), gradient_shards(slots.gradient_shards);
  std::vector<Now> units(network.units.size());
  const Uses uses(plan, network);
  // Each step begins as the one before ended
  for (const Action& action : for_the_next_step(plan)) {
    Now& now = units[static_cast<std::size_t>(action.unit)];
    if (network.units[static_cast<std::size_t>(action.unit)].shares_gathered && now.first_slot < 0) now.gathered_slot = now.first_slot = gathered.take();
  }
  bool updated = false;

  for (std::size_t at = 0; at < plan.actions.size(); ++at) {
    Action& action = plan.actions[at];
    action.slot = action.shard_slot = -1;
    updated = updated || action.kind == Kind::update;
    if (computes(action.kind)) action.unit = network.layers[static_cast<std::size_t>(action.layer)].unit;
    if (action.unit < 0) continue;
    const Unit& unit = network.units[static_cast<std::size_t>(action.unit)];
    Now& now = units[static_cast<std::size_t>(action.unit)];
    switch (action.kind) {
      case Kind::to_device:
      case Kind::gather:
        // It is for the next use, and counted to it
        if (const Use* use = updated ? uses.first_of(action.unit) : uses.next_of(action.unit, at)) {
          action.phase = use->phase;
          action.micro_batch = use->micro_batch;
        }
        if (action.kind == Kind::to_device) {
          action.shard_slot = now.shard_slot = shards.take();
          break;
        }
        if (unit.on_host && *action.axis == 0) {
          action.shard_slot = std::exchange(now.shard_slot, -1);
          shards.give_back(action.shard_slot);
        }
        if (unit.shares_gathered) action.slot = now.gathered_slot = updated ? gathered.take(now.first_slot) : gathered.take();
        break;
      case Kind::keep:
      case Kind::release:
        if (at > 0) action.phase = plan.actions[at - 1].phase;
        action.slot = now.gathered_slot;
        if (action.kind == Kind::release) gathered.give_back(action.slot);
        break;
      case Kind::backward:
        if (!now.gradient_open && unit.shares_gradient) now.gradient_slot = gradients.take();
        now.gradient_open = true;
        now.micro_batch = action.micro_batch;
        action.slot = now.gradient_slot;
        break;
      case Kind::reduce:
        action.micro_batch = now.micro_batch;
        // One of its reductions takes the gradient out of its buffer
        for (int number = action.unit; number < std::min<int>(action.unit + action.units, static_cast<int>(units.size())); ++number) {
          Now& its = units[static_cast<std::size_t>(number)];
          if (!empties(network.units[static_cast<std::size_t>(number)], action.axis)) continue;
          if (number == action.unit) action.slot = its.gradient_slot;
          if (unit.on_host) action.shard_slot = now.gradient_shard_slot = gradient_shards.take();
          gradients.give_back(its.gradient_slot);
          its.gradient_open = false;
        }
        break;
      case Kind::to_host:
        action.micro_batch = now.micro_batch;
        action.shard_slot = std::exchange(now.gradient_shard_slot, -1);
        gradient_shards.give_back(action.shard_slot);
        break;
      default: break;
    }
  }
  return plan;
}
//@end

}  // namespace shardbook::plan
