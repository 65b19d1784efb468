// kernels/rms_norm: how is each token scaled to a mean square of 1, and how does the gradient pass?
//
//   y = x · rstd · weight,  rstd = 1 / √(mean of x² + epsilon)
// A layer norm without its mean and its bias. Each token by itself; the gradient of weight sums over tokens.
// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019), as in Llama.
//
// rstd_N (nominal f32) is what backward needs beside x. None is a collective; all check shapes.
#pragma once

#include "engine/device/device.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using device::Lane;
using tensor::Tensor;

void rms_norm_forward(Lane lane, const Tensor& x_ND, const Tensor& weight_D, float epsilon, const Tensor& y_ND,
                      const Tensor& rstd_N);

// dx_ND = the gradient through the norm, plus residual_gradient_ND (may be Tensor{}). dx may be dy or residual_gradient.
void rms_norm_input_gradient(Lane lane, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& weight_D,
                             const Tensor& rstd_N, const Tensor& residual_gradient_ND, const Tensor& dx_ND);

// dweight_D (+)= Σ_n dy · x · rstd, nominal f32. `scratch` is nominal f32, of at least
// rms_norm_weight_gradient_scratch(tokens, width) elements.
void rms_norm_weight_gradient(Lane lane, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& rstd_N,
                              const Tensor& dweight_D, const Tensor& scratch, bool accumulate);
std::int64_t rms_norm_weight_gradient_scratch(std::int64_t tokens, std::int64_t width);

}  // namespace shardbook::kernels
