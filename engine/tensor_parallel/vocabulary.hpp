// tensor_parallel/vocabulary: a vocabulary that is cut over ranks, at both ends of the network.
//
// Embedding: a rank holds some rows of the table. It looks up the tokens that are its own, leaves zero rows
// for the others, and the sum over ranks is the whole: exact, since one rank contributes to each row.
// Loss: a rank holds some columns of the logits, which are never gathered. Three numbers a token are
// reduced: the maximum, the sum of exponentials and the target's logit, in two collectives.
//
// Source: NVIDIA/Megatron-LM @d98e8a64, megatron/core/tensor_parallel/layers.py (VocabParallelEmbedding),
// cross_entropy.py; megatron/core/fusions/fused_cross_entropy.py for the pair in one call.
#pragma once

#include "engine/model/embedding.hpp"
#include "engine/model/loss.hpp"
#include "engine/tensor_parallel/regions.hpp"

namespace shardbook::tensor_parallel {

class VocabParallelEmbedding final : public model::TokenEmbedding {
 public:
  VocabParallelEmbedding(device::Device& device, TensorParallelGroup group, const std::string& name,
                         std::int64_t vocabulary, std::int64_t width);
  shard::Interval vocabulary() const override { return rows_.vocabulary(); }
  void forward(Call ctx, const model::Batch& batch, const Tensor& x_ND) override;
  void weight_gradient(Call ctx, const model::Batch& batch, const Tensor& dx_ND) override { rows_.weight_gradient(ctx, batch, dx_ND); }
  model::Parameter* weight() override { return rows_.weight(); }

 private:
  model::DenseEmbedding rows_;
  ReduceFromRegion reduce_;
};

class VocabParallelCrossEntropy final : public model::Loss {
 public:
  VocabParallelCrossEntropy(device::Device& device, TensorParallelGroup group, std::int64_t vocabulary);
  void allocate(Context& ctx, std::int64_t tokens) override { passes_.allocate(ctx, tokens); }
  void forward_backward(Call ctx, const Tensor& logit_NV, const model::Batch& batch, float scale, const Tensor& loss,
                        bool accumulate) override;

 private:
  model::CrossEntropyPasses passes_;
  SumOverRanks maximum_, sums_;
};

}  // namespace shardbook::tensor_parallel
