// tensor_parallel/linear: how is one matmul cut across ranks?
//
// W is [O, I]. Cut its outputs (rows), and each rank makes some columns of y from all of x: nothing is
// exchanged in forward. Cut its inputs (columns), and each rank makes a summand of all of y from some
// columns of x. One after the other, the first one's y is cut just as the second one's x must be, so a
// pair needs one sum forward and one backward:
//
//   x ──f──► ColumnParallelLinear ──► (heads, GELU: each rank on its own) ──► RowParallelLinear ──g──► y
//
// Biases: a column-parallel bias is cut with its outputs and added in the matmul. A row-parallel bias is
// whole on every rank and left to the caller, since added before the sum it would count once a rank.
//
// Sources: Shoeybi et al. 2019, "Megatron-LM", §3; NVIDIA/Megatron-LM @d98e8a64,
// megatron/core/tensor_parallel/layers.py (ColumnParallelLinear, RowParallelLinear).
#pragma once

#include "engine/model/linear.hpp"
#include "engine/tensor_parallel/regions.hpp"

namespace shardbook::tensor_parallel {

using model::LinearConfig;
using model::Parameter;

// This rank's part of a matmul whose outputs, or inputs, are cut over the group.
model::LinearCut linear_cut(const TensorParallelGroup& group, model::LinearCut::Dim dim);

class ColumnParallelLinear : public model::Linear {
 public:
  ColumnParallelLinear(device::Device& device, TensorParallelGroup group, const LinearConfig& config, Start begin_sum = Start::as_it_comes);
  std::int64_t inputs() const override { return weights_.inputs(); }
  std::int64_t outputs() const override { return weights_.outputs(); }
  void forward(Call ctx, const Tensor& x_NI, const Tensor& y_NO, const Epilogue& epilogue) override;
  // dx is summed over ranks while the weight gradient runs, if it is let in, for which it may have a head start: nobody waits for it.
  void input_gradient(Call ctx, const Tensor& dy_NO, const Tensor& dx_NI, const Epilogue& epilogue) override;
  void await_input_gradient(Context& ctx) override;
  void weight_gradient(Call ctx, const Tensor& x_NI, const Tensor& dy_NO) override;
  std::vector<Parameter*> parameters() override { return weights_.parameters(); }

 private:
  model::LinearWeights weights_;
  CopyToRegion copy_;
};

// A column-parallel linear for which compute stands still until dx is summed: what the order above is for.
template <class Column>
class Awaited final : public Column {
 public:
  using Column::Column;
  void input_gradient(Call ctx, const Tensor& dy_NO, const Tensor& dx_NI, const Epilogue& epilogue) override {
    Column::input_gradient(ctx, dy_NO, dx_NI, epilogue);
    Column::await_input_gradient(ctx);
  }
  void await_input_gradient(Context&) override {}
};

class RowParallelLinear final : public model::Linear {
 public:
  // REQUIRES: a bias is late.
  RowParallelLinear(device::Device& device, TensorParallelGroup group, const LinearConfig& config);
  std::int64_t inputs() const override { return weights_.inputs(); }
  std::int64_t outputs() const override { return weights_.outputs(); }
  void forward(Call ctx, const Tensor& x_NI, const Tensor& y_NO, const Epilogue& epilogue) override;
  void input_gradient(Call ctx, const Tensor& dy_NO, const Tensor& dx_NI, const Epilogue& epilogue) override;
  void weight_gradient(Call ctx, const Tensor& x_NI, const Tensor& dy_NO) override;
  Parameter* late_bias() override { return weights_.late_bias() ? weights_.bias() : nullptr; }
  std::vector<Parameter*> parameters() override { return weights_.parameters(); }

 private:
  model::LinearWeights weights_;
  ReduceFromRegion reduce_;
};

}  // namespace shardbook::tensor_parallel
