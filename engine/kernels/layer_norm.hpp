// kernels/layer_norm: how is each token scaled to mean 0 and variance 1, and how does the gradient pass?
//
//   x̂ = (x − mean) · rstd,  rstd = 1 / √(variance + epsilon),  y = x̂ · weight + bias
// Each token by itself, so a cut of the tokens (sequence parallel) needs no communication, but the
// gradients of weight and bias sum over tokens and are then partial on each rank.
// Source: Ba, Kiros, Hinton, "Layer Normalization" (2016).
//
// mean_N and rstd_N (nominal f32) are what backward needs beside x. None is a collective; all check shapes.
#pragma once

#include "engine/device/device.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using device::Lane;
using tensor::Tensor;

void layer_norm_forward(Lane lane, const Tensor& x_ND, const Tensor& weight_D, const Tensor& bias_D, float epsilon,
                        const Tensor& y_ND, const Tensor& mean_N, const Tensor& rstd_N);

// dx_ND = the gradient through the norm, plus residual_gradient_ND: the gradient that came round the
// norm on the residual path (may be Tensor{}). dx may be dy or residual_gradient.
void layer_norm_input_gradient(Lane lane, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& weight_D,
                               const Tensor& mean_N, const Tensor& rstd_N, const Tensor& residual_gradient_ND,
                               const Tensor& dx_ND);

// dweight_D (+)= Σ_n dy · x̂ and dbias_D (+)= Σ_n dy, nominal f32. `scratch` is nominal f32, of at least
// layer_norm_weight_gradient_scratch(tokens, width) elements.
void layer_norm_weight_gradient(Lane lane, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& mean_N,
                                const Tensor& rstd_N, const Tensor& dweight_D, const Tensor& dbias_D,
                                const Tensor& scratch, bool accumulate);
// What the two above make, in one pass: dy and x are read once. REQUIRES of dx and scratch: as above.
void layer_norm_both_gradients(Lane lane, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& weight_D, const Tensor& mean_N,
                               const Tensor& rstd_N, const Tensor& residual_gradient_ND, const Tensor& dx_ND,
                               const Tensor& dweight_D, const Tensor& dbias_D, const Tensor& scratch, bool accumulate);
std::int64_t layer_norm_weight_gradient_scratch(std::int64_t tokens, std::int64_t width);

}  // namespace shardbook::kernels
