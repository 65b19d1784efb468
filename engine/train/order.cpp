#include "engine/train/order.hpp"

#include "engine/fsdp/schedule.hpp"

namespace shardbook::train {

plan::Network network_of(const model::Model& model, std::vector<plan::Unit> units, int micro_batches) {
  plan::Network network{{}, std::move(units), micro_batches};
  for (const model::Model::Layer& layer : model.layers()) network.layers.push_back({layer.name, layer.unit, layer.number});
  return network;
}

//@ train.plan: The order of a step, made by one pass after the other.
Order order_of(const config::RunConfig& config, const plan::Network& network) {
  plan::Plan plan = plan::one_after_the_other(network);
  plan = plan::reduce_gradients(plan, network, plan::Reduce::every_micro_batch);
  plan = fsdp::gather_and_release(plan, network, {{config.prefetch}, {config.prefetch}});
  return finished(plan, network);
}
//@end

Order finished(const plan::Plan& plan, const plan::Network& network) {
  const plan::Slots slots = plan::slots_for(plan, network);
  return {plan::finish(plan, network, slots), slots};
}

}  // namespace shardbook::train
