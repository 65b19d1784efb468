// kernels/fused_attention: what ops of attention in one piece are told, whoever computes them.
//
// Attention by tiles (flash_attention.cpp) and cuDNN's (cudnn_attention.cpp) take the same tensors and record the same
// flops; here their tensors are checked, described and made arguments, once.
#pragma once

#include "engine/kernels/expect.hpp"
#include "engine/kernels/flash_attention.hpp"

namespace shardbook::kernels {

FlashAttentionSizes sizes_of(const GroupedHeads& heads);

// The tensors of a forward. Both check that they fit: `op` is its name.
struct FusedForward {
  const GroupedHeads& heads;
  float scale;
  const Tensor& qkv_NE;
  const Tensor& out_NI;
  const Tensor& logsumexp_BHS;
  DropoutMask mask = no_dropout;

  FlashAttentionForwardArgs args(const char* op) const;
  program::OpDesc desc(const char* op) const;   // flops, what is read and written
};

// The same of a backward.
struct FusedBackward {
  const GroupedHeads& heads;
  float scale;
  const Tensor& qkv_NE;
  const Tensor& out_NI;
  const Tensor& dout_NI;
  const Tensor& logsumexp_BHS;
  const Tensor& delta_BHS;
  const Tensor& dqkv_NE;
  DropoutMask mask = no_dropout;

  FlashAttentionBackwardArgs args(const char* op) const;
  program::OpDesc desc(const char* op) const;
};

}  // namespace shardbook::kernels
