#include "engine/kernels/attention.hpp"

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/expect.hpp"
#include "engine/kernels/gemm.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels {

using program::OpDesc;
using program::OpKind;

namespace {

void permute_heads(Lane lane, const char* op, const HeadSizes& sizes, const Tensor& from, const Tensor& to,
                   bool inverse) {
  const Tensor& tokens_first = inverse ? to : from;
  const Tensor& heads_first = inverse ? from : to;
  expect_elements(op, "tokens_NPHK", tokens_first, sizes.sequences * sizes.positions * sizes.row());
  expect_elements(op, "heads_PBHSK", heads_first, sizes.elements());
  expect_same_type(op, "result", to, from);
  OpDesc desc(op, OpKind::pointwise, from.nominal);
  desc.reads(from.use(), heads_first.nominal_bytes()).writes(to.use(), heads_first.nominal_bytes());
  void* const columns = tokens_first.data == nullptr ? nullptr : static_cast<char*>(tokens_first.data) + sizes.first * base::size_of(from.storage);
  const SplitHeadsArgs args{columns,         heads_first.data, sizes.parts, sizes.sequences, sizes.heads,
                            sizes.positions, sizes.head_dim,   sizes.row(), inverse,         from.storage};
  lane.device().launch(lane, desc, args, &host::split_heads, &cuda::split_heads);
}

// Rows and columns of the scores are positions: the last two dims are equal. Returns B·H.
std::int64_t expect_scores(const char* op, const char* name, const Tensor& score_BHSS) {
  const int dims = score_BHSS.shape.dims();
  SHARDBOOK_CHECK(dims >= 2 && score_BHSS.shape[dims - 1] == score_BHSS.shape[dims - 2], op, ": ", name, " is ",
                  base::to_string(score_BHSS.shape), ", whose last two dims should be equal");
  const std::int64_t positions = score_BHSS.shape[dims - 1];
  return positions == 0 ? 0 : score_BHSS.elements() / (positions * positions);
}

}  // namespace

void split_heads(Lane lane, const HeadSizes& sizes, const Tensor& tokens_NPHK, const Tensor& heads_PBHSK) {
  permute_heads(lane, "split_heads", sizes, tokens_NPHK, heads_PBHSK, false);
}
void merge_heads(Lane lane, const HeadSizes& sizes, const Tensor& heads_PBHSK, const Tensor& tokens_NPHK) {
  permute_heads(lane, "merge_heads", sizes, heads_PBHSK, tokens_NPHK, true);
}

void attention_scores(Lane lane, const Tensor& q_BHSK, const Tensor& k_BHSK, const Tensor& score_BHSS) {
  batched_gemm(lane, "attention_scores", q_BHSK, false, k_BHSK, true, score_BHSS);
}
void attention_context(Lane lane, const Tensor& p_BHSS, const Tensor& v_BHSK, const Tensor& context_BHSK) {
  batched_gemm(lane, "attention_context", p_BHSS, false, v_BHSK, false, context_BHSK);
}
void attention_probability_gradient(Lane lane, const Tensor& dcontext_BHSK, const Tensor& v_BHSK,
                                    const Tensor& dp_BHSS) {
  batched_gemm(lane, "attention_probability_gradient", dcontext_BHSK, false, v_BHSK, true, dp_BHSS);
}
void attention_value_gradient(Lane lane, const Tensor& p_BHSS, const Tensor& dcontext_BHSK, const Tensor& dv_BHSK) {
  batched_gemm(lane, "attention_value_gradient", p_BHSS, true, dcontext_BHSK, false, dv_BHSK);
}
void attention_query_gradient(Lane lane, const Tensor& dscore_BHSS, const Tensor& k_BHSK, const Tensor& dq_BHSK) {
  batched_gemm(lane, "attention_query_gradient", dscore_BHSS, false, k_BHSK, false, dq_BHSK);
}
void attention_key_gradient(Lane lane, const Tensor& dscore_BHSS, const Tensor& q_BHSK, const Tensor& dk_BHSK) {
  batched_gemm(lane, "attention_key_gradient", dscore_BHSS, true, q_BHSK, false, dk_BHSK);
}

void causal_softmax_forward(Lane lane, const Tensor& score_BHSS, float scale, const Tensor& p_BHSS) {
  static constexpr const char* op = "causal_softmax_forward";
  const std::int64_t batch_heads = expect_scores(op, "score_BHSS", score_BHSS);
  expect_shape(op, "p_BHSS", p_BHSS, score_BHSS.shape);
  expect_same_type(op, "p_BHSS", p_BHSS, score_BHSS);
  OpDesc desc(op, OpKind::reduction, score_BHSS.nominal);
  desc.flops(5 * score_BHSS.elements() / 2)  // scale, maximum, exp, sum, division; half the square
      .reads(score_BHSS.use()).writes(p_BHSS.use());
  const CausalSoftmaxForwardArgs args{score_BHSS.data, p_BHSS.data, batch_heads,
                                      score_BHSS.shape[score_BHSS.shape.dims() - 1], scale, score_BHSS.storage};
  lane.device().launch(lane, desc, args, &host::causal_softmax_forward, &cuda::causal_softmax_forward);
}

void causal_softmax_backward(Lane lane, const Tensor& p_BHSS, const Tensor& dp_BHSS, float scale,
                             const Tensor& dscore_BHSS) {
  static constexpr const char* op = "causal_softmax_backward";
  const std::int64_t batch_heads = expect_scores(op, "p_BHSS", p_BHSS);
  expect_shape(op, "dp_BHSS", dp_BHSS, p_BHSS.shape);
  expect_shape(op, "dscore_BHSS", dscore_BHSS, p_BHSS.shape);
  expect_same_type(op, "dp_BHSS", dp_BHSS, p_BHSS);
  expect_same_type(op, "dscore_BHSS", dscore_BHSS, p_BHSS);
  OpDesc desc(op, OpKind::reduction, p_BHSS.nominal);
  desc.flops(5 * p_BHSS.elements() / 2)  // product, sum, difference, two products; half the square
      .reads(p_BHSS.use()).reads(dp_BHSS.use()).writes(dscore_BHSS.use());
  const CausalSoftmaxBackwardArgs args{p_BHSS.data, dp_BHSS.data, dscore_BHSS.data, batch_heads,
                                       p_BHSS.shape[p_BHSS.shape.dims() - 1], scale, p_BHSS.storage};
  lane.device().launch(lane, desc, args, &host::causal_softmax_backward, &cuda::causal_softmax_backward);
}

}  // namespace shardbook::kernels
