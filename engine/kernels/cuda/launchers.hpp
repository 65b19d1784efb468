// kernels/cuda/launchers: how is each op put on a CUDA stream?
//
// One function an op. It enqueues the op's kernel (or cuBLASLt call) on queue.stream and returns at once:
// it allocates nothing, waits for nothing, and throws base::Failure with expression, code and op where
// the launch is refused. What each computes is said beside its arguments (kernels/arguments.hpp); the
// host reference of the same name (kernels/host/references.hpp) is what it is compared with.
// A build without CUDA links no_cuda.cpp instead, whose functions throw.
#pragma once

#include <string>

#include "engine/device/cuda_queue.hpp"
#include "engine/kernels/arguments.hpp"
#include "engine/kernels/matmul_plans.hpp"

namespace shardbook::kernels::cuda {

void gemm(const GemmArgs& args, const device::CudaQueue& queue);
void measure_matmul(const MeasureMatmulArgs& args, const device::CudaQueue& queue);   // waits for the GPU
std::int64_t matmul_library();
void layer_norm_forward(const LayerNormForwardArgs& args, const device::CudaQueue& queue);
void layer_norm_input_gradient(const LayerNormInputGradientArgs& args, const device::CudaQueue& queue);
void layer_norm_weight_gradient(const LayerNormWeightGradientArgs& args, const device::CudaQueue& queue);
void gelu_forward(const GeluForwardArgs& args, const device::CudaQueue& queue);
void gelu_backward(const GeluBackwardArgs& args, const device::CudaQueue& queue);
void rms_norm_forward(const RmsNormForwardArgs& args, const device::CudaQueue& queue);
void rms_norm_input_gradient(const RmsNormInputGradientArgs& args, const device::CudaQueue& queue);
void rms_norm_weight_gradient(const RmsNormWeightGradientArgs& args, const device::CudaQueue& queue);
void swiglu_forward(const SwiGluForwardArgs& args, const device::CudaQueue& queue);
void swiglu_backward(const SwiGluBackwardArgs& args, const device::CudaQueue& queue);
void rotate(const RotateArgs& args, const device::CudaQueue& queue);
void add_bias_residual(const AddBiasResidualArgs& args, const device::CudaQueue& queue);
void dropout(const DropoutArgs& args, const device::CudaQueue& queue);
void bias_dropout_residual(const BiasDropoutResidualArgs& args, const device::CudaQueue& queue);
void bias_gradient(const BiasGradientArgs& args, const device::CudaQueue& queue);
void accumulate(const AccumulateArgs& args, const device::CudaQueue& queue);
void sum_parts(const SumPartsArgs& args, const device::CudaQueue& queue);
void widen(const WidenArgs& args, const device::CudaQueue& queue);
void embedding_forward(const EmbeddingForwardArgs& args, const device::CudaQueue& queue);
void embedding_backward(const EmbeddingBackwardArgs& args, const device::CudaQueue& queue);
void position_forward(const PositionForwardArgs& args, const device::CudaQueue& queue);
void position_backward(const PositionBackwardArgs& args, const device::CudaQueue& queue);
void split_heads(const SplitHeadsArgs& args, const device::CudaQueue& queue);
void causal_softmax_forward(const CausalSoftmaxForwardArgs& args, const device::CudaQueue& queue);
void causal_softmax_backward(const CausalSoftmaxBackwardArgs& args, const device::CudaQueue& queue);
void flash_attention_forward(const FlashAttentionForwardArgs& args, const device::CudaQueue& queue);
void flash_attention_backward(const FlashAttentionBackwardArgs& args, const device::CudaQueue& queue);
void cross_entropy_max(const CrossEntropyMaxArgs& args, const device::CudaQueue& queue);
void cross_entropy_sums(const CrossEntropySumsArgs& args, const device::CudaQueue& queue);
void cross_entropy_gradient(const CrossEntropyGradientArgs& args, const device::CudaQueue& queue);
void cross_entropy(const CrossEntropyArgs& args, const device::CudaQueue& queue);
void sum(const SumArgs& args, const device::CudaQueue& queue);
void sum_of_squares(const SumOfSquaresArgs& args, const device::CudaQueue& queue);
void clip_factor(const ClipFactorArgs& args, const device::CudaQueue& queue);
void adam_w(const AdamWArgs& args, const device::CudaQueue& queue);
void fill(const FillArgs& args, const device::CudaQueue& queue);
void pause(const FillArgs& args, const device::CudaQueue& queue);
void cast(const CastArgs& args, const device::CudaQueue& queue);
void init_normal(const InitNormalArgs& args, const device::CudaQueue& queue);

// What cuDNN computes (cudnn/); a build without it links no_cudnn.cpp, whose functions say so.
void cudnn_attention_forward(const CudnnAttentionForwardArgs& args, const device::CudaQueue& queue);
void cudnn_attention_backward(const CudnnAttentionBackwardArgs& args, const device::CudaQueue& queue);
// Bytes of workspace that both ask for on the calling thread's GPU; finds and compiles their kernels.
std::int64_t cudnn_attention_needs(const FlashAttentionSizes& sizes, std::int64_t sequences_at_once);
// Why it cannot be used, in one sentence, or nothing; and its version, or nothing.
std::string cudnn_problem();
std::string cudnn_version();

}  // namespace shardbook::kernels::cuda
