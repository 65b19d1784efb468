// kernels/reduce: what do these numbers add up to?
#pragma once

#include "engine/device/device.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using device::Lane;
using tensor::Tensor;

// total[0] = scale · Σ value_N, added to what is there where `accumulate`. Both nominal f32; one fixed order.
void sum(Lane lane, const Tensor& value_N, float scale, const Tensor& total, bool accumulate);

}  // namespace shardbook::kernels
