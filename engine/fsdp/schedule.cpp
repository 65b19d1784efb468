#include "engine/fsdp/schedule.hpp"

#include <algorithm>

#include "engine/plan/uses.hpp"

namespace shardbook::fsdp {

using plan::Plan;
using plan::Use;

namespace {

// Over which ranks a unit is gathered for a use: all that shard it, or for backward those near, where a part was kept.
const char* over(const Use& use, const plan::Network& network) {
  const bool kept = network.units[static_cast<std::size_t>(use.unit)].kept > 0;
  return kept && use.phase == plan::Phase::backward ? plan::near_axis : "";
}

}  // namespace

//@ fsdp.use: Make the unit whole for each use, begin on the next ones while it computes, and free it after.
Plan gather_and_release(const Plan& compute, const plan::Network& network, const Schedule& schedule) {
  const plan::Uses uses(compute, network);
  plan::Whole whole(network);
  Plan plan;

  for (std::size_t at = 0; at < compute.actions.size(); ++at) {
    // Before its first action a unit must be whole
    if (const Use* use = uses.beginning(at)) {
      if (whole.make(use->unit)) plan.add(plan::gather(use->unit, over(*use, network)));

      //@ fsdp.prefetch: Gather the units of the next uses while this one computes.
      for (const Use* next : uses.ahead(at, schedule.of(use->phase).at_begin, schedule.across_micro_batches)) {
        if (whole.make(next->unit)) plan.add(plan::gather(next->unit, over(*next, network)));
      }
      //@end
    }

    plan.add(compute.actions[at]);

    // After its last action it may be overwritten
    if (const Use* use = uses.ending(at)) {
      const bool keeps = use->phase == plan::Phase::forward && network.units[static_cast<std::size_t>(use->unit)].kept > 0;
      if (whole.drop(use->unit)) {
        if (keeps) plan.add(plan::keep(use->unit));
        plan.add(plan::release(use->unit));
      }

      //@ fsdp.prefetch_late: The same once the unit is done: less memory, and less time to hide in.
      for (const Use* next : uses.ahead(at, schedule.of(use->phase).at_end, schedule.across_micro_batches)) {
        if (whole.make(next->unit)) plan.add(plan::gather(next->unit, over(*next, network)));
      }
      //@end
    }
  }
  return plan;
}
//@end

//@ fsdp.next_step: What a step needs first is gathered at the end of the one before it, while other units are updated.
Plan gather_for_the_next_step(const Plan& plan, const plan::Network& network) {
  Plan moved, behind_update;
  bool computes = false;
  for (const plan::Action& action : plan.actions) {
    computes = computes || plan::computes(action.kind);
    const bool may_move = !computes && action.kind == plan::Kind::gather && !network.units[static_cast<std::size_t>(action.unit)].on_host;
    (may_move ? behind_update : moved).add(action);
  }
  for (const plan::Action& gather : behind_update.actions) moved.add(gather);
  return moved;
}
//@end

//@ fsdp.host_memory: A shard comes from host memory before its gather, and the sum of its gradient goes there after its reduction.
Plan bring_and_take_back(const Plan& plan, const plan::Network& network) {
  using plan::Kind;
  const auto by_itself = [](const plan::Action& action) { return action.kind == Kind::to_device || action.kind == Kind::to_host; };
  if (std::any_of(plan.actions.begin(), plan.actions.end(), by_itself)) return plan;
  Plan longer;
  for (const plan::Action& action : plan.actions) {
    const plan::Unit* unit = plan::communicates(action.kind) ? &network.units[static_cast<std::size_t>(action.unit)] : nullptr;
    const bool moves = unit != nullptr && unit->on_host;
    if (moves && action.kind == Kind::gather && *action.axis == 0) longer.add(plan::to_device(action.unit));
    longer.add(action);
    if (moves && action.kind == Kind::reduce && plan::empties(*unit, action.axis)) longer.add(plan::to_host(action.unit));
  }
  return longer;
}
//@end

}  // namespace shardbook::fsdp
