#include "engine/plan/needs.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace shardbook::plan {

Needs needs_of(const Plan& plan, const Network& network) {
  Needs most, now;
  std::set<int> whole, gradients, kept, brought, summed;   // units
  std::set<int> in_flight;             // micro-batches
  std::map<int, int> backwards_left;   // by micro-batch
  for (const Action& action : plan.actions) {
    if (action.kind == Kind::backward) ++backwards_left[action.micro_batch];
  }
  // What the step before gathered is whole at the begin
  for (const Action& action : for_the_next_step(plan)) {
    const Unit& unit = network.units[static_cast<std::size_t>(action.unit)];
    if (!whole.insert(action.unit).second) continue;
    now.gathered_bytes += unit.gathered;
    now.gathered += unit.shares_gathered;
  }
  auto unit_of = [&](const Action& action) { return action.layer >= 0 ? network.layers[static_cast<std::size_t>(action.layer)].unit : action.unit; };

  for (const Action& action : plan.actions) {
    const int number = unit_of(action);
    const Unit* unit = number >= 0 ? &network.units[static_cast<std::size_t>(number)] : nullptr;
    switch (action.kind) {
      case Kind::to_device: now.shards += brought.insert(number).second; break;
      case Kind::to_host: now.gradient_shards -= static_cast<int>(summed.erase(number)); break;
      case Kind::gather:
        if (*action.axis == 0) now.shards -= static_cast<int>(brought.erase(number));
        if (!whole.insert(number).second) break;
        now.gathered_bytes += unit->gathered;
        now.gathered += unit->shares_gathered;
        break;
      case Kind::keep:
        if (kept.insert(number).second) most.kept_bytes += unit->kept;
        break;
      case Kind::release:
        if (whole.erase(number) == 0) break;
        now.gathered_bytes -= unit->gathered;
        now.gathered -= unit->shares_gathered;
        break;
      case Kind::forward: in_flight.insert(action.micro_batch); break;
      case Kind::backward:
        if (gradients.insert(number).second) {
          now.gradient_bytes += unit->gradient;
          now.gradient += unit->shares_gradient;
        }
        break;
      case Kind::reduce:
        for (int of = number; of < number + action.units; ++of) {
          const Unit& reduced = network.units[static_cast<std::size_t>(of)];
          if (!empties(reduced, action.axis) || gradients.erase(of) == 0) continue;
          if (reduced.on_host) now.gradient_shards += summed.insert(of).second;
          now.gradient_bytes -= reduced.gradient;
          now.gradient -= reduced.shares_gradient;
        }
        break;
      default: break;
    }
    now.in_flight = static_cast<int>(in_flight.size());
    most.gathered = std::max(most.gathered, now.gathered);
    most.gradient = std::max(most.gradient, now.gradient);
    most.shards = std::max(most.shards, now.shards);
    most.gradient_shards = std::max(most.gradient_shards, now.gradient_shards);
    most.in_flight = std::max(most.in_flight, now.in_flight);
    most.gathered_bytes = std::max(most.gathered_bytes, now.gathered_bytes);
    most.gradient_bytes = std::max(most.gradient_bytes, now.gradient_bytes);
    if (action.kind == Kind::backward && --backwards_left[action.micro_batch] == 0) in_flight.erase(action.micro_batch);
  }
  return most;
}

std::vector<int> places_of(const Plan& plan, const Network& network) {
  std::vector<int> place(static_cast<std::size_t>(network.micro_batches), -1);
  std::vector<std::size_t> last(place.size());   // of each micro-batch: its last backward
  for (std::size_t at = 0; at < plan.actions.size(); ++at) {
    const Action& action = plan.actions[at];
    if (action.kind == Kind::backward) last[static_cast<std::size_t>(action.micro_batch)] = at;
  }
  std::vector<std::size_t> taken;                // by place: until which action
  for (std::size_t at = 0; at < plan.actions.size(); ++at) {
    const Action& action = plan.actions[at];
    if (action.kind != Kind::forward) continue;
    const std::size_t m = static_cast<std::size_t>(action.micro_batch);
    if (place[m] >= 0) continue;
    std::size_t free = 0;
    while (free < taken.size() && taken[free] > at) ++free;
    if (free == taken.size()) taken.push_back(0);
    taken[free] = last[m];
    place[m] = static_cast<int>(free);
  }
  return place;
}

Slots slots_for(const Plan& plan, const Network& network) {
  const Needs needs = needs_of(plan, network);
  int sharing = 0, on_host = 0;
  for (const Unit& unit : network.units) {
    sharing += unit.shares_gradient;
    on_host += unit.on_host;
  }
  return {needs.gathered, std::min(needs.gradient + 1, sharing), std::min(needs.shards + 1, on_host), std::min(needs.gradient_shards + 1, on_host)};
}

}  // namespace shardbook::plan
