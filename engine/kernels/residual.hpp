// kernels/residual: how do a sublayer's result and its bias join the residual path, and what comes back?
//
// The bias of a row-parallel linear is added here, after the all-reduce, and once: were each rank to add
// it to its partial product, the sum would hold it tp times.
#pragma once

#include "engine/device/device.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using device::Lane;
using tensor::Tensor;

// out_ND = residual_ND + x_ND + bias_D. `bias_D` may be Tensor{}. out may be residual or x.
void add_bias_residual(Lane lane, const Tensor& residual_ND, const Tensor& x_ND, const Tensor& bias_D,
                       const Tensor& out_ND);

// dbias_O (+)= Σ_n dy_NO, nominal f32. `scratch` is nominal f32, of at least
// bias_gradient_scratch(tokens, width) elements.
void bias_gradient(Lane lane, const Tensor& dy_NO, const Tensor& dbias_O, const Tensor& scratch, bool accumulate);
std::int64_t bias_gradient_scratch(std::int64_t tokens, std::int64_t width);

// into += from, both nominal f32 (gradients of micro-batches).
void accumulate(Lane lane, const Tensor& from, const Tensor& into);

// out = Σ_p parts[p], added one after the other from the first on, in f32, and rounded once: parts have the shape of out behind
// a dim of their own. out is no part of them.
void sum_parts(Lane lane, const Tensor& parts_PRD, const Tensor& out_RD);

// into (+)= from, of any nominal type; into is nominal f32, so nothing is rounded but the sum. The way back of cast().
void widen(Lane lane, const Tensor& from, const Tensor& into, bool accumulate);

}  // namespace shardbook::kernels
