#include "engine/model/accumulate.hpp"

#include <algorithm>
#include <utility>

#include "engine/kernels/residual.hpp"

namespace shardbook::model {

UnfusedLinear::UnfusedLinear(std::unique_ptr<Linear> linear, const LinearConfig& config, std::shared_ptr<GradientApart> apart)
    : linear_(std::move(linear)), weight_(config.tied_weight != nullptr ? *config.tied_weight : *linear_->parameters().front()),
      role_(name_of(config.role)), apart_(std::move(apart)) {
  apart_->elements = std::max(apart_->elements, weight_.shape.elements());
}

void UnfusedLinear::allocate(Context& ctx) {
  linear_->allocate(ctx);
  if (apart_->gradient.exists()) return;
  apart_->gradient = tensor::allocate(ctx.device, {apart_->elements}, base::DType::f32, program::MemoryKind::gradient, "gradient_apart");
}

void UnfusedLinear::weight_gradient(Call ctx, const Tensor& x_NI, const Tensor& dy_NO) {
  if (!weight_.gradient_written) return linear_->weight_gradient(ctx, x_NI, dy_NO);
  // For its matmul the gradient lies elsewhere, and is the first one there
  const Tensor sum = std::exchange(weight_.gradient, apart_->gradient.slice(0, weight_.shape));
  weight_.gradient_written = false;
  linear_->weight_gradient(ctx, x_NI, dy_NO);
  const Tensor own = std::exchange(weight_.gradient, sum);
  program::Part part(ctx.device.recorder(), role_);
  kernels::accumulate(ctx.compute, own, sum);
}

ModelSpec with_gradients_apart(ModelSpec spec) {
  spec.linear = [make = spec.linear, apart = std::make_shared<GradientApart>()](const LinearConfig& config) {
    return std::make_unique<UnfusedLinear>(make(config), config, apart);
  };
  return spec;
}

}  // namespace shardbook::model
