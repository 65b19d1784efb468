// model/dropout: what is dropped in training, and where?
//
// In three places, as in GPT-2 and Megatron: the sum of the embeddings, each branch before it joins the residual (both at
// `hidden` rate), and the probabilities of attention. Each is a piece with a twin that drops nothing, so a block has no
// case for it.
//
// No mask and no state of a generator is kept. The fate of an element is drawn by (seed, step, name of the place, element
// of the whole tensor), where "whole" is over all ranks: the rows of the global batch, all heads of the layer. So
//   - what all tp ranks hold alike, they drop alike;
//   - what they cut, each draws as its part of the whole: other numbers a rank;
//   - ranks that split the batch draw other numbers, and the same again under another layout;
//   - what is computed again drops what it dropped the first time.
// A generator with a state needs a stream of its own for each of these, and someone who saves and restores it.
//
// Sources: Srivastava et al. 2014; NVIDIA/Megatron-LM @d98e8a64 megatron/core/fusions/fused_bias_dropout.py (bias, dropout
// and residual in one kernel), transformer/dot_product_attention.py, tensor_parallel/random.py (the streams).
#pragma once

#include "engine/kernels/dropout.hpp"
#include "engine/model/attention.hpp"
#include "engine/model/spec.hpp"

namespace shardbook::model {

// How often an element is dropped.
struct DropoutRates {
  double hidden = 0;      // of the embedding, and of branches before they join the residual
  double attention = 0;   // of probabilities
};

// `spec` with pieces that drop, where a rate is not 0.
ModelSpec with_dropout(ModelSpec spec, const DropoutRates& rates);

// out = residual + branch + bias: nothing is dropped, so the gradient of the branch is that of out.
class WholeResidual final : public ResidualAdd {
 public:
  void forward(Context& ctx, const Tensor& residual_RD, const Tensor& branch_RD, const Tensor& bias_D, const Tensor& out_RD) override;
  Tensor backward(Context&, const Tensor& dout_RD, const Tensor&) override { return dout_RD; }
};

class DroppedResidual final : public ResidualAdd {
 public:
  DroppedResidual(const std::string& name, double rate);
  void forward(Context& ctx, const Tensor& residual_RD, const Tensor& branch_RD, const Tensor& bias_D, const Tensor& out_RD) override;
  Tensor backward(Context& ctx, const Tensor& dout_RD, const Tensor& into_RD) override;

 private:
  std::uint32_t place_;
  double rate_;
};

class NoDropout final : public Dropout {
 public:
  void forward(Context&, const Tensor&) override {}
  void backward(Context&, const Tensor&) override {}
};

// Of rows that are here of all tokens of the global batch.
class RowDropout final : public Dropout {
 public:
  RowDropout(const std::string& name, double rate);
  void forward(Context& ctx, const Tensor& x_RD) override;
  void backward(Context& ctx, const Tensor& dx_RD) override;

 private:
  std::uint32_t place_;
  double rate_;
};

// Which probabilities are dropped: those of the heads that are here, as a part of those of all heads of the layer.
class ProbabilityMask {
 public:
  ProbabilityMask(const AttentionConfig& config, double rate);
  kernels::DropoutMask operator()(const Context& ctx) const;

 private:
  std::uint32_t place_;
  double rate_;
  std::int64_t heads_, first_head_, all_heads_;
};

// p · v with some of p dropped, where the square of p is whole.
class DroppedValues final : public WeightedValues {
 public:
  explicit DroppedValues(ProbabilityMask mask) : mask_(mask) {}
  void forward(Context& ctx, const Tensor& p_BHSS, const Tensor& v_BHSK, const Tensor& square_BHSS, const Tensor& out_BHSK) override;
  void backward(Context& ctx, const Tensor& p_BHSS, const Tensor& v_BHSK, const Tensor& dout_BHSK, const Tensor& dp_BHSS,
                const Tensor& dv_BHSK) override;

 private:
  ProbabilityMask mask_;
};

}  // namespace shardbook::model
