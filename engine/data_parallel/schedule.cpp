#include "engine/data_parallel/schedule.hpp"

#include <algorithm>
#include <map>
#include <string_view>

namespace shardbook::data_parallel {

using plan::Action;
using plan::Kind;
using plan::Plan;

namespace {

constexpr const char* axis = "dp_replicate";

// Behind which action a unit's gradient is ready to be summed over replicas: its last reduction over the axis before,
// or where there is none its last backward.
std::map<std::size_t, int> ready_after(const Plan& plan, const plan::Network& network) {
  std::vector<std::size_t> last(network.units.size());
  for (std::size_t at = 0; at < plan.actions.size(); ++at) {
    const Action& action = plan.actions[at];
    if (action.kind != Kind::backward && action.kind != Kind::reduce) continue;
    const int unit = action.kind == Kind::backward ? network.layers[static_cast<std::size_t>(action.layer)].unit : action.unit;
    last[static_cast<std::size_t>(unit)] = at;
  }
  std::map<std::size_t, int> ready;
  for (std::size_t unit = 0; unit < last.size(); ++unit) ready[last[unit]] = static_cast<int>(unit);
  return ready;
}

bool are_replicas(const plan::Network& network) {
  return std::any_of(network.units.begin(), network.units.end(), [](const plan::Unit& unit) { return std::find(unit.sums.begin(), unit.sums.end(), axis) != unit.sums.end(); });
}

}  // namespace

//@ data_parallel.buckets: Sum a bucket as soon as backward has filled it, and the last one at backward's end.
Plan sum_in_buckets(const Plan& plan, const plan::Network& network, base::Bytes bucket) {
  const std::map<std::size_t, int> ready = ready_after(plan, network);
  Plan summed;
  base::Bytes filled = 0;
  int units = 0;
  for (std::size_t at = 0; at < plan.actions.size(); ++at) {
    summed.add(plan.actions[at]);
    const auto unit = ready.find(at);
    if (unit == ready.end()) continue;

    // Backward goes from the last unit to the first, so a bucket is the units from this one on
    filled += network.units[static_cast<std::size_t>(unit->second)].gradient;
    ++units;
    if (filled < bucket && unit->second != 0) continue;
    summed.add(plan::reduce_bucket(unit->second, units, axis));
    filled = units = 0;
  }
  return summed;
}
//@end

//@ data_parallel.after: Sum when backward is over: everything at once, or unit by unit.
Plan sum_after_backward(const Plan& plan, const plan::Network& network, bool at_once) {
  const int units = static_cast<int>(network.units.size());
  Plan summed;
  for (const Action& action : plan.actions) {
    if (action.kind == Kind::norm && at_once) summed.add(plan::reduce_bucket(0, units, axis));
    for (int unit = units; action.kind == Kind::norm && !at_once && unit-- > 0;) summed.add(plan::reduce(unit, axis));
    summed.add(action);
  }
  return summed;
}
//@end

Plan sum_over_replicas(const Plan& plan, const plan::Network& network, const Schedule& schedule) {
  if (!are_replicas(network)) return plan;
  if (schedule.sums == Sums::bucketed) return sum_in_buckets(plan, network, schedule.bucket);
  return sum_after_backward(plan, network, schedule.sums == Sums::flat);
}

}  // namespace shardbook::data_parallel
