// model/block: one layer of the decoder.
//
//   r = x + projection(attention(qkv(norm_1(x))))        the attention half
//   y = r + down(activation(up(norm_2(r))))              the MLP half
//
// Pre-norm, as in GPT-2 and Megatron. The block knows the order of its pieces and what backward needs;
// which piece stands in each place is the spec's choice, so nothing here knows of ranks.
#pragma once

#include "engine/model/spec.hpp"

namespace shardbook::model {

// What of a block stays from its forward until its backward.
enum class Keep : std::uint8_t {
  everything,
  what_is_dear,   // not what a pass over memory makes again: outputs of norms and of the activation
  inputs,         // nothing but the block's input
};

// What a block's forward leaves for its backward, for one micro-batch. x is the caller's. Tensors of width D have the
// rows that are here between the linears (Context::rows), the others those of all tokens.
struct BlockKept {
  Tensor norm_1_ND;      // what qkv read
  Kept norm_1, attention, norm_2;
  Tensor attended_NI;    // what projection read
  Tensor residual_ND;    // r
  Tensor norm_2_ND;      // what up read
  Tensor up_NE;          // what the activation read
  Tensor activated_NF;   // what down read
};

// Tensors between two kernels, shared by all blocks of a rank: one block runs at a time.
struct BlockWorkspace {
  Tensor qkv_NE;          // the projection's rows, before they are split in heads; also their gradient
  Tensor branch_ND;       // what projection or down made, before it joins the residual; also its gradient, where some is dropped
  Tensor dactivated_NF;   // gradients, by what they are the gradient of
  Tensor dup_NE;
  Tensor dnorm_ND;
  Tensor dresidual_ND;
  Tensor dattended_NI;
  Tensor norm_1_ND;       // where blocks keep what is dear: what norm_1 made (Block::lend)
};

class Block {
 public:
  Block(const ModelSpec& spec, const Sizes& sizes, int layer);

  Unit& unit() { return unit_; }
  // With Keep::what_is_dear the places of the rest are yet to be lent. With Keep::inputs it is called for one block, and all share that.
  BlockKept keep(Context& ctx, Keep what);
  void lend(const BlockWorkspace& workspace, BlockKept& kept) const;
  // The first block allocates what all share.
  void allocate_workspace(Context& ctx, BlockWorkspace& workspace, Keep what);
  void share_workspace(const Block& other) { attention_->share_workspace(*other.attention_); }

  // y_ND may not be x_ND.
  void forward(Context& ctx, const Tensor& x_ND, BlockKept& kept, BlockWorkspace& workspace, const Tensor& y_ND);
  // What forward made and did not keep, with Keep::what_is_dear. backward must come next to it, of all that blocks do.
  void remake(Context& ctx, const Tensor& x_ND, BlockKept& kept);
  // dx_ND may be dy_ND.
  void backward(Context& ctx, const Tensor& x_ND, BlockKept& kept, BlockWorkspace& workspace, const Tensor& dy_ND,
                const Tensor& dx_ND);

 private:
  std::string name_;
  std::unique_ptr<Norm> norm_1_, norm_2_;
  std::unique_ptr<Linear> qkv_, projection_, up_, down_;
  std::unique_ptr<Attention> attention_;
  std::unique_ptr<Activation> activation_;
  std::unique_ptr<ResidualAdd> residual_1_, residual_2_;
  std::int64_t width_;
  Unit unit_;
};

}  // namespace shardbook::model
