// model/loss: cross entropy of the next token, in three passes over the logits, or in one kernel.
//
// maximum, then the sum of exponentials and the target's logit, then loss and gradient in place. The same
// passes serve a vocabulary that is cut over ranks: tensor_parallel/ puts a reduction between them. Where it is
// whole nothing stands between them, and one kernel gives the same bits from one reading (CrossEntropyInOne).
#pragma once

#include "engine/model/spec.hpp"

namespace shardbook::model {

// The passes, for the columns [vocab_begin, vocab_begin + V) that are here.
class CrossEntropyPasses {
 public:
  explicit CrossEntropyPasses(shard::Interval vocabulary) : vocabulary_(vocabulary) {}
  void allocate(Context& ctx, std::int64_t tokens);
  void maximum(Context& ctx, const Tensor& logit_NV);
  void sums(Context& ctx, const Tensor& logit_NV, const Batch& batch);
  void gradient(Context& ctx, const Tensor& logit_NV, const Batch& batch, float scale, const Tensor& loss, bool accumulate);
  // Of the tokens of these logits, which may be fewer than are allocated.
  Tensor row_max_N(const Tensor& logit_NV) const { return row_max_N_.slice(0, {logit_NV.shape[0]}); }
  Tensor sums_2N(const Tensor& logit_NV) const { return sums_2N_.slice(0, {2, logit_NV.shape[0]}); }

 private:
  shard::Interval vocabulary_;
  Tensor row_max_N_, sums_2N_, loss_N_;
};

class CrossEntropy final : public Loss {
 public:
  explicit CrossEntropy(std::int64_t vocabulary) : passes_({0, vocabulary}) {}
  void allocate(Context& ctx, std::int64_t tokens) override { passes_.allocate(ctx, tokens); }
  void forward_backward(Call ctx, const Tensor& logit_NV, const Batch& batch, float scale, const Tensor& loss,
                        bool accumulate) override;

 private:
  CrossEntropyPasses passes_;
};

// Keeps no maximum and no sums.
class CrossEntropyInOne final : public Loss {
 public:
  void allocate(Context& ctx, std::int64_t tokens) override;
  void forward_backward(Call ctx, const Tensor& logit_NV, const Batch& batch, float scale, const Tensor& loss,
                        bool accumulate) override;

 private:
  Tensor loss_N_;
};

}  // namespace shardbook::model
