// kernels/cuda/cudnn/attention: attention as a graph for cuDNN.
//
// The formulas of kernels/attention.hpp, operation by operation, in the one order in which cuDNN recognises them and answers
// with its fused kernels for attention; no square of scores reaches memory. q, k and v stand where the projection left them
// (strides, no copies). Forward keeps the logsumexp, backward makes the probabilities again from it, as
// kernels/flash_attention.hpp does.
//
// Which operations cuDNN wants, and in which order, is from NVIDIA/cudnn-frontend @3929da2e,
// include/cudnn_frontend/node/scaled_dot_product_flash_attention.h (CompositeSDPANode, CompositeSDPABackwardNode),
// softmax.h and diagonal_band_mask.h. Its one operation for all of attention (CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR)
// has a causal mask from cuDNN 9.21 on alone (sdpa_support_surface.h).
#pragma once

#include "engine/kernels/arguments.hpp"
#include "engine/kernels/cuda/cudnn/graph.hpp"

namespace shardbook::kernels::cuda::cudnn {

Plan attention_forward_plan(const FlashAttentionSizes& sizes, const Target& target);
// One order of all sums: dq is not added to by many blocks at once.
Plan attention_backward_plan(const FlashAttentionSizes& sizes, const Target& target);

}  // namespace shardbook::kernels::cuda::cudnn
