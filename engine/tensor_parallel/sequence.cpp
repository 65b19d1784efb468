#include "engine/tensor_parallel/sequence.hpp"

#include "engine/tensor_parallel/linear.hpp"
#include "engine/tensor_parallel/overlap.hpp"

namespace shardbook::tensor_parallel {

void AllRows::allocate(Context& ctx, std::int64_t width, int turns) {
  if (!x_ND.exists()) {
    const base::Shape shape{ctx.batch.tokens(), width};
    x_ND = model::allocate_activation(ctx, shape, "workspace.all_rows.x");
    y_ND = model::allocate_activation(ctx, shape, "workspace.all_rows.y");
    if (turns > 0) summands_TRD = model::allocate_activation(ctx, {turns, ctx.rows().size(), width}, "workspace.all_rows.summands");
  }
  SHARDBOOK_CHECK_EQ(x_ND.shape[1], width, "linears that gather rows into one place differ in width");
}

ColumnParallelFromRows::ColumnParallelFromRows(device::Device& device, TensorParallelGroup group, std::shared_ptr<AllRows> all,
                                               const model::LinearConfig& config, Start begin_sum)
    : weights_(config, linear_cut(group, model::LinearCut::Dim::outputs)), role_(model::name_of(config.role)), all_(std::move(all)),
      f_(device, group, config.name + ".gather_to_region", begin_sum) {}

//@ tensor_parallel.sequence.column: Gather the rows, then as ever; for backward gather them once more, ahead of it.
void ColumnParallelFromRows::forward(Call ctx, const Tensor& x_RI, const Tensor& y_NO, const Epilogue& epilogue) {
  program::Part part(ctx.device.recorder(), role_);
  f_.forward(ctx, x_RI, all_->x_ND);
  weights_.forward(ctx.compute, all_->x_ND, y_NO, epilogue);
}

void ColumnParallelFromRows::begin_backward(Call ctx, const Tensor& x_RI) {
  program::Part part(ctx.device.recorder(), role_);
  f_.start_again(ctx, x_RI, all_->x_ND);
}

void ColumnParallelFromRows::input_gradient(Call ctx, const Tensor& dy_NO, const Tensor& dx_RI, const Epilogue& epilogue) {
  program::Part part(ctx.device.recorder(), role_);
  model::refuse(epilogue);
  weights_.input_gradient(ctx.compute, dy_NO, all_->y_ND);
  f_.backward(ctx, all_->y_ND, dx_RI);
}

void ColumnParallelFromRows::await_input_gradient(Context& ctx) { f_.await_backward(ctx); }

void ColumnParallelFromRows::weight_gradient(Call ctx, const Tensor&, const Tensor& dy_NO) {
  f_.await_again(ctx);
  weights_.weight_gradient(ctx.compute, all_->x_ND, dy_NO, ctx.scratch);
}
//@end

RowParallelToRows::RowParallelToRows(device::Device& device, TensorParallelGroup group, std::shared_ptr<AllRows> all,
                                     const model::LinearConfig& config)
    : weights_(config, linear_cut(group, model::LinearCut::Dim::inputs)), role_(model::name_of(config.role)), all_(std::move(all)),
      g_(device, group, config.name + ".scatter_from_region") {
  SHARDBOOK_CHECK(!config.bias || config.late_bias, config.name, ": a row-parallel bias is added after the sum over ranks");
  if (config.bias) weights_.bias()->placement = {shard::summed_over(axis)};   // each rank adds it to its own rows
}

//@ tensor_parallel.sequence.row: Sum, and keep my rows; in backward gather the rows of dy, which both gradients read.
void RowParallelToRows::forward(Call ctx, const Tensor& x_NI, const Tensor& y_RO, const Epilogue& epilogue) {
  program::Part part(ctx.device.recorder(), role_);
  model::refuse(epilogue);
  weights_.forward(ctx.compute, x_NI, all_->y_ND);
  g_.forward(ctx, all_->y_ND, y_RO);
}

void RowParallelToRows::input_gradient(Call ctx, const Tensor& dy_RO, const Tensor& dx_NI, const Epilogue& epilogue) {
  program::Part part(ctx.device.recorder(), role_);
  g_.backward(ctx, dy_RO, all_->y_ND);
  weights_.input_gradient(ctx.compute, all_->y_ND, dx_NI, epilogue);
}

void RowParallelToRows::weight_gradient(Call ctx, const Tensor& x_NI, const Tensor& dy_RO) {
  weights_.weight_gradient(ctx.compute, x_NI, all_->y_ND, ctx.scratch, dy_RO);   // the bias was added to my rows alone
}
//@end

VocabParallelEmbeddingToRows::VocabParallelEmbeddingToRows(device::Device& device, TensorParallelGroup group, std::shared_ptr<AllRows> all,
                                                           const std::string& name, std::int64_t vocabulary, std::int64_t width)
    : table_(name, vocabulary, width, shard::part_of(vocabulary, group.communicator.size(), group.communicator.index())),
      all_(std::move(all)), g_(device, group, name + ".scatter_from_region") {
  table_.weight()->placement = {shard::cut_over(axis)};
}

void VocabParallelEmbeddingToRows::forward(Call ctx, const model::Batch& batch, const Tensor& x_RD) {
  program::Part part(ctx.device.recorder(), "token_embedding");
  table_.forward(ctx, batch, all_->y_ND);
  g_.forward(ctx, all_->y_ND, x_RD);
}

void VocabParallelEmbeddingToRows::weight_gradient(Call ctx, const model::Batch& batch, const Tensor& dx_RD) {
  program::Part part(ctx.device.recorder(), "token_embedding");
  g_.backward(ctx, dx_RD, all_->y_ND);
  table_.weight_gradient(ctx, batch, all_->y_ND);
}

namespace {

std::unique_ptr<model::Linear> linear_in_turns(device::Device& device, TensorParallelGroup group, const Pieces& pieces, const std::shared_ptr<AllRows>& all,
                                               const model::LinearConfig& config) {
  if (cuts_inputs(config.role)) return std::make_unique<RowParallelInPieces>(device, group, all, config);
  if (pieces.input_gradient_sum == InputGradientSum::awaited) return std::make_unique<Awaited<ColumnParallelInPieces>>(device, group, all, config);
  return std::make_unique<ColumnParallelInPieces>(device, group, all, config);
}

}  // namespace

//@ tensor_parallel.sequence.spec: Sequence parallelism, seen from the model: the same places once more, and fewer rows between them.
model::ModelSpec with_tokens_cut(model::ModelSpec spec, device::Device& device, TensorParallelGroup group, const Pieces& pieces) {
  const auto all = std::make_shared<AllRows>();
  spec.linear = [&device, group, pieces, all](const model::LinearConfig& config) -> std::unique_ptr<model::Linear> {
    if (pieces.in_turns) return linear_in_turns(device, group, pieces, all, config);
    if (cuts_inputs(config.role)) return std::make_unique<RowParallelToRows>(device, group, all, config);
    if (pieces.input_gradient_sum == InputGradientSum::awaited) return std::make_unique<Awaited<ColumnParallelFromRows>>(device, group, all, config);
    return std::make_unique<ColumnParallelFromRows>(device, group, all, config, begin_of(pieces));
  };
  spec.embedding = [&device, group, all](const std::string& name, std::int64_t vocabulary, std::int64_t width) {
    return std::make_unique<VocabParallelEmbeddingToRows>(device, group, all, name, vocabulary, width);
  };
  spec.cut = {group.communicator.size(), group.communicator.index()};
  return spec;
}
//@end

}  // namespace shardbook::tensor_parallel
