// tensor_parallel/spec: a model's pieces, cut over a tp group.
#pragma once

#include "engine/model/spec.hpp"
#include "engine/tensor_parallel/regions.hpp"

namespace shardbook::tensor_parallel {

// A column-parallel linear sums dx over ranks and makes its weight gradient: at once, whichever is let in first; at once, the sum with a
// head start; or the sum alone, and the weight gradient when it has ended.
enum class InputGradientSum { overlapped, first, awaited };

struct Pieces {
  InputGradientSum input_gradient_sum = InputGradientSum::overlapped;
  bool cut_tokens = false;            // between the linears a rank holds the rows of some tokens (sequence.hpp)
  bool in_turns = false;              // ... and its linears multiply some rows while others cross (overlap.hpp)
};
Start begin_of(const Pieces& pieces);

// `dense` with its linears, attention, embedding and loss replaced by their parallel kin: qkv, up and head
// column-parallel, projection and down row-parallel, heads and vocabulary split. Norms and positions stay
// whole. A group of one gives `dense` back. The group must outlive the model.
// REQUIRES: heads, width of the MLP and vocabulary divide by the group's size, and with tokens cut those of a micro-batch
// (config::validate says so).
model::ModelSpec parallel_spec(const model::ModelSpec& dense, device::Device& device, TensorParallelGroup group, const Pieces& pieces = {});
// Which of a block's linears are row-parallel.
bool cuts_inputs(model::LinearRole role);

}  // namespace shardbook::tensor_parallel
