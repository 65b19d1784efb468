#include "engine/model/attention.hpp"

#include <cmath>

#include "engine/kernels/gemm.hpp"

namespace shardbook::model {

namespace {

float scale_of(const AttentionConfig& config) { return 1.0f / std::sqrt(static_cast<float>(config.head_dim)); }

// The heads of this rank, as a fused kernel takes them.
kernels::GroupedHeads heads_of(const AttentionConfig& config, const Context& ctx) {
  return {ctx.batch.sequences, config.heads, config.key_value_heads, ctx.batch.positions, config.head_dim};
}

}  // namespace

void WholeValues::forward(Context& ctx, const Tensor& p_BHSS, const Tensor& v_BHSK, const Tensor&, const Tensor& out_BHSK) {
  kernels::attention_context(ctx.compute, p_BHSS, v_BHSK, out_BHSK);
}

void WholeValues::backward(Context& ctx, const Tensor& p_BHSS, const Tensor& v_BHSK, const Tensor& dout_BHSK, const Tensor& dp_BHSS,
                           const Tensor& dv_BHSK) {
  kernels::attention_probability_gradient(ctx.compute, dout_BHSK, v_BHSK, dp_BHSS);
  kernels::attention_value_gradient(ctx.compute, p_BHSS, dout_BHSK, dv_BHSK);
}

CausalAttention::CausalAttention(const AttentionConfig& config) : config_(config), scale_(scale_of(config)), values_(std::make_unique<WholeValues>()) {
  const std::int64_t heads = config.heads, key_value_heads = config.key_value_heads, head_dim = config.head_dim;
  SHARDBOOK_CHECK(key_value_heads > 0 && heads % key_value_heads == 0, heads, " heads do not share ", key_value_heads, " key-value heads");
  if (heads == key_value_heads) columns_ = {{3, heads, 0}};
  else columns_ = {{1, heads, 0}, {2, key_value_heads, heads * head_dim}};
}

Tensor CausalAttention::allocate_qkv(Context& ctx, const std::string& name) const {
  const auto [B, S] = ctx.batch;
  const std::int64_t H = config_.heads, G = config_.key_value_heads, K = config_.head_dim;
  return allocate_activation(ctx, {B * (H + 2 * G), S, K}, name);
}

Tensor CausalAttention::allocate_square(Context& ctx, const std::string& name) const {
  const auto [B, S] = ctx.batch;
  const std::int64_t H = config_.heads, G = config_.key_value_heads;
  return allocate_activation(ctx, {B * G, H / G * S, S}, name);
}

Kept CausalAttention::keep(Context& ctx, const std::string& name) {
  return {{allocate_qkv(ctx, name + ".qkv"), allocate_square(ctx, name + ".probability")}};
}

void CausalAttention::allocate_workspace(Context& ctx) {
  const auto [B, S] = ctx.batch;
  const std::int64_t H = config_.heads, G = config_.key_value_heads, K = config_.head_dim;
  context_BHSK_ = allocate_activation(ctx, {B * G, H / G * S, K}, "workspace.context");
  dqkv_PBHSK_ = allocate_qkv(ctx, "workspace.dqkv_heads");
  dprobability_BHSS_ = allocate_square(ctx, "workspace.dprobability");
}

void CausalAttention::share_workspace(const Attention& other) {
  const auto& owner = of_same_kind<CausalAttention>(other);
  context_BHSK_ = owner.context_BHSK_;
  dqkv_PBHSK_ = owner.dqkv_PBHSK_;
  dprobability_BHSS_ = owner.dprobability_BHSS_;
}

kernels::HeadSizes CausalAttention::sizes(const Context& ctx, const Columns& columns) const {
  const std::int64_t H = config_.heads, G = config_.key_value_heads, K = config_.head_dim;
  return {columns.parts, ctx.batch.sequences, columns.heads, ctx.batch.positions, K, columns.first, (H + 2 * G) * K};
}

// The part of the heads-first tensor that these columns fill.
Tensor CausalAttention::heads_first(const Context& ctx, const Tensor& qkv, const Columns& columns) const {
  const auto [B, S] = ctx.batch;
  return qkv.slice(columns.first * B * S, {columns.parts * B * columns.heads, S, config_.head_dim});
}

// q, k and v, with the queries that share keys below each other.
CausalAttention::Heads CausalAttention::heads_of(const Context& ctx, const Tensor& qkv) const {
  const auto [B, S] = ctx.batch;
  const std::int64_t H = config_.heads, G = config_.key_value_heads, K = config_.head_dim;
  const std::int64_t queries = B * H * S * K, keys = B * G * S * K;
  return {qkv.slice(0, {B * G, H / G * S, K}), qkv.slice(queries, {B * G, S, K}), qkv.slice(queries + keys, {B * G, S, K})};
}

// Scores of every query with every key, then a softmax over the keys it may see.
void CausalAttention::make_probabilities(Context& ctx, const Kept& kept) const {
  const Heads heads = heads_of(ctx, kept.tensors[0]);
  const Tensor& score_BHSS = probability_BHSS(kept);
  kernels::attention_scores(ctx.compute, heads.q, heads.k, score_BHSS);
  const Tensor square_BHSS = score_BHSS.as({ctx.batch.sequences * config_.heads, ctx.batch.positions, ctx.batch.positions});
  kernels::causal_softmax_forward(ctx.compute, square_BHSS, scale_, square_BHSS);
}

void CausalAttention::forward(Context& ctx, const Tensor& qkv_NE, const Tensor& out_NI, Kept& kept) {
  program::Part part(ctx.device.recorder(), "attention");
  const std::int64_t H = config_.heads, K = config_.head_dim;
  const Tensor& qkv_PBHSK = kept.tensors[0];
  const Tensor v_BHSK = heads_of(ctx, qkv_PBHSK).v;

  for (const Columns& columns : columns_) {
    kernels::split_heads(ctx.compute, sizes(ctx, columns), qkv_NE, heads_first(ctx, qkv_PBHSK, columns));
  }
  make_probabilities(ctx, kept);
  values_->forward(ctx, probability_BHSS(kept), v_BHSK, dprobability_BHSS_, context_BHSK_);
  kernels::merge_heads(ctx.compute, {1, ctx.batch.sequences, H, ctx.batch.positions, K}, context_BHSK_, out_NI);
}

void CausalAttention::backward(Context& ctx, const Tensor& dout_NI, const Tensor&, const Tensor& dqkv_NE, Kept& kept) {
  program::Part part(ctx.device.recorder(), "attention");
  const std::int64_t H = config_.heads, K = config_.head_dim;
  const Tensor& p_BHSS = probability_BHSS(kept);
  const auto [q_BHSK, k_BHSK, v_BHSK] = heads_of(ctx, kept.tensors[0]);
  const auto [dq_BHSK, dk_BHSK, dv_BHSK] = heads_of(ctx, dqkv_PBHSK_);

  kernels::split_heads(ctx.compute, {1, ctx.batch.sequences, H, ctx.batch.positions, K}, dout_NI, context_BHSK_);
  // Through p · v: to the probabilities and to v.
  values_->backward(ctx, p_BHSS, v_BHSK, context_BHSK_, dprobability_BHSS_, dv_BHSK);
  // Through the softmax and its scale, in place.
  const base::Shape square{ctx.batch.sequences * H, ctx.batch.positions, ctx.batch.positions};
  kernels::causal_softmax_backward(ctx.compute, p_BHSS.as(square), dprobability_BHSS_.as(square), scale_, dprobability_BHSS_.as(square));
  // Through q · kᵀ: to q and to k.
  kernels::attention_query_gradient(ctx.compute, dprobability_BHSS_, k_BHSK, dq_BHSK);
  kernels::attention_key_gradient(ctx.compute, dprobability_BHSS_, q_BHSK, dk_BHSK);
  for (const Columns& columns : columns_) {
    kernels::merge_heads(ctx.compute, sizes(ctx, columns), heads_first(ctx, dqkv_PBHSK_, columns), dqkv_NE);
  }
}

Kept RecomputedAttention::keep(Context& ctx, const std::string& name) { return {{allocate_qkv(ctx, name + ".qkv")}}; }

void RecomputedAttention::allocate_workspace(Context& ctx) {
  CausalAttention::allocate_workspace(ctx);
  shared_probability_BHSS_ = allocate_square(ctx, "workspace.probability");
}

void RecomputedAttention::share_workspace(const Attention& other) {
  CausalAttention::share_workspace(other);
  shared_probability_BHSS_ = of_same_kind<RecomputedAttention>(other).shared_probability_BHSS_;
}

//@ model.attention.recompute: Another layer's probabilities stand there by now: make these again, and go on as if they had been kept.
void RecomputedAttention::backward(Context& ctx, const Tensor& dout_NI, const Tensor& out_NI, const Tensor& dqkv_NE, Kept& kept) {
  {
    program::Part part(ctx.device.recorder(), "attention");
    make_probabilities(ctx, kept);
  }
  CausalAttention::backward(ctx, dout_NI, out_NI, dqkv_NE, kept);
}
//@end

FusedAttention::FusedAttention(const AttentionConfig& config) : config_(config), scale_(scale_of(config)) {}

Kept FusedAttention::keep(Context& ctx, const std::string& name) {
  const kernels::GroupedHeads heads = heads_of(config_, ctx);
  return {{allocate_activation(ctx, {heads.tokens(), heads.width()}, name + ".qkv"), allocate_statistic(ctx, {heads.tokens() * heads.heads}, name + ".logsumexp")}};
}

void FusedAttention::allocate_workspace(Context& ctx) {
  delta_BHS_ = allocate_statistic(ctx, {ctx.batch.tokens() * config_.heads}, "workspace.delta");
}

void FlashAttention::share_workspace(const Attention& other) { delta_BHS_ = of_same_kind<FlashAttention>(other).delta_BHS_; }

void FlashAttention::forward(Context& ctx, const Tensor& qkv_NE, const Tensor& out_NI, Kept& kept) {
  program::Part part(ctx.device.recorder(), "attention");
  kernels::flash_attention_forward(ctx.compute, heads_of(config_, ctx), scale_, qkv_NE, out_NI, kept.tensors[1], mask_(ctx));
}

void FlashAttention::backward(Context& ctx, const Tensor& dout_NI, const Tensor& out_NI, const Tensor& dqkv_NE, Kept& kept) {
  program::Part part(ctx.device.recorder(), "attention");
  kernels::flash_attention_backward(ctx.compute, heads_of(config_, ctx), scale_, kept.tensors[0], out_NI, dout_NI, kept.tensors[1], delta_BHS_,
                                    dqkv_NE, mask_(ctx));
}

void CudnnAttention::allocate_workspace(Context& ctx) {
  FusedAttention::allocate_workspace(ctx);
  workspace_ = kernels::set_up_cudnn_attention(ctx.device, heads_of(config_, ctx), "workspace.cudnn");
}

void CudnnAttention::share_workspace(const Attention& other) {
  const auto& owner = of_same_kind<CudnnAttention>(other);
  delta_BHS_ = owner.delta_BHS_;
  workspace_ = owner.workspace_;
}

void CudnnAttention::forward(Context& ctx, const Tensor& qkv_NE, const Tensor& out_NI, Kept& kept) {
  program::Part part(ctx.device.recorder(), "attention");
  kernels::cudnn_attention_forward(ctx.compute, heads_of(config_, ctx), scale_, qkv_NE, out_NI, kept.tensors[1], workspace_);
}

void CudnnAttention::backward(Context& ctx, const Tensor& dout_NI, const Tensor& out_NI, const Tensor& dqkv_NE, Kept& kept) {
  program::Part part(ctx.device.recorder(), "attention");
  kernels::cudnn_attention_backward(ctx.compute, heads_of(config_, ctx), scale_, kept.tensors[0], out_NI, dout_NI, kept.tensors[1], delta_BHS_,
                                    dqkv_NE, workspace_);
}

}  // namespace shardbook::model
