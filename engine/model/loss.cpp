#include "engine/model/loss.hpp"

#include "engine/kernels/cross_entropy.hpp"
#include "engine/kernels/reduce.hpp"

namespace shardbook::model {

void CrossEntropyPasses::allocate(Context& ctx, std::int64_t tokens) {
  const std::int64_t N = tokens;
  row_max_N_ = allocate_statistic(ctx, {N}, "loss.row_max");
  sums_2N_ = allocate_statistic(ctx, {2, N}, "loss.sums");
  loss_N_ = allocate_statistic(ctx, {N}, "loss.per_token");
}

void CrossEntropyPasses::maximum(Context& ctx, const Tensor& logit_NV) {
  kernels::cross_entropy_max(ctx.compute, logit_NV, row_max_N(logit_NV));
}

void CrossEntropyPasses::sums(Context& ctx, const Tensor& logit_NV, const Batch& batch) {
  kernels::cross_entropy_sums(ctx.compute, logit_NV, row_max_N(logit_NV), batch.target_N, vocabulary_.begin, sums_2N(logit_NV));
}

void CrossEntropyPasses::gradient(Context& ctx, const Tensor& logit_NV, const Batch& batch, float scale,
                                  const Tensor& loss, bool accumulate) {
  const Tensor loss_N = loss_N_.slice(0, {logit_NV.shape[0]});
  kernels::cross_entropy_gradient(ctx.compute, logit_NV, row_max_N(logit_NV), sums_2N(logit_NV), batch.target_N,
                                  vocabulary_.begin, scale, loss_N);
  kernels::sum(ctx.compute, loss_N, scale, loss, accumulate);
}

void CrossEntropy::forward_backward(Call ctx, const Tensor& logit_NV, const Batch& batch, float scale,
                                    const Tensor& loss, bool accumulate) {
  program::Part part(ctx.device.recorder(), "cross_entropy");
  passes_.maximum(ctx, logit_NV);
  passes_.sums(ctx, logit_NV, batch);
  passes_.gradient(ctx, logit_NV, batch, scale, loss, accumulate);
}

void CrossEntropyInOne::allocate(Context& ctx, std::int64_t tokens) { loss_N_ = allocate_statistic(ctx, {tokens}, "loss.per_token"); }

void CrossEntropyInOne::forward_backward(Call ctx, const Tensor& logit_NV, const Batch& batch, float scale,
                                         const Tensor& loss, bool accumulate) {
  program::Part part(ctx.device.recorder(), "cross_entropy");
  const Tensor loss_N = loss_N_.slice(0, {logit_NV.shape[0]});
  kernels::cross_entropy(ctx.compute, logit_NV, batch.target_N, scale, loss_N);
  kernels::sum(ctx.compute, loss_N, scale, loss, accumulate);
}

}  // namespace shardbook::model
