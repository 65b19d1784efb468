// model/accumulate: who adds a micro-batch's weight gradient to the sum of those before it?
//
// The matmul itself, if it is told to: it reads the sum, adds its own and writes it back, once. Autograd knows no sum: it
// makes the gradient in a place of its own, and a second kernel adds it. That reads and writes twelve bytes a weight more, for
// each micro-batch but the first, and needs room for the largest weight.
//
// Sources: NVIDIA/Megatron-LM @d98e8a64, megatron/core/tensor_parallel/layers.py (gradient_accumulation_fusion);
// PyTorch's AccumulateGrad, torch/csrc/autograd/functions/accumulate_grad.h.
#pragma once

#include "engine/model/spec.hpp"

namespace shardbook::model {

// The room that all linears share: f32, as large as the largest weight of this rank. All linears are made before one is
// allocated.
struct GradientApart {
  std::int64_t elements = 0;
  Tensor gradient;
};

// Any linear, whose weight gradient is made apart and then added. A bias' gradient is not: its kernel adds.
class UnfusedLinear final : public Linear {
 public:
  UnfusedLinear(std::unique_ptr<Linear> linear, const LinearConfig& config, std::shared_ptr<GradientApart> apart);
  std::int64_t inputs() const override { return linear_->inputs(); }
  std::int64_t outputs() const override { return linear_->outputs(); }
  void allocate(Context& ctx) override;
  void forward(Call ctx, const Tensor& x_NI, const Tensor& y_NO, const Epilogue& epilogue) override { linear_->forward(ctx, x_NI, y_NO, epilogue); }
  void begin_backward(Call ctx, const Tensor& x_NI) override { linear_->begin_backward(ctx, x_NI); }
  void input_gradient(Call ctx, const Tensor& dy_NO, const Tensor& dx_NI, const Epilogue& epilogue) override { linear_->input_gradient(ctx, dy_NO, dx_NI, epilogue); }
  void await_input_gradient(Context& ctx) override { linear_->await_input_gradient(ctx); }
  void weight_gradient(Call ctx, const Tensor& x_NI, const Tensor& dy_NO) override;
  Parameter* late_bias() override { return linear_->late_bias(); }
  std::vector<Parameter*> parameters() override { return linear_->parameters(); }

 private:
  std::unique_ptr<Linear> linear_;
  Parameter& weight_;
  const char* role_;
  std::shared_ptr<GradientApart> apart_;
};

// The same pieces with weight gradients made apart. Of the spec that is used, so after what cuts its linears.
ModelSpec with_gradients_apart(ModelSpec spec);

}  // namespace shardbook::model
