// model/norm: LayerNorm (Ba, Kiros and Hinton 2016) and RmsNorm (Zhang and Sennrich 2019), whole on every rank.
//
// Under tensor parallelism its input is the same on every tp rank, and so is its gradient: nothing is
// reduced over tp. With tokens cut (Context::rows) it sees its own rows only, and its weight's gradient is a summand.
//
// Backward reads dy and x twice, once for each gradient, or once for both (LayerNormInOnePass).
#pragma once

#include "engine/model/spec.hpp"

namespace shardbook::model {

class LayerNorm : public Norm {
 public:
  LayerNorm(const std::string& name, std::int64_t width, float epsilon);
  Kept keep(Context& ctx, const std::string& name) override;  // mean_N, rstd_N
  void forward(Context& ctx, const Tensor& x_ND, const Tensor& y_ND, Kept& kept) override;
  void input_gradient(Context& ctx, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& residual_gradient_ND,
                      const Tensor& dx_ND, Kept& kept) override;
  void weight_gradient(Context& ctx, const Tensor& dy_ND, const Tensor& x_ND, Kept& kept) override;
  std::vector<Parameter*> parameters() override { return {&weight_, &bias_}; }

 protected:
  Parameter weight_, bias_;

 private:
  float epsilon_;
};

// A block asks for the weight's gradient and then for the input's: the second makes both.
class LayerNormInOnePass final : public LayerNorm {
 public:
  using LayerNorm::LayerNorm;
  void input_gradient(Context& ctx, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& residual_gradient_ND,
                      const Tensor& dx_ND, Kept& kept) override;
  void weight_gradient(Context&, const Tensor&, const Tensor&, Kept&) override {}
};

class RmsNorm final : public Norm {
 public:
  RmsNorm(const std::string& name, std::int64_t width, float epsilon);
  Kept keep(Context& ctx, const std::string& name) override;  // rstd_N
  void forward(Context& ctx, const Tensor& x_ND, const Tensor& y_ND, Kept& kept) override;
  void input_gradient(Context& ctx, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& residual_gradient_ND,
                      const Tensor& dx_ND, Kept& kept) override;
  void weight_gradient(Context& ctx, const Tensor& dy_ND, const Tensor& x_ND, Kept& kept) override;
  std::vector<Parameter*> parameters() override { return {&weight_}; }

 private:
  Parameter weight_;
  float epsilon_;
};

}  // namespace shardbook::model
