// model/attention: causal softmax attention, one matmul for all heads of all sequences.
//
// The projection makes tokens-first rows (q of all heads, then k, then v); heads-first copies let each
// product be one batched matmul. The probabilities are kept whole, [B, H, S, S]: the plain form, whose
// memory and traffic a fused kernel saves (Dao et al. 2022) behind the same contract.
// Heads do not speak to each other, so a tp rank does its own heads and nothing is exchanged.
#pragma once

#include "engine/kernels/attention.hpp"
#include "engine/model/spec.hpp"

namespace shardbook::model {

class CausalAttention final : public Attention {
 public:
  // `heads` are those of this rank.
  CausalAttention(std::int64_t heads, std::int64_t head_dim) : heads_(heads), head_dim_(head_dim) {}
  Kept keep(Context& ctx, const std::string& name) override;  // qkv_PBHSK, probability_BHSS
  void allocate_workspace(Context& ctx) override;
  void share_workspace(const Attention& other) override;
  void forward(Context& ctx, const Tensor& qkv_NE, const Tensor& out_NI, Kept& kept) override;
  void backward(Context& ctx, const Tensor& dout_NI, const Tensor& dqkv_NE, Kept& kept) override;

 private:
  kernels::HeadSizes sizes(const Context& ctx, int parts) const;

  std::int64_t heads_, head_dim_;
  // Between kernels of one call, shared by all layers.
  Tensor context_BHSK_;        // p · v and, in backward, its gradient
  Tensor dqkv_PBHSK_;
  Tensor dprobability_BHSS_;
};

}  // namespace shardbook::model
