// Lab 04: the one page that you program against.
//
// Each block's parameters are cut over eight GPUs. To compute with a block, its GPU must first gather the other seven
// parts; after, it may free them. You write the order of a step, as a list:
//
//   gather(unit)        its parameters become whole: an all-gather on the fsdp stream
//   forward(layer, 0)   computes on the compute stream, once the layer's unit is whole; likewise backward(layer, 0)
//   release(unit)       its buffer may be overwritten, once what was listed so far has run
//   reduce(unit)        its gradient is summed, and each GPU keeps its part: a reduce-scatter on the fsdp stream
//   load(0), norm(), update()
//
// The host issues the list without waiting. The fsdp stream runs its gathers and reductions one after the other, in the
// order of the list; compute runs beside it. Which stream waits for which is the engine's matter: it lets nothing be read
// before it is whole. Your matter is the order, and with it the time, and the memory: as many buffers are set aside as
// units are whole at once.
#pragma once

#include "engine/plan/plan.hpp"

namespace shardbook::lab04 {

using plan::backward;
using plan::forward;
using plan::gather;
using plan::limit;      // of part c: the host waits until what a unit's last release freed is free
using plan::load;
using plan::Network;    // .layers: embedding, blocks, head; .units: what is gathered at once
using plan::norm;
using plan::Plan;
using plan::reduce;
using plan::release;
using plan::synchronize;   // of part c: the host waits until compute has run all that it was given
using plan::update;

// How many layers there are: the embedding is the first, the head the last, blocks between.
inline int layers_of(const Network& network) { return static_cast<int>(network.layers.size()); }
// The unit that a layer's parameters are in. A tied embedding and head are one unit.
inline int unit_of(const Network& network, int layer) { return network.layers[static_cast<std::size_t>(layer)].unit; }
// Whether the layer is a block: gathered for each use and freed after it. The others are gathered once a step, and stay.
inline bool is_block(const Network& network, int layer) { return network.layers[static_cast<std::size_t>(layer)].number >= 0; }
// Whether forward of the layer needs a gather: each but a head that is tied to the embedding, which is whole by then.
inline bool needs_gather(const Network& network, int layer) { return layer == 0 || unit_of(network, layer) != unit_of(network, 0); }
// Whether backward of this layer is the last that adds to its unit's gradient.
inline bool completes_gradient(const Network& network, int layer) { return layer == 0 || unit_of(network, layer) != unit_of(network, 0); }

// Part a. You write this: all of one step.
Plan a_step(const Network& network);

// Part b. One block on one of eight GPUs; all ns, each measured alone.
struct Block {
  double gather, reduce;                            // the all-gather of its parameters, the reduce-scatter of its gradient
  double forward_per_token, backward_per_token;     // compute
};
// From how many tokens a GPU on does compute hide the gathers of the next block, in forward and in backward?
double tokens_to_hide(const Block& block);

// Part c. A step with two waits of the host, and what the one that costs takes from each step, in ms.
Plan planted_step(const Network& network);
double price_ms();

}  // namespace shardbook::lab04
