// model: what is the network, on one GPU?
//
// A decoder for a range of layers, with or without embedding and head, built from a spec. Parameters have
// global names, so that a model cut in stages, or over ranks, is still the same model. Each layer (embedding,
// blocks, head) runs when it is asked to; in which order is the plan's concern (plan/).
//
// What backward needs is kept by micro-batch: `slots` micro-batches may be in flight (one, until a pipeline).
//
// Sources: Radford et al. 2019 (GPT-2); NVIDIA/Megatron-LM @d98e8a64 for names and specs.
#pragma once

#include <memory>
#include <vector>

#include "engine/model/block.hpp"
#include "engine/model/embedding.hpp"

namespace shardbook::model {

// Which part of the network is here.
struct Stage {
  int first_layer = 0;
  int end_layer = 0;
  bool embedding = true;
  bool head = true;
};

// How large a unit of blocks is at least. The last one has what is left.
struct UnitSize {
  int blocks = 1;
  std::int64_t numbers = 0;   // parameters, as this rank holds them whole
};

class Model {
 public:
  // Builds the pieces; allocates nothing. Blocks in a row are joined until they make a unit.
  Model(const ModelSpec& spec, const Sizes& sizes, const Stage& stage, const UnitSize& unit = {});

  // Units in the order of forward: embedding, blocks, head. A tied embedding and the head are one unit,
  // "root", first in order.
  const std::vector<Unit*>& units() { return units_; }
  std::vector<Parameter*> parameters();
  shard::Interval vocabulary() const { return token_embedding_->vocabulary(); }
  TokenCut cut() const { return cut_; }  // what the context of all calls must have

  // Elements of f32 scratch that the pieces' reductions need: allocate before and put into the context.
  std::int64_t scratch_elements(const BatchShape& batch) const;
  // What of a micro-batch's activations stays how long.
  struct Memory {
    // With Keep::inputs recompute must come before a block's backward, with Keep::what_is_dear remake.
    Keep keep = Keep::everything;
    // Of each unit of blocks: what they keep lies side by side, in memory of so many nominal bytes at least (lots()). Empty: each
    // tensor has its own. REQUIRES: one slot, and not Keep::inputs.
    std::vector<base::Bytes> lots = {};
    // In so many runs of tokens logits are made, all of it in the head's backward; 1: at once, in its forward. REQUIRES, of more: all
    // tokens have their rows here.
    int loss_chunks = 1;
  };
  // All activations, for `slots` micro-batches in flight. Set-up only.
  void allocate(Context& ctx, int slots, const Memory& memory);
  // In ctx.activation. When the last of a unit's blocks has gone backward it is free until their next forward.
  const std::vector<Tensor>& lots() const { return lots_; }

  // Layers in the order of forward: embedding, blocks, head.
  struct Layer {
    std::string name;
    int unit = 0;     // place in units()
    int number = -1;  // of a block
  };
  std::vector<Layer> layers() const;

  // loss (f32, [1]) gets (or is added, if `accumulate`) Σ over tokens of loss · scale.
  struct Score {
    float scale = 1;
    Tensor loss;
    bool accumulate = false;
  };
  // Forward of one layer of the micro-batch in `slot`; the head's ends with the score and the gradient of the logits.
  void forward(Context& ctx, int layer, const Batch& batch, int slot, const Score& score);
  // Backward of what forward left in `slot`; the layer above has been there. The head's makes the score where forward did not.
  void backward(Context& ctx, int layer, const Batch& batch, int slot, const Score& score);
  // Forward of one block once more, from its input, for the sake of what backward needs.
  void recompute(Context& ctx, int layer, int slot);
  // ... or of the part of it that costs no matmul.
  void remake(Context& ctx, int layer, int slot);

  // For tests and labs: what a slot holds.
  const Tensor& logits(int slot) const { return slots_[static_cast<std::size_t>(slot)].logit_NV; }

 private:
  struct Slot {
    std::vector<Tensor> x_ND;       // input of each block, and of the head's norm last
    std::vector<BlockKept> blocks;
    Tensor final_norm_ND;
    Kept final_norm;
    Tensor logit_NV;                // after forward: the gradient of the logits
  };

  void join_blocks(const UnitSize& least);
  void head_in_chunks(Context& ctx, Slot& slot, const Batch& batch, const Score& score);
  void keep_apart(Context& ctx, Slot& slot, Keep keep);
  void keep_in_lots(Context& ctx, Slot& slot, Keep keep, const std::vector<base::Bytes>& lots);
  enum class What : std::uint8_t { embedding, block, head };
  What what(int layer) const;
  std::size_t block(int layer) const { return static_cast<std::size_t>(layer - (stage_.embedding ? 1 : 0)); }

  Sizes sizes_;
  Stage stage_;
  TokenCut cut_;
  std::unique_ptr<TokenEmbedding> token_embedding_;
  std::unique_ptr<Positions> positions_;
  std::unique_ptr<Dropout> embedded_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::unique_ptr<Norm> final_norm_;
  std::unique_ptr<Linear> head_;
  std::unique_ptr<Loss> loss_;
  Unit embedding_unit_, head_unit_;
  std::vector<Unit> block_units_;
  std::vector<std::size_t> unit_of_block_;   // place in block_units_
  std::vector<Unit*> units_;

  std::vector<Slot> slots_;
  BlockWorkspace workspace_;
  std::vector<BlockKept> kept_once_;   // of Keep::inputs: the one that all blocks share
  std::vector<Tensor> lots_;           // by unit of blocks; or none
  int loss_chunks_ = 1;
  Tensor recomputed_ND_;               // ... and where an output goes that is there already
  Tensor dx_ND_;      // the gradient that goes from block to block
  Tensor dfinal_ND_;  // of the final norm's output
};

}  // namespace shardbook::model
