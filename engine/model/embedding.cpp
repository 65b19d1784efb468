#include "engine/model/embedding.hpp"

#include "engine/kernels/embedding.hpp"

namespace shardbook::model {

DenseEmbedding::DenseEmbedding(const std::string& name, std::int64_t vocabulary, std::int64_t width, shard::Interval rows)
    : rows_(rows) {
  const base::Shape global{vocabulary, width};
  weight_ = {name + ".weight", global, {shard::slice(global, 0, rows)}, {rows.size(), width},
             {}, true, {0, 0.02f}};
}

void DenseEmbedding::forward(Call ctx, const Batch& batch, const Tensor& x_ND) {
  program::Part part(ctx.device.recorder(), "token_embedding");
  kernels::embedding_forward(ctx.compute, batch.token_N, weight_.value, rows_.begin, x_ND);
}

void DenseEmbedding::weight_gradient(Call ctx, const Batch& batch, const Tensor& dx_ND) {
  program::Part part(ctx.device.recorder(), "token_embedding");
  kernels::embedding_backward(ctx.compute, dx_ND, batch.segments, rows_.begin, weight_.gradient,
                              weight_.accumulate_now());
}

PositionEmbedding::PositionEmbedding(const std::string& name, std::int64_t positions, std::int64_t width) {
  const base::Shape shape{positions, width};
  weight_ = {name + ".weight", shape, {shard::whole(shape)}, shape, {}, true, {0, 0.01f}};
}

void PositionEmbedding::forward(Context& ctx, const Tensor& x_ND) {
  program::Part part(ctx.device.recorder(), "position_embedding");
  kernels::position_forward(ctx.compute, weight_.value.rows(0, ctx.batch.positions), x_ND, ctx.rows().begin);
}

void PositionEmbedding::weight_gradient(Context& ctx, const Tensor& dx_ND) {
  program::Part part(ctx.device.recorder(), "position_embedding");
  kernels::position_backward(ctx.compute, dx_ND, weight_.gradient, weight_.accumulate_now(), ctx.rows().begin);
}

}  // namespace shardbook::model
