#include "engine/tensor_parallel/vocabulary.hpp"

namespace shardbook::tensor_parallel {

namespace {

shard::Interval my_part(const TensorParallelGroup& group, std::int64_t vocabulary) {
  return shard::part_of(vocabulary, group.communicator.size(), group.communicator.index());
}

}  // namespace

VocabParallelEmbedding::VocabParallelEmbedding(device::Device& device, TensorParallelGroup group, const std::string& name,
                                               std::int64_t vocabulary, std::int64_t width)
    : rows_(name, vocabulary, width, my_part(group, vocabulary)), reduce_(device, group, name + ".reduce_from_region") {
  rows_.weight()->placement = {shard::cut_over(axis)};
}

//@ tensor_parallel.embedding: Look up what is mine, zero the rest, sum over ranks.
void VocabParallelEmbedding::forward(Call ctx, const model::Batch& batch, const Tensor& x_ND) {
  rows_.forward(ctx, batch, x_ND);
  program::Part part(ctx.device.recorder(), "token_embedding");
  reduce_.forward(ctx, x_ND);
}
//@end

VocabParallelCrossEntropy::VocabParallelCrossEntropy(device::Device& device, TensorParallelGroup group, std::int64_t vocabulary)
    : passes_(my_part(group, vocabulary)), maximum_(device, group, "loss.maximum"), sums_(device, group, "loss.sums") {}

//@ tensor_parallel.cross_entropy: The loss of a cut vocabulary, without gathering a logit.
void VocabParallelCrossEntropy::forward_backward(Call ctx, const Tensor& logit_NV, const model::Batch& batch, float scale,
                                                 const Tensor& loss, bool accumulate) {
  program::Part part(ctx.device.recorder(), "cross_entropy");
  // The largest logit of each token, over all columns
  passes_.maximum(ctx, logit_NV);
  maximum_.start(ctx, passes_.row_max_N(logit_NV), comm::Reduction::max);
  maximum_.await(ctx);
  // Its sum of exponentials and its target's logit, which one rank has: both in one collective
  passes_.sums(ctx, logit_NV, batch);
  sums_.start(ctx, passes_.sums_2N(logit_NV));
  sums_.await(ctx);
  // Loss, and each rank's columns of the gradient
  passes_.gradient(ctx, logit_NV, batch, scale, loss, accumulate);
}
//@end

}  // namespace shardbook::tensor_parallel
