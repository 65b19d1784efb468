#include "engine/kernels/rms_norm.hpp"

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/expect.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels {

using program::OpDesc;
using program::OpKind;

void rms_norm_forward(Lane lane, const Tensor& x_ND, const Tensor& weight_D, float epsilon, const Tensor& y_ND,
                      const Tensor& rstd_N) {
  static constexpr const char* op = "rms_norm_forward";
  expect_matrix(op, "x_ND", x_ND);
  const std::int64_t tokens = x_ND.shape[0], width = x_ND.shape[1];
  expect_elements(op, "weight_D", weight_D, width);
  expect_shape(op, "y_ND", y_ND, x_ND.shape);
  expect_stat(op, "rstd_N", rstd_N, tokens);
  expect_same_type(op, "weight_D", weight_D, x_ND);
  expect_same_type(op, "y_ND", y_ND, x_ND);

  OpDesc desc(op, OpKind::reduction, x_ND.nominal);
  desc.flops(4 * x_ND.elements())  // square, sum; scale, weight
      .reads(x_ND.use()).reads(weight_D.use()).writes(y_ND.use()).writes(rstd_N.use());
  const RmsNormForwardArgs args{x_ND.data, weight_D.data, y_ND.data, rstd_N.data, tokens, width, epsilon, x_ND.storage};
  lane.device().launch(lane, desc, args, &host::rms_norm_forward, &cuda::rms_norm_forward);
}

void rms_norm_input_gradient(Lane lane, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& weight_D,
                             const Tensor& rstd_N, const Tensor& residual_gradient_ND, const Tensor& dx_ND) {
  static constexpr const char* op = "rms_norm_input_gradient";
  expect_matrix(op, "x_ND", x_ND);
  const std::int64_t tokens = x_ND.shape[0], width = x_ND.shape[1];
  expect_shape(op, "dy_ND", dy_ND, x_ND.shape);
  expect_shape(op, "dx_ND", dx_ND, x_ND.shape);
  expect_elements(op, "weight_D", weight_D, width);
  expect_stat(op, "rstd_N", rstd_N, tokens);
  expect_same_type(op, "dy_ND", dy_ND, x_ND);
  expect_same_type(op, "dx_ND", dx_ND, x_ND);
  expect_same_type(op, "weight_D", weight_D, x_ND);

  OpDesc desc(op, OpKind::reduction, x_ND.nominal);
  desc.flops(8 * x_ND.elements())  // x̂, g, one mean, and the combination
      .reads(dy_ND.use()).reads(x_ND.use()).reads(weight_D.use()).reads(rstd_N.use()).writes(dx_ND.use());
  if (residual_gradient_ND.exists()) {
    expect_shape(op, "residual_gradient_ND", residual_gradient_ND, x_ND.shape);
    expect_same_type(op, "residual_gradient_ND", residual_gradient_ND, x_ND);
    desc.reads(residual_gradient_ND.use());
  }
  const RmsNormInputGradientArgs args{dy_ND.data, x_ND.data, weight_D.data, rstd_N.data, residual_gradient_ND.data,
                                      dx_ND.data, tokens, width, x_ND.storage};
  lane.device().launch(lane, desc, args, &host::rms_norm_input_gradient, &cuda::rms_norm_input_gradient);
}

void rms_norm_weight_gradient(Lane lane, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& rstd_N,
                              const Tensor& dweight_D, const Tensor& scratch, bool accumulate) {
  static constexpr const char* op = "rms_norm_weight_gradient";
  expect_matrix(op, "x_ND", x_ND);
  const std::int64_t tokens = x_ND.shape[0], width = x_ND.shape[1];
  expect_shape(op, "dy_ND", dy_ND, x_ND.shape);
  expect_same_type(op, "dy_ND", dy_ND, x_ND);
  expect_stat(op, "rstd_N", rstd_N, tokens);
  expect_stat(op, "dweight_D", dweight_D, width);
  expect_nominal(op, "scratch", scratch, base::DType::f32);
  const std::int64_t partial_sums = rms_norm_weight_gradient_scratch(tokens, width);
  expect_at_least(op, "scratch", scratch, partial_sums);

  OpDesc desc(op, OpKind::reduction, x_ND.nominal);
  desc.flops(3 * x_ND.elements())  // x̂, product, sum
      .reads(dy_ND.use()).reads(x_ND.use()).reads(rstd_N.use())
      .writes(scratch.use(), partial_sums * base::size_of(scratch.nominal));
  if (accumulate) desc.updates(dweight_D.use());
  else desc.writes(dweight_D.use());
  const RmsNormWeightGradientArgs args{dy_ND.data, x_ND.data, rstd_N.data, dweight_D.data, scratch.data,
                                       tokens, width, accumulate, x_ND.storage};
  lane.device().launch(lane, desc, args, &host::rms_norm_weight_gradient, &cuda::rms_norm_weight_gradient);
}

std::int64_t rms_norm_weight_gradient_scratch(std::int64_t tokens, std::int64_t width) { return row_blocks(tokens) * width; }

}  // namespace shardbook::kernels
