// kernels/cross_entropy: how wrong were the predictions, when each rank holds part of the vocabulary?
//
//   loss_n = log Σ_v exp(logit_nv − max_n) − (logit_n,target − max_n)
// Only three numbers a token cross ranks, never the logits: the maximum, the sum of exponentials and the
// target's logit. Hence three ops with an all-reduce (max, then sum) after the first and the second:
//   cross_entropy_max → all-reduce max row_max_N → cross_entropy_sums → all-reduce sum sums_2N
//   → cross_entropy_gradient
// On one rank the reductions are absent and nothing else changes; or one op, cross_entropy, does all three, since nobody waits
// between them, and the logits are read once.
// Source: Megatron-LM, core/tensor_parallel/cross_entropy.py.
//
// row_max_N, sums_2N and loss_N are nominal f32; targets are i32 and global tokens. None of the ops
// is a collective; all check shapes. A caller may cut the tokens in pieces (rows of logit_NV) to save memory.
#pragma once

#include "engine/device/device.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using device::Lane;
using tensor::Tensor;

// row_max_N[n] = max over this part's columns.
void cross_entropy_max(Lane lane, const Tensor& logit_NV, const Tensor& row_max_N);

// With the maximum over all parts: sums_2N[0, n] = Σ_v exp(logit − row_max) over this part, sums_2N[1, n] = the
// target's logit − row_max where the target lies in [vocab_begin, vocab_begin + V), else 0.
void cross_entropy_sums(Lane lane, const Tensor& logit_NV, const Tensor& row_max_N, const Tensor& target_N,
                        std::int64_t vocab_begin, const Tensor& sums_2N);

// With the sums over all parts: loss_N[n] as above, equal on all ranks, and in place
// logit_NV ← scale · (softmax − onehot(target)). scale is 1 / global tokens, so that reductions are sums.
void cross_entropy_gradient(Lane lane, const Tensor& logit_NV, const Tensor& row_max_N, const Tensor& sums_2N,
                            const Tensor& target_N, std::int64_t vocab_begin, float scale, const Tensor& loss_N);

// All three of a vocabulary that is whole here, with their bits.
void cross_entropy(Lane lane, const Tensor& logit_NV, const Tensor& target_N, float scale, const Tensor& loss_N);

}  // namespace shardbook::kernels
