// fails with: 2 more buffers, 192 MiB, for -0.1 % of the step
#include "labs/04_fsdp/lab.hpp"

namespace shardbook::lab04 {

Plan a_step(const Network& network) {
  const int layers = layers_of(network);
  Plan plan;
  plan.add(load(0));
  plan.add(gather(unit_of(network, 0)));

  for (int layer = 0; layer < layers; ++layer) {
    for (int next = layer + 2; next <= layer + 3; ++next) {
      if (layer == 0 && next == 2) plan.add(gather(unit_of(network, 1)));
      if (layer == 0 && next == 3) plan.add(gather(unit_of(network, 2)));
      if (next == layer + 3 && next < layers && needs_gather(network, next)) plan.add(gather(unit_of(network, next)));
    }
    plan.add(forward(layer, 0));
    if (is_block(network, layer)) plan.add(release(unit_of(network, layer)));
  }

  for (int layer = layers - 1; layer >= 0; --layer) {
    for (int next = layer - 3; layer == layers - 1 ? next <= layer - 1 : next <= layer - 3; ++next) {
      const int of = layer == layers - 1 ? 2 * layer - 4 - next : next;
      if (of > 0 && is_block(network, of)) plan.add(gather(unit_of(network, of)));
    }
    plan.add(backward(layer, 0));
    if (is_block(network, layer)) plan.add(release(unit_of(network, layer)));
    if (completes_gradient(network, layer)) plan.add(reduce(unit_of(network, layer)));
  }

  return plan.add(norm()).add(update());
}

}  // namespace shardbook::lab04
