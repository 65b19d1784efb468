// kernels/activation: what stands between the two linears of an MLP?
//
// GELU in GPT-2's tanh form (Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016):
//   gelu(x) = ½ x (1 + tanh(√(2/π) (x + 0.044715 x³)))
// SwiGLU, in Llama's form (Shazeer, "GLU variants improve transformer", 2020): the up projection makes two widths,
// gate and up, and y = silu(gate) · up with silu(x) = x / (1 + e^−x).
// Element by element, so neither needs communication under any cut. Backward needs x, not y.
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

// y_NF = silu(gate) · up; up_N2F has both side by side, gate first.
void swiglu_forward(Lane lane, const Tensor& up_N2F, const Tensor& y_NF);
// dup_N2F = (dy · up · silu′(gate), dy · silu(gate)). dup may be up.
void swiglu_backward(Lane lane, const Tensor& up_N2F, const Tensor& dy_NF, const Tensor& dup_N2F);

}  // namespace shardbook::kernels
