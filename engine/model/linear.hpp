// model/linear: the dense linear, and what its parallel kin share.
//
// A LinearWeights is the weight and bias of which this rank holds some rows or columns. Dense holds all of
// both; tensor_parallel::ColumnParallelLinear holds rows of W (outputs), RowParallelLinear columns.
#pragma once

#include "engine/model/spec.hpp"

namespace shardbook::model {

// Which of W's rows (outputs, per section) or columns (inputs) are here.
struct LinearCut {
  enum class Dim : std::uint8_t { none, outputs, inputs } dim = Dim::none;
  int parts = 1;
  int part = 0;
  std::string_view axis = {};  // of the mesh, over which it is cut; a literal
};

// The parameters of a linear and its three matmuls, with no communication.
class LinearWeights {
 public:
  LinearWeights(const LinearConfig& config, LinearCut cut);

  std::int64_t inputs() const { return inputs_; }
  std::int64_t outputs() const { return outputs_; }
  bool late_bias() const { return config_.bias && config_.late_bias; }
  Parameter* bias() { return config_.bias ? &bias_ : nullptr; }
  Parameter& weight() { return *weight_; }
  std::vector<Parameter*> parameters();

  // y = x Wᵀ (+ b unless late).
  void forward(device::Lane lane, const Tensor& x_NI, const Tensor& y_NO, const Epilogue& epilogue = {});
  void input_gradient(device::Lane lane, const Tensor& dy_NO, const Tensor& dx_NI, const Epilogue& epilogue = {});
  // The bias' gradient is summed over the rows of `bias_dy_RO`; those of dy_NO where it is absent.
  void weight_gradient(device::Lane lane, const Tensor& x_NI, const Tensor& dy_NO, const Tensor& scratch, const Tensor& bias_dy_RO = {});

 private:
  LinearConfig config_;
  std::int64_t inputs_ = 0, outputs_ = 0;
  Parameter own_weight_;
  Parameter bias_;
  Parameter* weight_ = &own_weight_;
};

// Of a linear whose result is still to be summed over ranks. Throws base::Failure if there is anything to do.
void refuse(const Epilogue& epilogue);

class DenseLinear final : public Linear {
 public:
  explicit DenseLinear(const LinearConfig& config) : weights_(config, {}) {}
  std::int64_t inputs() const override { return weights_.inputs(); }
  std::int64_t outputs() const override { return weights_.outputs(); }
  void forward(Call ctx, const Tensor& x_NI, const Tensor& y_NO, const Epilogue& epilogue) override { weights_.forward(ctx.compute, x_NI, y_NO, epilogue); }
  void input_gradient(Call ctx, const Tensor& dy_NO, const Tensor& dx_NI, const Epilogue& epilogue) override { weights_.input_gradient(ctx.compute, dy_NO, dx_NI, epilogue); }
  void weight_gradient(Call ctx, const Tensor& x_NI, const Tensor& dy_NO) override { weights_.weight_gradient(ctx.compute, x_NI, dy_NO, ctx.scratch); }
  Parameter* late_bias() override { return weights_.late_bias() ? weights_.bias() : nullptr; }
  std::vector<Parameter*> parameters() override { return weights_.parameters(); }

 private:
  LinearWeights weights_;
};

}  // namespace shardbook::model
