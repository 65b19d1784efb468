#include "engine/plan/passes.hpp"

#include <algorithm>
#include <deque>
#include <map>

namespace shardbook::plan {

//@ plan.one_after_the_other: Gradient accumulation: forward and backward of each micro-batch in turn, then the update.
Plan one_after_the_other(const Network& network) {
  const int layers = static_cast<int>(network.layers.size());
  Plan plan;
  for (int m = 0; m < network.micro_batches; ++m) {
    plan.add(load(m));
    for (int layer = 0; layer < layers; ++layer) plan.add(forward(layer, m));
    for (int layer = layers; layer-- > 0;) plan.add(backward(layer, m));
  }
  return plan.add(norm()).add(update());
}
//@end

namespace {

bool goes_back_through_a_block(const Action& action, const Network& network) {
  return action.kind == Kind::backward && network.layers[static_cast<std::size_t>(action.layer)].is_block();
}

}  // namespace

//@ plan.recompute: What forward did not keep, backward makes again: all of a block, or what costs no matmul.
Plan recompute_blocks(const Plan& plan, const Network& network) {
  Plan longer;
  for (const Action& action : plan.actions) {
    if (goes_back_through_a_block(action, network)) longer.add(recompute(action.layer, action.micro_batch));
    longer.add(action);
  }
  return longer;
}

Plan remake_blocks(const Plan& plan, const Network& network) {
  Plan longer;
  for (const Action& action : plan.actions) {
    if (goes_back_through_a_block(action, network)) longer.add(remake(action.layer, action.micro_batch));
    longer.add(action);
  }
  return longer;
}
//@end

//@ plan.reduce: A unit's gradient is summed once all of it is there: for each micro-batch, or once for all.
Plan reduce_gradients(const Plan& plan, const Network& network, Reduce when, const char* axis) {
  // Where the last part of each unit's gradient is made
  std::map<std::pair<int, int>, std::size_t> last;  // by unit and micro-batch
  for (std::size_t at = 0; at < plan.actions.size(); ++at) {
    const Action& action = plan.actions[at];
    if (action.kind != Kind::backward) continue;
    const int unit = network.layers[static_cast<std::size_t>(action.layer)].unit;
    const std::vector<std::string>& sums = network.units[static_cast<std::size_t>(unit)].sums;
    if (std::find(sums.begin(), sums.end(), axis) == sums.end()) continue;
    // What nobody takes out of its buffer adds up there, and is summed once
    const bool each = when == Reduce::every_micro_batch && std::find(sums.begin(), sums.end(), "dp_shard") != sums.end();
    last[{unit, each ? action.micro_batch : 0}] = at;
  }
  std::map<std::size_t, int> unit_after;
  for (const auto& [key, at] : last) unit_after[at] = key.first;

  Plan reduced;
  for (std::size_t at = 0; at < plan.actions.size(); ++at) {
    reduced.add(plan.actions[at]);
    if (const auto unit = unit_after.find(at); unit != unit_after.end()) reduced.add(reduce(unit->second, axis));
  }
  return reduced;
}
//@end

//@ plan.limit: The host waits rather than let many freed buffers be in flight.
Plan limit_gathers(const Plan& plan, int most) {
  Plan limited;
  std::deque<int> released;
  for (const Action& action : plan.actions) {
    if (action.kind == Kind::gather && static_cast<int>(released.size()) >= most) {
      limited.add(limit(released.front()));
      released.pop_front();
    }
    if (action.kind == Kind::release) released.push_back(action.unit);
    limited.add(action);
  }
  return limited;
}
//@end

//@ plan.states: What the update will need of host memory is sent for first of all.
Plan send_for_states(const Plan& plan, const Network& network) {
  const bool asks = std::any_of(plan.actions.begin(), plan.actions.end(), [](const Action& action) { return action.kind == Kind::states; });
  if (!network.states_on_host || asks) return plan;
  Plan longer;
  longer.add(states());
  for (const Action& action : plan.actions) longer.add(action);
  return longer;
}
//@end

//@ plan.synchronize: A planted mistake: after each layer the host waits for the device, and so runs ahead of nothing.
Plan synchronize_after_layers(const Plan& plan) {
  Plan slower;
  for (const Action& action : plan.actions) {
    slower.add(action);
    if (action.kind == Kind::forward || action.kind == Kind::backward) slower.add(synchronize()).actions.back().phase = action.phase;
  }
  return slower;
}
//@end

}  // namespace shardbook::plan
