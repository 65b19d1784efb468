#include "engine/model/attention.hpp"

#include <cmath>

#include "engine/kernels/attention.hpp"
#include "engine/kernels/gemm.hpp"

namespace shardbook::model {

Kept CausalAttention::keep(Context& ctx, const std::string& name) {
  const auto [B, S] = ctx.batch;
  return {{allocate_activation(ctx, {3 * B * heads_, S, head_dim_}, name + ".qkv"),
           allocate_activation(ctx, {B, heads_, S, S}, name + ".probability")}};
}

void CausalAttention::allocate_workspace(Context& ctx) {
  const auto [B, S] = ctx.batch;
  context_BHSK_ = allocate_activation(ctx, {B, heads_, S, head_dim_}, "workspace.context");
  dqkv_PBHSK_ = allocate_activation(ctx, {3 * B * heads_, S, head_dim_}, "workspace.dqkv_heads");
  dprobability_BHSS_ = allocate_activation(ctx, {B, heads_, S, S}, "workspace.dprobability");
}

void CausalAttention::share_workspace(const Attention& other) {
  const auto& owner = dynamic_cast<const CausalAttention&>(other);
  context_BHSK_ = owner.context_BHSK_;
  dqkv_PBHSK_ = owner.dqkv_PBHSK_;
  dprobability_BHSS_ = owner.dprobability_BHSS_;
}

namespace {

// One of q, k, v.
Tensor section(const Tensor& qkv_PBHSK, const kernels::HeadSizes& sizes, int which) {
  const auto [P, B, H, S, K] = sizes;
  return qkv_PBHSK.slice(which * B * H * S * K, {B, H, S, K});
}

}  // namespace

kernels::HeadSizes CausalAttention::sizes(const Context& ctx, int parts) const {
  return {parts, ctx.batch.sequences, heads_, ctx.batch.positions, head_dim_};
}

void CausalAttention::forward(Context& ctx, const Tensor& qkv_NE, const Tensor& out_NI, Kept& kept) {
  program::Part part(ctx.device.recorder(), "attention");
  const kernels::HeadSizes three = sizes(ctx, 3);
  const Tensor& qkv_PBHSK = kept.tensors[0];
  const Tensor& probability_BHSS = kept.tensors[1];
  const Tensor q_BHSK = section(qkv_PBHSK, three, 0), k_BHSK = section(qkv_PBHSK, three, 1), v_BHSK = section(qkv_PBHSK, three, 2);
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim_));

  kernels::split_heads(ctx.compute, three, qkv_NE, qkv_PBHSK);
  // Scores of every query with every key, then a softmax over the keys it may see.
  kernels::attention_scores(ctx.compute, q_BHSK, k_BHSK, probability_BHSS);
  kernels::causal_softmax_forward(ctx.compute, probability_BHSS, scale, probability_BHSS);
  kernels::attention_context(ctx.compute, probability_BHSS, v_BHSK, context_BHSK_);
  kernels::merge_heads(ctx.compute, sizes(ctx, 1), context_BHSK_, out_NI);
}

void CausalAttention::backward(Context& ctx, const Tensor& dout_NI, const Tensor& dqkv_NE, Kept& kept) {
  program::Part part(ctx.device.recorder(), "attention");
  const kernels::HeadSizes three = sizes(ctx, 3);
  const Tensor& qkv_PBHSK = kept.tensors[0];
  const Tensor& probability_BHSS = kept.tensors[1];
  const Tensor q_BHSK = section(qkv_PBHSK, three, 0), k_BHSK = section(qkv_PBHSK, three, 1), v_BHSK = section(qkv_PBHSK, three, 2);
  const Tensor dq_BHSK = section(dqkv_PBHSK_, three, 0), dk_BHSK = section(dqkv_PBHSK_, three, 1), dv_BHSK = section(dqkv_PBHSK_, three, 2);
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim_));

  kernels::split_heads(ctx.compute, sizes(ctx, 1), dout_NI, context_BHSK_);
  // Through p · v: to the probabilities and to v.
  kernels::attention_probability_gradient(ctx.compute, context_BHSK_, v_BHSK, dprobability_BHSS_);
  kernels::attention_value_gradient(ctx.compute, probability_BHSS, context_BHSK_, dv_BHSK);
  // Through the softmax and its scale, in place.
  kernels::causal_softmax_backward(ctx.compute, probability_BHSS, dprobability_BHSS_, scale, dprobability_BHSS_);
  // Through q · kᵀ: to q and to k.
  kernels::attention_query_gradient(ctx.compute, dprobability_BHSS_, k_BHSK, dq_BHSK);
  kernels::attention_key_gradient(ctx.compute, dprobability_BHSS_, q_BHSK, dk_BHSK);
  kernels::merge_heads(ctx.compute, three, dqkv_PBHSK_, dqkv_NE);
}

}  // namespace shardbook::model
