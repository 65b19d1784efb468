// kernels/cudnn_attention: attention by cuDNN's own fused kernels, where it is installed.
//
// The same function of the same tensors as kernels/flash_attention.hpp: qkv_NE as the projection left it, the logsumexp
// kept for backward. On a GPU cuDNN computes it (cuda/cudnn/), on the host the reference of flash_attention does, so what is
// said there about numbers holds here. Nothing is dropped: cuDNN would draw by a stream of its own.
//
// What it needs beside those tensors is device memory while it runs. Its backward has one order of sums only in a form
// that writes dscore, the square of each head, and multiplies it by the keys afterwards; so it is given some of the
// sequences at a time, that the square of those stay small, and all layers share one workspace.
// Sources: PyTorch, aten/src/ATen/native/cudnn/MHA.cpp; llm.c @f1e2ace6, llmc/cudnn_att.cpp, for what is asked of cuDNN.
#pragma once

#include <string>

#include "engine/kernels/flash_attention.hpp"

namespace shardbook::kernels {

// Why GPUs cannot have it here, in one sentence that says what to do; empty where they can. Loads the library.
std::string cudnn_problem();
// "9.19.0", of the library that is loaded; "" where there is none.
std::string cudnn_version();
// Whether it takes these: bf16, head dimension 32, 64 or 128. The host takes any.
bool cudnn_attention_on_cuda(base::DType activation, std::int64_t head_dim);

// Of how many sequences backward has the square at once: a divisor of all, so that they take 1 GiB at most; or one.
std::int64_t cudnn_sequences_at_once(const GroupedHeads& heads);
// What it writes while it runs: the square of those sequences, rows and columns up to multiples of 64 and 128; where heads
// share keys, dk and dv of each head; and some. So cuDNN 9.14 and 9.19 have it on Hopper; on GPUs of compute capability 8.0,
// 8.6, 8.9, 10.0 and 12.0 they ask for a little less (as 9.19 says of their properties; none was tried).
base::Bytes cudnn_workspace_bytes(const GroupedHeads& heads);

// Set-up: a workspace for all layers of these sizes. On a GPU it finds and compiles the kernels, for the calling thread, and
// takes what they ask for where that is more. Throws Failure where cuDNN has none for these sizes on this GPU.
Tensor set_up_cudnn_attention(device::Device& device, const GroupedHeads& heads, const std::string& name);

// As flash_attention_forward and flash_attention_backward.
void cudnn_attention_forward(Lane lane, const GroupedHeads& heads, float scale, const Tensor& qkv_NE, const Tensor& out_NI,
                             const Tensor& logsumexp_BHS, const Tensor& workspace);
void cudnn_attention_backward(Lane lane, const GroupedHeads& heads, float scale, const Tensor& qkv_NE, const Tensor& out_NI,
                              const Tensor& dout_NI, const Tensor& logsumexp_BHS, const Tensor& delta_BHS,
                              const Tensor& dqkv_NE, const Tensor& workspace);

}  // namespace shardbook::kernels
