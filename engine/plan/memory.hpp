// plan/memory: what does a rank hold, by formulas that can be done by hand?
//
// needs.hpp counts what an order needs, and a layout on no device counts what is set aside; both walk all of it. Here
// the same is a page of formulas of shapes and layouts alone: parameters by unit, padded and cut; gradients,
// masters, moments; what each block keeps for its backward; what all blocks share. notes/06_memory.md derives them.
// They are of the orders that this engine makes (fsdp/schedule.hpp, data_parallel/schedule.hpp, passes.hpp), and exact
// where every width of a rank is a multiple of 8.
//
// Sources: Rajbhandari et al. 2020, ZeRO (arXiv:1910.02054), §3; Korthikanti et al. 2022, "Reducing Activation
// Recomputation in Large Transformer Models" (arXiv:2205.05198), §4.1, for what a block keeps.
#pragma once

#include <string>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/plan/quantity.hpp"
#include "engine/program/program.hpp"

namespace shardbook::plan {

// All that the formulas know of a run. Sizes are whole; a rank's part follows from tp.
struct Shapes {
  // The model
  std::int64_t layers = 0, width = 0, heads = 0, key_value_heads = 0, head_dim = 0, ffn_width = 0, vocabulary = 0, positions = 0;
  bool tied = false;
  bool llama = false;              // RMS norms, a gated MLP, no biases, no table of positions; else GPT-2's
  bool flash = false;              // attention that keeps no square
  bool cudnn = false;              // ... and is cuDNN's, whose backward has the square of some sequences for a while
  // A micro-batch of a rank, and how many there are in a step
  std::int64_t sequences = 0;      // of `positions` tokens
  std::int64_t micro_batches = 1;
  std::int64_t rows_divided_by = 1;   // into how many runs the rows between the linears are cut (sequence parallelism)
  bool rows_in_turns = false;         // ... and the summands of a rank's rows come to places of their own
  base::Bytes parameter = 2, activation = 2;   // of one number: what is computed with
  base::Bytes reduce = 4;          // of one number of a gradient, on its way between ranks that shard
  // The layout, and the choices of its order
  std::int64_t tp = 1, fsdp = 1, dp = 1;
  std::int64_t blocks_a_unit = 1;  // that are gathered and reduced together, at least; the last unit has what is left
  std::int64_t numbers_a_unit = 0; // ... and so many parameters of a rank, whole
  bool each_parameter = false;     // is padded and cut by itself; else a unit as one
  bool reshard = true;             // blocks are whole only while they are used
  std::int64_t near = 0;           // ranks that keep a unit of blocks between them from its forward on; 0: none do
  bool lends = false;              // shards of blocks' gradients lie where the blocks' activations lay
  bool keeps_copy = true;          // of its shard a rank keeps what it computes with beside the masters
  std::int64_t ahead = 1;          // so many units are gathered ahead of their use
  bool fused = true;               // a matmul adds to the sum of a weight's gradients itself
  bool reduce_each = true;         // gradients are summed over shards after each micro-batch, not once after the last
  bool recompute = false;          // blocks keep their inputs only
  bool remake = false;             // ... or what takes a matmul, or attention, to make
  std::int64_t loss_chunks = 1;       // runs of tokens of which logits are there one after the other
  bool loss_in_one = false;           // ... and one kernel makes their loss, without a maximum and sums that are kept
  bool gelu_in_matmuls = false;       // so the gradient of what it reads takes the place of that of what it makes
  bool recompute_attention = false;   // blocks keep no square
  bool states_on_host = false;        // masters and moments lie in host memory
  bool shards_on_host = false;        // ... and what is computed with, and gradients: nothing stays on the device
  std::int64_t piece = 0;             // of states that come to the device: so many numbers at once, at most
  std::int64_t slots = 0;             // ... and so many pieces
};

// A line of what is held.
enum class Held : std::uint8_t {
  parameter_shards, whole_blocks, whole_ends, kept_parts, gradient_sums, block_gradients, end_gradients, rounded_gradient, staged_gradient, gradient_apart, masters, moments, state_slots, shards_to_device, sums_to_host, host_shards, host_sums, host_landings, host_masters, host_moments, host_factor,
  layer_inputs, lent, attention_kept, block_kept, head_kept, loss, attention_workspace, block_workspace, between_layers, partial_sums, optimizer_scratch, tokens,
};
const char* name_of(Held held);   // "shards of parameters"

struct HeldLine {
  Held held = Held::tokens;
  program::MemoryKind kind = program::MemoryKind::input;
  std::string formula;            // "P / n · 2 B"
  base::Bytes bytes = 0;
  bool on_host = false;           // lies in host memory, not on the device
};
struct Letter {
  std::string letter;
  std::int64_t value = 0;
  std::string meaning;            // in words, or as a formula of letters above it
};

struct Holding {
  std::vector<Letter> letters;    // what the formulas are made of, each after those that it needs
  std::vector<HeldLine> lines;    // by kind, those of host memory last; without lines of nothing
  // Of the device; and of host memory, all of it.
  base::Bytes bytes(program::MemoryKind kind) const;
  base::Bytes all() const;
  base::Bytes on_host() const;
};
// What a rank sets aside for a run of these shapes. All ranks hold alike.
Holding holding_of(const Shapes& shapes);

}  // namespace shardbook::plan
