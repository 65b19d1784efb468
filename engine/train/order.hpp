// train/order: the plan of a config's step, put together from the passes of all rooms.
#pragma once

#include "engine/config/config.hpp"
#include "engine/model/model.hpp"
#include "engine/plan/needs.hpp"

namespace shardbook::train {

// What the plan must know of this rank's model; `units` as whoever keeps its parameters describes them.
plan::Network network_of(const model::Model& model, std::vector<plan::Unit> units, int micro_batches);

// The order of a step of `config`: finished, with as many shared buffers as it needs.
struct Order {
  plan::Plan plan;
  plan::Slots slots;
};
Order order_of(const config::RunConfig& config, const plan::Network& network);

// The same for a plan that somebody else wrote.
Order finished(const plan::Plan& plan, const plan::Network& network);

}  // namespace shardbook::train
