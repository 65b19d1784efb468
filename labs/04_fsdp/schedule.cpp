// Lab 04a. Right, and slow: each block is gathered when it is needed, so compute waits for every gather.
// Have the next block gathered while this one computes, in forward and in backward, with two buffers. Some five lines.
#include "labs/04_fsdp/lab.hpp"

namespace shardbook::lab04 {

Plan a_step(const Network& network) {
  const int layers = layers_of(network);
  Plan plan;
  plan.add(load(0));

  for (int layer = 0; layer < layers; ++layer) {
    if (needs_gather(network, layer)) plan.add(gather(unit_of(network, layer)));
    plan.add(forward(layer, 0));
    if (is_block(network, layer)) plan.add(release(unit_of(network, layer)));
  }

  for (int layer = layers - 1; layer >= 0; --layer) {
    if (is_block(network, layer)) plan.add(gather(unit_of(network, layer)));
    plan.add(backward(layer, 0));
    if (is_block(network, layer)) plan.add(release(unit_of(network, layer)));
    if (completes_gradient(network, layer)) plan.add(reduce(unit_of(network, layer)));
  }

  return plan.add(norm()).add(update());
}

}  // namespace shardbook::lab04

// Explain, in at most 60 words:
//
