// kernels/host/references: what does each op compute, in plain C++?
//
// One function an op, over the same arguments as its CUDA kernel (kernels/arguments.hpp, where each is
// defined). They are templates over float and double behind one name, chosen by args.dtype, so that the
// host device trains with them and finite differences of them in fp64 mean something. Each runs on the
// calling thread, allocates at most a few rows, and sums in one fixed order: a run repeats bit for bit.
// They throw base::Failure where a dtype is neither f32 nor f64.
#pragma once

#include "engine/device/cuda_queue.hpp"
#include "engine/kernels/arguments.hpp"

namespace shardbook::kernels::host {

void gemm(const GemmArgs& args);
void layer_norm_forward(const LayerNormForwardArgs& args);
void layer_norm_input_gradient(const LayerNormInputGradientArgs& args);
void layer_norm_weight_gradient(const LayerNormWeightGradientArgs& args);
void gelu_forward(const GeluForwardArgs& args);
void gelu_backward(const GeluBackwardArgs& args);
void rms_norm_forward(const RmsNormForwardArgs& args);
void rms_norm_input_gradient(const RmsNormInputGradientArgs& args);
void rms_norm_weight_gradient(const RmsNormWeightGradientArgs& args);
void swiglu_forward(const SwiGluForwardArgs& args);
void swiglu_backward(const SwiGluBackwardArgs& args);
void rotate(const RotateArgs& args);
void add_bias_residual(const AddBiasResidualArgs& args);
void dropout(const DropoutArgs& args);
void bias_dropout_residual(const BiasDropoutResidualArgs& args);
void bias_gradient(const BiasGradientArgs& args);
void accumulate(const AccumulateArgs& args);
void sum_parts(const SumPartsArgs& args);
void widen(const WidenArgs& args);
void embedding_forward(const EmbeddingForwardArgs& args);
void embedding_backward(const EmbeddingBackwardArgs& args);
void position_forward(const PositionForwardArgs& args);
void position_backward(const PositionBackwardArgs& args);
void split_heads(const SplitHeadsArgs& args);
void causal_softmax_forward(const CausalSoftmaxForwardArgs& args);
void causal_softmax_backward(const CausalSoftmaxBackwardArgs& args);
void flash_attention_forward(const FlashAttentionForwardArgs& args);
void flash_attention_backward(const FlashAttentionBackwardArgs& args);
void cross_entropy_max(const CrossEntropyMaxArgs& args);
void cross_entropy_sums(const CrossEntropySumsArgs& args);
void cross_entropy_gradient(const CrossEntropyGradientArgs& args);
void cross_entropy(const CrossEntropyArgs& args);
void sum(const SumArgs& args);
void sum_of_squares(const SumOfSquaresArgs& args);
void clip_factor(const ClipFactorArgs& args);
void adam_w(const AdamWArgs& args);
// What learning rate, decay and step of the arguments come to: one place for all devices, so all get the same bits.
AdamWFactors factors_of(const AdamWArgs& args);
// By a crew, or where there is none by this thread; not a bit depends on which. They throw nothing.
void adam_w_on_host(const AdamWOnHostArgs& args, device::Crew* crew);
void accumulate_on_host(const AccumulateArgs& args, device::Crew* crew);
void fill(const FillArgs& args);
void cast(const CastArgs& args);
void init_normal(const InitNormalArgs& args);

}  // namespace shardbook::kernels::host
