// kernels/activation: what stands between the two linears of an MLP?
//
// GELU in GPT-2's tanh form (Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016):
//   gelu(x) = ½ x (1 + tanh(√(2/π) (x + 0.044715 x³)))
// Element by element, so it needs no communication under any cut. Backward needs x, not y.
#pragma once

#include "engine/device/device.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using device::Lane;
using tensor::Tensor;

// y = gelu(x). As many elements in both; y may be x.
void gelu_forward(Lane lane, const Tensor& x, const Tensor& y);
// dx = dy · gelu′(x). dx may be dy.
void gelu_backward(Lane lane, const Tensor& x, const Tensor& dy, const Tensor& dx);

}  // namespace shardbook::kernels
