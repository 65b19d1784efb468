#include "engine/model/norm.hpp"

#include "engine/kernels/layer_norm.hpp"
#include "engine/kernels/rms_norm.hpp"

namespace shardbook::model {

LayerNorm::LayerNorm(const std::string& name, std::int64_t width, float epsilon) : epsilon_(epsilon) {
  const base::Shape shape{width};
  weight_ = {name + ".weight", shape, {shard::whole(shape)}, shape, {}, false, {1, 0}};
  bias_ = {name + ".bias", shape, {shard::whole(shape)}, shape, {}, false, {}};
}

Kept LayerNorm::keep(Context& ctx, const std::string& name) {
  return {{allocate_statistic(ctx, {ctx.rows().size()}, name + ".mean"),
           allocate_statistic(ctx, {ctx.rows().size()}, name + ".rstd")}};
}

void LayerNorm::forward(Context& ctx, const Tensor& x_ND, const Tensor& y_ND, Kept& kept) {
  program::Part part(ctx.device.recorder(), "norm");
  kernels::layer_norm_forward(ctx.compute, x_ND, weight_.value, bias_.value, epsilon_, y_ND,
                              kept.tensors[0], kept.tensors[1]);
}

void LayerNorm::input_gradient(Context& ctx, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& residual_gradient_ND,
                               const Tensor& dx_ND, Kept& kept) {
  program::Part part(ctx.device.recorder(), "norm");
  kernels::layer_norm_input_gradient(ctx.compute, dy_ND, x_ND, weight_.value, kept.tensors[0], kept.tensors[1],
                                     residual_gradient_ND, dx_ND);
}

void LayerNorm::weight_gradient(Context& ctx, const Tensor& dy_ND, const Tensor& x_ND, Kept& kept) {
  program::Part part(ctx.device.recorder(), "norm");
  const bool accumulate = weight_.accumulate_now();
  bias_.accumulate_now();
  kernels::layer_norm_weight_gradient(ctx.compute, dy_ND, x_ND, kept.tensors[0], kept.tensors[1], weight_.gradient,
                                      bias_.gradient, ctx.scratch, accumulate);
}

void LayerNormInOnePass::input_gradient(Context& ctx, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& residual_gradient_ND,
                                        const Tensor& dx_ND, Kept& kept) {
  program::Part part(ctx.device.recorder(), "norm");
  const bool accumulate = weight_.accumulate_now();
  bias_.accumulate_now();
  kernels::layer_norm_both_gradients(ctx.compute, dy_ND, x_ND, weight_.value, kept.tensors[0], kept.tensors[1], residual_gradient_ND, dx_ND,
                                     weight_.gradient, bias_.gradient, ctx.scratch, accumulate);
}

RmsNorm::RmsNorm(const std::string& name, std::int64_t width, float epsilon) : epsilon_(epsilon) {
  const base::Shape shape{width};
  weight_ = {name + ".weight", shape, {shard::whole(shape)}, shape, {}, false, {1, 0}};
}

Kept RmsNorm::keep(Context& ctx, const std::string& name) {
  return {{allocate_statistic(ctx, {ctx.rows().size()}, name + ".rstd")}};
}

void RmsNorm::forward(Context& ctx, const Tensor& x_ND, const Tensor& y_ND, Kept& kept) {
  program::Part part(ctx.device.recorder(), "norm");
  kernels::rms_norm_forward(ctx.compute, x_ND, weight_.value, epsilon_, y_ND, kept.tensors[0]);
}

void RmsNorm::input_gradient(Context& ctx, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& residual_gradient_ND,
                             const Tensor& dx_ND, Kept& kept) {
  program::Part part(ctx.device.recorder(), "norm");
  kernels::rms_norm_input_gradient(ctx.compute, dy_ND, x_ND, weight_.value, kept.tensors[0], residual_gradient_ND, dx_ND);
}

void RmsNorm::weight_gradient(Context& ctx, const Tensor& dy_ND, const Tensor& x_ND, Kept& kept) {
  program::Part part(ctx.device.recorder(), "norm");
  kernels::rms_norm_weight_gradient(ctx.compute, dy_ND, x_ND, kept.tensors[0], weight_.gradient, ctx.scratch,
                                    weight_.accumulate_now());
}

}  // namespace shardbook::model
