// kernels/cuda/no_cuda: what stands for the CUDA kernels in a build without CUDA?
//
// Every op's launcher is here by name, so callers need no case for it; none can be reached, since
// without CUDA no cuda device is made, and one that is reached says so.
#include "engine/base/check.hpp"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda {
namespace {

[[noreturn]] void no_cuda(const char* op) {
  throw base::Failure(base::text("this build has no CUDA, so ", op,
                                 " cannot run on a GPU: configure with -DSHARDBOOK_CUDA=ON, or use --device host"));
}

}  // namespace

void gemm(const GemmArgs&, const device::CudaQueue&) { no_cuda("gemm"); }
void measure_matmul(const MeasureMatmulArgs&, const device::CudaQueue&) { no_cuda("measure_matmul"); }
std::int64_t matmul_library() { no_cuda("cuBLASLt"); }
void layer_norm_forward(const LayerNormForwardArgs&, const device::CudaQueue&) { no_cuda("layer_norm_forward"); }
void layer_norm_input_gradient(const LayerNormInputGradientArgs&, const device::CudaQueue&) { no_cuda("layer_norm_input_gradient"); }
void layer_norm_weight_gradient(const LayerNormWeightGradientArgs&, const device::CudaQueue&) { no_cuda("layer_norm_weight_gradient"); }
void gelu_forward(const GeluForwardArgs&, const device::CudaQueue&) { no_cuda("gelu_forward"); }
void gelu_backward(const GeluBackwardArgs&, const device::CudaQueue&) { no_cuda("gelu_backward"); }
void rms_norm_forward(const RmsNormForwardArgs&, const device::CudaQueue&) { no_cuda("rms_norm_forward"); }
void rms_norm_input_gradient(const RmsNormInputGradientArgs&, const device::CudaQueue&) { no_cuda("rms_norm_input_gradient"); }
void rms_norm_weight_gradient(const RmsNormWeightGradientArgs&, const device::CudaQueue&) { no_cuda("rms_norm_weight_gradient"); }
void swiglu_forward(const SwiGluForwardArgs&, const device::CudaQueue&) { no_cuda("swiglu_forward"); }
void swiglu_backward(const SwiGluBackwardArgs&, const device::CudaQueue&) { no_cuda("swiglu_backward"); }
void rotate(const RotateArgs&, const device::CudaQueue&) { no_cuda("rotate"); }
void add_bias_residual(const AddBiasResidualArgs&, const device::CudaQueue&) { no_cuda("add_bias_residual"); }
void dropout(const DropoutArgs&, const device::CudaQueue&) { no_cuda("dropout"); }
void bias_dropout_residual(const BiasDropoutResidualArgs&, const device::CudaQueue&) { no_cuda("bias_dropout_residual"); }
void bias_gradient(const BiasGradientArgs&, const device::CudaQueue&) { no_cuda("bias_gradient"); }
void accumulate(const AccumulateArgs&, const device::CudaQueue&) { no_cuda("accumulate"); }
void sum_parts(const SumPartsArgs&, const device::CudaQueue&) { no_cuda("sum_parts"); }
void widen(const WidenArgs&, const device::CudaQueue&) { no_cuda("widen"); }
void embedding_forward(const EmbeddingForwardArgs&, const device::CudaQueue&) { no_cuda("embedding_forward"); }
void embedding_backward(const EmbeddingBackwardArgs&, const device::CudaQueue&) { no_cuda("embedding_backward"); }
void position_forward(const PositionForwardArgs&, const device::CudaQueue&) { no_cuda("position_forward"); }
void position_backward(const PositionBackwardArgs&, const device::CudaQueue&) { no_cuda("position_backward"); }
void split_heads(const SplitHeadsArgs&, const device::CudaQueue&) { no_cuda("split_heads"); }
void causal_softmax_forward(const CausalSoftmaxForwardArgs&, const device::CudaQueue&) { no_cuda("causal_softmax_forward"); }
void causal_softmax_backward(const CausalSoftmaxBackwardArgs&, const device::CudaQueue&) { no_cuda("causal_softmax_backward"); }
void flash_attention_forward(const FlashAttentionForwardArgs&, const device::CudaQueue&) { no_cuda("flash_attention_forward"); }
void flash_attention_backward(const FlashAttentionBackwardArgs&, const device::CudaQueue&) { no_cuda("flash_attention_backward"); }
void cross_entropy_max(const CrossEntropyMaxArgs&, const device::CudaQueue&) { no_cuda("cross_entropy_max"); }
void cross_entropy_sums(const CrossEntropySumsArgs&, const device::CudaQueue&) { no_cuda("cross_entropy_sums"); }
void cross_entropy_gradient(const CrossEntropyGradientArgs&, const device::CudaQueue&) { no_cuda("cross_entropy_gradient"); }
void cross_entropy(const CrossEntropyArgs&, const device::CudaQueue&) { no_cuda("cross_entropy"); }
void sum(const SumArgs&, const device::CudaQueue&) { no_cuda("sum"); }
void sum_of_squares(const SumOfSquaresArgs&, const device::CudaQueue&) { no_cuda("sum_of_squares"); }
void clip_factor(const ClipFactorArgs&, const device::CudaQueue&) { no_cuda("clip_factor"); }
void adam_w(const AdamWArgs&, const device::CudaQueue&) { no_cuda("adam_w"); }
void fill(const FillArgs&, const device::CudaQueue&) { no_cuda("fill"); }
void pause(const FillArgs&, const device::CudaQueue&) { no_cuda("pause"); }
void cast(const CastArgs&, const device::CudaQueue&) { no_cuda("cast"); }
void init_normal(const InitNormalArgs&, const device::CudaQueue&) { no_cuda("init_normal"); }

}  // namespace shardbook::kernels::cuda
