// kernels/attention: which positions does each position look at, and how much?
//
//   score = q · kᵀ,  p = softmax(scale · score) over keys t ≤ s,  context = p · v      (each head by itself)
// and backward, from the gradient of the context:
//   dp = dcontext · vᵀ,  dv = pᵀ · dcontext,  dscore = scale · p ∘ (dp − Σ_t p ∘ dp),
//   dq = dscore · k,  dk = dscoreᵀ · q
// Heads are independent, so tensor parallel cuts them and needs no communication in here.
// Source: Vaswani et al., "Attention is all you need" (2017). Products are batched matmuls over the whole
// square of scores, the half above the diagonal included; a fused kernel (FlashAttention) would skip it.
//
// The projection yields tokens first [N, P·H·K] (P = 3: queries, keys, values, each with all its heads);
// batched matmuls want heads first [P, B, H, S, K]. split_heads and merge_heads go between the two.
// None is a collective; all check shapes.
#pragma once

#include "engine/device/device.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using device::Lane;
using tensor::Tensor;

struct HeadSizes {
  std::int64_t parts, sequences, heads, positions, head_dim;  // P, B, H, S, K
  // Where the parts begin in a token's row, and how long the row is; 0: the parts are the whole row.
  std::int64_t first = 0, row_width = 0;
  std::int64_t elements() const { return parts * sequences * heads * positions * head_dim; }
  std::int64_t row() const { return row_width == 0 ? parts * heads * head_dim : row_width; }
};

// heads_PBHSK[p, b, h, s, k] = tokens_NPHK[b·S + s, p, h, k]. Any shapes of so many elements: part p of the
// result is heads.slice(p·B·H·S·K, {B, H, S, K}). Where the parts are some columns of wider rows, only those are
// read, or written.
void split_heads(Lane lane, const HeadSizes& sizes, const Tensor& tokens_NPHK, const Tensor& heads_PBHSK);
// The inverse: tokens_NPHK[b·S + s, p, h, k] = heads_PBHSK[p, b, h, s, k].
void merge_heads(Lane lane, const HeadSizes& sizes, const Tensor& heads_PBHSK, const Tensor& tokens_NPHK);

// The six batched matmuls, [B, H, rows, columns] each.
void attention_scores(Lane lane, const Tensor& q_BHSK, const Tensor& k_BHSK, const Tensor& score_BHSS);
void attention_context(Lane lane, const Tensor& p_BHSS, const Tensor& v_BHSK, const Tensor& context_BHSK);
void attention_probability_gradient(Lane lane, const Tensor& dcontext_BHSK, const Tensor& v_BHSK,
                                    const Tensor& dp_BHSS);
void attention_value_gradient(Lane lane, const Tensor& p_BHSS, const Tensor& dcontext_BHSK, const Tensor& dv_BHSK);
void attention_query_gradient(Lane lane, const Tensor& dscore_BHSS, const Tensor& k_BHSK, const Tensor& dq_BHSK);
void attention_key_gradient(Lane lane, const Tensor& dscore_BHSS, const Tensor& q_BHSK, const Tensor& dk_BHSK);

// p = softmax over keys t ≤ s of scale · score, 0 for t > s. p may be score.
void causal_softmax_forward(Lane lane, const Tensor& score_BHSS, float scale, const Tensor& p_BHSS);
// dscore = scale · p · (dp − Σ_t p · dp) for t ≤ s, 0 for t > s. dscore may be dp.
void causal_softmax_backward(Lane lane, const Tensor& p_BHSS, const Tensor& dp_BHSS, float scale,
                             const Tensor& dscore_BHSS);

}  // namespace shardbook::kernels
