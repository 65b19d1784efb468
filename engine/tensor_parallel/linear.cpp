#include "engine/tensor_parallel/linear.hpp"

namespace shardbook::tensor_parallel {

model::LinearCut linear_cut(const TensorParallelGroup& group, model::LinearCut::Dim dim) {
  return {dim, group.communicator.size(), group.communicator.index(), axis};
}

ColumnParallelLinear::ColumnParallelLinear(device::Device& device, TensorParallelGroup group, const LinearConfig& config, Start begin_sum)
    : weights_(config, linear_cut(group, model::LinearCut::Dim::outputs)), copy_(device, group, config.name + ".copy_to_region", begin_sum) {}

//@ tensor_parallel.column: A column-parallel linear: x is whole on each rank, y is cut; only dx is summed.
void ColumnParallelLinear::forward(Call ctx, const Tensor& x_NI, const Tensor& y_NO, const Epilogue& epilogue) {
  weights_.forward(ctx.compute, x_NI, y_NO, epilogue);
}

void ColumnParallelLinear::input_gradient(Call ctx, const Tensor& dy_NO, const Tensor& dx_NI, const Epilogue& epilogue) {
  model::refuse(epilogue);
  weights_.input_gradient(ctx.compute, dy_NO, dx_NI);
  copy_.backward(ctx, dx_NI);
}

void ColumnParallelLinear::await_input_gradient(Context& ctx) { copy_.await_backward(ctx); }

void ColumnParallelLinear::weight_gradient(Call ctx, const Tensor& x_NI, const Tensor& dy_NO) {
  weights_.weight_gradient(ctx.compute, x_NI, dy_NO, ctx.scratch);
}
//@end

RowParallelLinear::RowParallelLinear(device::Device& device, TensorParallelGroup group, const LinearConfig& config)
    : weights_(config, linear_cut(group, model::LinearCut::Dim::inputs)), reduce_(device, group, config.name + ".reduce_from_region") {
  SHARDBOOK_CHECK(!config.bias || config.late_bias, config.name, ": a row-parallel bias is added after the sum over ranks");
}

//@ tensor_parallel.row: A row-parallel linear: x is cut, each rank makes a summand of y, and y is summed.
void RowParallelLinear::forward(Call ctx, const Tensor& x_NI, const Tensor& y_NO, const Epilogue& epilogue) {
  model::refuse(epilogue);
  weights_.forward(ctx.compute, x_NI, y_NO);
  reduce_.forward(ctx, y_NO);
}

void RowParallelLinear::input_gradient(Call ctx, const Tensor& dy_NO, const Tensor& dx_NI, const Epilogue& epilogue) {
  weights_.input_gradient(ctx.compute, dy_NO, dx_NI, epilogue);
}

void RowParallelLinear::weight_gradient(Call ctx, const Tensor& x_NI, const Tensor& dy_NO) {
  weights_.weight_gradient(ctx.compute, x_NI, dy_NO, ctx.scratch);
}
//@end

}  // namespace shardbook::tensor_parallel
