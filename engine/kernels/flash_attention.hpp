// kernels/flash_attention: attention without the square of scores in memory.
//
// The same function as kernels/attention.hpp, in one op each way. Keys come by tiles; a query keeps the largest
// score so far, the sum of exponentials and the sum of values under it, and mends both when a larger score comes
// (the online softmax; derived in notes/05_flash_attention.md). What is left for backward is one number a query
// and head, the logsumexp, from which each probability can be made again. Memory is linear in S; tiles above the
// diagonal are not visited.
// Sources: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018); Dao et al.,
// "FlashAttention" (2022); Ainslie et al., "GQA" (2023) for query heads that share key-value heads.
//
// q, k and v are read where the projection left them, tokens first: qkv_NE with E = (H + 2G)·K, heads of q first,
// then of k, then of v. No op here is a collective; all check shapes.
//
// Dropout of the probabilities (dropout.hpp) is drawn tile by tile, each way anew: the same masks as of the unfused form,
// since an element's fate is a function of its place alone. `mask` is of the tensor [B, H, S, S] in runs of H·S·S.
#pragma once

#include "engine/device/device.hpp"
#include "engine/kernels/arguments.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using device::Lane;
using tensor::Tensor;

// Query head h looks at key-value head h / (heads / key_value_heads).
struct GroupedHeads {
  std::int64_t sequences, heads, key_value_heads, positions, head_dim;  // B, H, G, S, K
  std::int64_t tokens() const { return sequences * positions; }
  std::int64_t query_width() const { return heads * head_dim; }                     // I = H·K
  std::int64_t width() const { return (heads + 2 * key_value_heads) * head_dim; }  // E
};

// Whether the own kernel for CUDA takes these: bf16, head dimension 32, 64 or 128. The host takes any.
bool flash_attention_on_cuda(base::DType activation, std::int64_t head_dim);

// out_NI = softmax over keys t ≤ s of (scale · q·k), times v. logsumexp_BHS (nominal f32, [B·H·S]) is for backward.
void flash_attention_forward(Lane lane, const GroupedHeads& heads, float scale, const Tensor& qkv_NE, const Tensor& out_NI,
                             const Tensor& logsumexp_BHS, const DropoutMask& mask = no_dropout);
// dqkv_NE from dout_NI. out and logsumexp are what forward wrote; delta_BHS (nominal f32) is scratch. dqkv may
// not be qkv.
void flash_attention_backward(Lane lane, const GroupedHeads& heads, float scale, const Tensor& qkv_NE, const Tensor& out_NI,
                              const Tensor& dout_NI, const Tensor& logsumexp_BHS, const Tensor& delta_BHS,
                              const Tensor& dqkv_NE, const DropoutMask& mask = no_dropout);

}  // namespace shardbook::kernels
