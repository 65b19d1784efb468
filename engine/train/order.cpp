#include "engine/train/order.hpp"

#include "engine/fsdp/schedule.hpp"

namespace shardbook::train {

plan::Network network_of(const model::Model& model, std::vector<plan::Unit> units, int micro_batches) {
  plan::Network network{{}, std::move(units), micro_batches};
  for (const model::Model::Layer& layer : model.layers()) network.layers.push_back({layer.name, layer.unit, layer.number});
  return network;
}

//@ train.plan: The order of a step, made by one pass after the other.
Order order_of(const Choices& choices, const plan::Network& network) {
  // What is computed
  plan::Plan plan = plan::one_after_the_other(network);
  if (choices.recompute) plan = plan::recompute_blocks(plan, network);
  if (choices.remake) plan = plan::remake_blocks(plan, network);
  // When gradients are summed
  plan = plan::reduce_gradients(plan, network, choices.reduce);
  plan = plan::reduce_gradients(plan, network, choices.reduce, "tp");   // comes before the other at each place
  plan = data_parallel::sum_over_replicas(plan, network, choices.sums);
  // When parameters are whole
  plan = fsdp::gather_and_release(plan, network, choices.gathers);
  // When what lives in host memory comes and goes
  plan = through_host_memory(plan, network);
  // What the host waits for
  if (choices.limit > 0) plan = plan::limit_gathers(plan, choices.limit);
  // What the next step needs first
  if (choices.gathers.for_the_next_step) plan = fsdp::gather_for_the_next_step(plan, network);
  if (choices.synchronize) plan = plan::synchronize_after_layers(plan);
  if (choices.mistakes.order) plan = choices.mistakes.order(plan, network);
  return finished(plan, network);
}
//@end

plan::Plan through_host_memory(const plan::Plan& plan, const plan::Network& network) {
  return plan::send_for_states(fsdp::bring_and_take_back(plan, network), network);
}

Order finished(const plan::Plan& plan, const plan::Network& network) {
  const plan::Slots slots = plan::slots_for(plan, network);
  return {plan::finish(plan, network, slots), slots};
}

}  // namespace shardbook::train
