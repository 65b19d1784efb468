// model/parameter: a tensor that is learnt, and where it is right now.
//
// The model knows a parameter by its global name and shape. A rank may hold a part of it (boxes, cut by
// tensor_parallel/), and its memory may be there only while it is used: `value` is a view that
// whoever provides the unit (fsdp/) sets before each use, and `gradient` likewise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/shard/placement.hpp"
#include "engine/shard/shard.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::model {

using tensor::Tensor;

// First values: mean + deviation · g, drawn by (seed, name, global element), the same for every layout.
struct Initial {
  float mean = 0;
  float deviation = 0;
};

struct Parameter {
  std::string name;          // global: "blocks.3.attention.qkv.weight"
  base::Shape global_shape;  // [rows, columns] or [rows]
  // What of it is here: boxes of the global tensor, laid end to end. One box a section that is cut on
  // its own (q, k and v of a fused projection); together they have `shape`.
  std::vector<shard::Box> boxes;
  base::Shape shape;
  // What other ranks hold of it, over the axes that cut the model: of no axis where the piece knows of no ranks.
  shard::Placement placement;
  bool weight_decay = false;   // matrices only, as GPT-2 and Megatron do
  Initial initial;

  Tensor value;     // nominal: what the layers compute with
  Tensor gradient;  // nominal f32, as backward leaves it: not yet summed over ranks (placement says over which)
  // Whether this micro-batch has already written `gradient`, so that the next writer must add (a tied
  // embedding has two). Cleared by whoever provides the unit.
  bool gradient_written = false;

  // Marks the gradient written and says whether the writer must add.
  bool accumulate_now() {
    const bool before = gradient_written;
    gradient_written = true;
    return before;
  }
};

// A number that names a parameter, or a place in the model, for the generator: FNV-1a of its name.
std::uint32_t generator_key(const std::string& name);
inline std::uint32_t generator_key(const Parameter& parameter) { return generator_key(parameter.name); }

// The parameters that are gathered, freed and reduced together: a block, or several in a row; the embedding, the head.
struct Unit {
  std::string name;   // "blocks.3", "blocks.2-3"
  int layer = -1;     // of its first block; -1 for embedding and head
  int blocks = 1;     // of them, so many from `layer` on
  bool alike = false; // of blocks, and used in turn with other such units, however many blocks each has: they use each other's memory
  std::vector<Parameter*> parameters;
};

}  // namespace shardbook::model
