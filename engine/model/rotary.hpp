// model/rotary: attention whose queries and keys are turned by their positions (Su et al. 2021, as in Llama).
//
// Any attention with a step before it and a step after: q and k are turned in place where the projection put them,
// and their gradients turned back. Heads of a tp rank turn alike, so nothing is exchanged.
#pragma once

#include "engine/model/spec.hpp"

namespace shardbook::model {

class RotaryAttention final : public Attention {
 public:
  // `config` has the heads of this rank.
  RotaryAttention(std::unique_ptr<Attention> attention, const AttentionConfig& config, float theta)
      : attention_(std::move(attention)), turned_(config.heads + config.key_value_heads), head_dim_(config.head_dim), theta_(theta) {}
  Kept keep(Context& ctx, const std::string& name) override { return attention_->keep(ctx, name); }
  void allocate_workspace(Context& ctx) override { attention_->allocate_workspace(ctx); }
  void share_workspace(const Attention& other) override;
  Tensor qkv_NE(const Kept& kept, const Tensor& workspace_NE) const override { return attention_->qkv_NE(kept, workspace_NE); }
  void forward(Context& ctx, const Tensor& qkv_NE, const Tensor& out_NI, Kept& kept) override;
  void backward(Context& ctx, const Tensor& dout_NI, const Tensor& out_NI, const Tensor& dqkv_NE, Kept& kept) override;

 private:
  void turn(Context& ctx, const Tensor& rows_NE, bool back) const;

  std::unique_ptr<Attention> attention_;
  std::int64_t turned_;  // heads of q, then of k: they lie first in a row
  std::int64_t head_dim_;
  float theta_;
};

}  // namespace shardbook::model
