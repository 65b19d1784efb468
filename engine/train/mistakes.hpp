// train/mistakes: what does a design look like that is wrong?
//
// Mistakes that people make once, each whole in one place, so that the rooms which do it right need not know of them.
// A mistake is another piece, another order, another number, or a wait that is not there. They are set by --wrong alone
// (config/switches.hpp), and each is found by a check that the table names.
#pragma once

#include "engine/model/model.hpp"
#include "engine/plan/passes.hpp"
#include "engine/plan/plan.hpp"
#include "engine/tensor_parallel/spec.hpp"

namespace shardbook::train {

// Row-parallel linears that add their bias before the sum: it counts once a rank.
model::ModelSpec with_bias_before_the_sum(const model::ModelSpec& parallel, device::Device& device, tensor_parallel::TensorParallelGroup group);

// Row-parallel linears that sum their gradient on the way back as well: what is whole on each rank is taken n times.
model::ModelSpec with_sums_both_ways(const model::ModelSpec& parallel, device::Device& device, tensor_parallel::TensorParallelGroup group);

// The update before the gradients are summed over ranks.
plan::Plan updated_before_the_sums(const plan::Plan& plan, const plan::Network& network);

// Each rank takes its slices for the whole, so that all tp ranks draw the same numbers.
void forget_places(model::Model& model);

// Each tp rank takes the gradient that it made of its rows for that of all rows.
void take_summands_for_sums(model::Model& model);

// Attention whose heads are drawn for as if they were the layer's first: ranks that cut them drop alike.
model::ModelSpec with_one_stream(const model::ModelSpec& dense);

// A block that is computed again draws other masks than its forward did, and its backward goes through those.
void draw_anew(model::Draw& draw, const plan::Action& action, bool of_block);

}  // namespace shardbook::train
