// model/loss: cross entropy of the next token, in three passes over the logits.
//
// maximum, then the sum of exponentials and the target's logit, then loss and gradient in place. The same
// passes serve a vocabulary that is cut over ranks: tensor_parallel/ puts a reduction between them. Where it is whole, all
// three may be one kernel (CrossEntropyInOne).
#pragma once

#include "engine/model/spec.hpp"

namespace shardbook::model {

// The passes, for the columns [vocab_begin, vocab_begin + V) that are here.
class CrossEntropyPasses {
 public:
  explicit CrossEntropyPasses(shard::Interval vocabulary) : vocabulary_(vocabulary) {}
  void allocate(Context& ctx);
  void maximum(Context& ctx, const Tensor& logit_NV);
  void sums(Context& ctx, const Tensor& logit_NV, const Batch& batch);
  void gradient(Context& ctx, const Tensor& logit_NV, const Batch& batch, float scale, const Tensor& loss, bool accumulate);
  const Tensor& row_max_N() const { return row_max_N_; }
  const Tensor& sums_2N() const { return sums_2N_; }

 private:
  shard::Interval vocabulary_;
  Tensor row_max_N_, sums_2N_, loss_N_;
};

class CrossEntropy final : public Loss {
 public:
  explicit CrossEntropy(std::int64_t vocabulary) : passes_({0, vocabulary}) {}
  void allocate(Context& ctx) override { passes_.allocate(ctx); }
  void forward_backward(Call ctx, const Tensor& logit_NV, const Batch& batch, float scale, const Tensor& loss,
                        bool accumulate) override;

 private:
  CrossEntropyPasses passes_;
};

class CrossEntropyInOne final : public Loss {
 public:
  void allocate(Context& ctx) override;
  void forward_backward(Call ctx, const Tensor& logit_NV, const Batch& batch, float scale, const Tensor& loss,
                        bool accumulate) override;

 private:
  Tensor loss_N_;
};

}  // namespace shardbook::model
