// fails with: backward blocks.23 of micro-batch 0 needs blocks.23, which action 81 (tests/data/labs/04a/freed_early.cpp:20) released
#include "labs/04_fsdp/lab.hpp"

namespace shardbook::lab04 {

Plan a_step(const Network& network) {
  const int layers = layers_of(network);
  Plan plan;
  plan.add(load(0));
  plan.add(gather(unit_of(network, 0)));

  for (int layer = 0; layer < layers; ++layer) {
    if (layer + 1 < layers && needs_gather(network, layer + 1)) plan.add(gather(unit_of(network, layer + 1)));
    plan.add(forward(layer, 0));
    if (is_block(network, layer)) plan.add(release(unit_of(network, layer)));
  }

  for (int layer = layers - 1; layer >= 0; --layer) {
    if (layer > 0 && is_block(network, layer - 1)) plan.add(gather(unit_of(network, layer - 1)));
    if (is_block(network, layer)) plan.add(release(unit_of(network, layer)));
    plan.add(backward(layer, 0));
    if (completes_gradient(network, layer)) plan.add(reduce(unit_of(network, layer)));
  }

  return plan.add(norm()).add(update());
}

}  // namespace shardbook::lab04
