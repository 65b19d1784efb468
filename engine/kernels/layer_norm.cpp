#include "engine/kernels/layer_norm.hpp"

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/expect.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels {

using program::OpDesc;
using program::OpKind;

void layer_norm_forward(Lane lane, const Tensor& x_ND, const Tensor& weight_D, const Tensor& bias_D, float epsilon,
                        const Tensor& y_ND, const Tensor& mean_N, const Tensor& rstd_N) {
  static constexpr const char* op = "layer_norm_forward";
  expect_matrix(op, "x_ND", x_ND);
  const std::int64_t tokens = x_ND.shape[0], width = x_ND.shape[1];
  expect_elements(op, "weight_D", weight_D, width);
  expect_elements(op, "bias_D", bias_D, width);
  expect_shape(op, "y_ND", y_ND, x_ND.shape);
  expect_stat(op, "mean_N", mean_N, tokens);
  expect_stat(op, "rstd_N", rstd_N, tokens);
  expect_same_type(op, "weight_D", weight_D, x_ND);
  expect_same_type(op, "bias_D", bias_D, x_ND);
  expect_same_type(op, "y_ND", y_ND, x_ND);

  OpDesc desc(op, OpKind::reduction, x_ND.nominal);
  desc.flops(8 * x_ND.elements())  // sum; difference, square, sum; scale, weight, bias
      .reads(x_ND.use()).reads(weight_D.use()).reads(bias_D.use())
      .writes(y_ND.use()).writes(mean_N.use()).writes(rstd_N.use());
  const LayerNormForwardArgs args{x_ND.data, weight_D.data, bias_D.data, y_ND.data, mean_N.data,
                                  rstd_N.data, tokens, width, epsilon, x_ND.storage};
  lane.device().launch(lane, desc, args, &host::layer_norm_forward, &cuda::layer_norm_forward);
}

namespace {

// Both gradients alone, and together: what each checks, what it says of itself, and what it is given.
OpDesc describe_input_gradient(const char* op, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& weight_D, const Tensor& mean_N,
                               const Tensor& rstd_N, const Tensor& residual_gradient_ND, const Tensor& dx_ND) {
  expect_matrix(op, "x_ND", x_ND);
  const std::int64_t tokens = x_ND.shape[0], width = x_ND.shape[1];
  expect_shape(op, "dy_ND", dy_ND, x_ND.shape);
  expect_shape(op, "dx_ND", dx_ND, x_ND.shape);
  expect_elements(op, "weight_D", weight_D, width);
  expect_stat(op, "mean_N", mean_N, tokens);
  expect_stat(op, "rstd_N", rstd_N, tokens);
  expect_same_type(op, "dy_ND", dy_ND, x_ND);
  expect_same_type(op, "dx_ND", dx_ND, x_ND);
  expect_same_type(op, "weight_D", weight_D, x_ND);

  OpDesc desc(op, OpKind::reduction, x_ND.nominal);
  desc.flops(13 * x_ND.elements())  // x̂, g, two means, and the combination
      .reads(dy_ND.use()).reads(x_ND.use()).reads(weight_D.use()).reads(mean_N.use()).reads(rstd_N.use())
      .writes(dx_ND.use());
  if (residual_gradient_ND.exists()) {
    expect_shape(op, "residual_gradient_ND", residual_gradient_ND, x_ND.shape);
    expect_same_type(op, "residual_gradient_ND", residual_gradient_ND, x_ND);
    desc.reads(residual_gradient_ND.use());
  }
  return desc;
}

// What the sums over tokens write, added to `desc`.
void describe_sums(OpDesc& desc, const char* op, const Tensor& x_ND, const Tensor& dweight_D, const Tensor& dbias_D, const Tensor& scratch, bool accumulate) {
  const std::int64_t tokens = x_ND.shape[0], width = x_ND.shape[1];
  expect_stat(op, "dweight_D", dweight_D, width);
  expect_stat(op, "dbias_D", dbias_D, width);
  expect_nominal(op, "scratch", scratch, base::DType::f32);
  const std::int64_t partial_sums = layer_norm_weight_gradient_scratch(tokens, width);
  expect_at_least(op, "scratch", scratch, partial_sums);
  desc.flops(desc.flop_count + 5 * x_ND.elements())  // x̂, product, two sums
      .writes(scratch.use(), partial_sums * base::size_of(scratch.nominal));
  if (accumulate) desc.updates(dweight_D.use()).updates(dbias_D.use());
  else desc.writes(dweight_D.use()).writes(dbias_D.use());
}

LayerNormInputGradientArgs input_gradient_args(const Tensor& dy_ND, const Tensor& x_ND, const Tensor& weight_D, const Tensor& mean_N,
                                               const Tensor& rstd_N, const Tensor& residual_gradient_ND, const Tensor& dx_ND) {
  return {dy_ND.data, x_ND.data, weight_D.data, mean_N.data, rstd_N.data, residual_gradient_ND.data, dx_ND.data,
          x_ND.shape[0], x_ND.shape[1], x_ND.storage};
}

LayerNormWeightGradientArgs weight_gradient_args(const Tensor& dy_ND, const Tensor& x_ND, const Tensor& mean_N, const Tensor& rstd_N,
                                                 const Tensor& dweight_D, const Tensor& dbias_D, const Tensor& scratch, bool accumulate) {
  return {dy_ND.data, x_ND.data, mean_N.data, rstd_N.data, dweight_D.data, dbias_D.data, scratch.data,
          x_ND.shape[0], x_ND.shape[1], accumulate, x_ND.storage};
}

}  // namespace

void layer_norm_input_gradient(Lane lane, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& weight_D,
                               const Tensor& mean_N, const Tensor& rstd_N, const Tensor& residual_gradient_ND,
                               const Tensor& dx_ND) {
  const OpDesc desc = describe_input_gradient("layer_norm_input_gradient", dy_ND, x_ND, weight_D, mean_N, rstd_N, residual_gradient_ND, dx_ND);
  const LayerNormInputGradientArgs args = input_gradient_args(dy_ND, x_ND, weight_D, mean_N, rstd_N, residual_gradient_ND, dx_ND);
  lane.device().launch(lane, desc, args, &host::layer_norm_input_gradient, &cuda::layer_norm_input_gradient);
}

void layer_norm_weight_gradient(Lane lane, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& mean_N,
                                const Tensor& rstd_N, const Tensor& dweight_D, const Tensor& dbias_D,
                                const Tensor& scratch, bool accumulate) {
  static constexpr const char* op = "layer_norm_weight_gradient";
  expect_matrix(op, "x_ND", x_ND);
  const std::int64_t tokens = x_ND.shape[0];
  expect_shape(op, "dy_ND", dy_ND, x_ND.shape);
  expect_same_type(op, "dy_ND", dy_ND, x_ND);
  expect_stat(op, "mean_N", mean_N, tokens);
  expect_stat(op, "rstd_N", rstd_N, tokens);

  OpDesc desc(op, OpKind::reduction, x_ND.nominal);
  desc.reads(dy_ND.use()).reads(x_ND.use()).reads(mean_N.use()).reads(rstd_N.use());
  describe_sums(desc, op, x_ND, dweight_D, dbias_D, scratch, accumulate);
  const LayerNormWeightGradientArgs args = weight_gradient_args(dy_ND, x_ND, mean_N, rstd_N, dweight_D, dbias_D, scratch, accumulate);
  lane.device().launch(lane, desc, args, &host::layer_norm_weight_gradient, &cuda::layer_norm_weight_gradient);
}

void layer_norm_both_gradients(Lane lane, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& weight_D, const Tensor& mean_N,
                               const Tensor& rstd_N, const Tensor& residual_gradient_ND, const Tensor& dx_ND,
                               const Tensor& dweight_D, const Tensor& dbias_D, const Tensor& scratch, bool accumulate) {
  static constexpr const char* op = "layer_norm_both_gradients";
  OpDesc desc = describe_input_gradient(op, dy_ND, x_ND, weight_D, mean_N, rstd_N, residual_gradient_ND, dx_ND);
  describe_sums(desc, op, x_ND, dweight_D, dbias_D, scratch, accumulate);
  const LayerNormBothGradientsArgs args{input_gradient_args(dy_ND, x_ND, weight_D, mean_N, rstd_N, residual_gradient_ND, dx_ND),
                                        weight_gradient_args(dy_ND, x_ND, mean_N, rstd_N, dweight_D, dbias_D, scratch, accumulate)};
  lane.device().launch(lane, desc, args, &host::layer_norm_both_gradients, &cuda::layer_norm_both_gradients);
}

std::int64_t layer_norm_weight_gradient_scratch(std::int64_t tokens, std::int64_t width) {
  return row_blocks(tokens) * 2 * width;
}

}  // namespace shardbook::kernels
