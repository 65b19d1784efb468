// kernels/initialize: what are the first numbers in a tensor?
//
// Weights are drawn by (seed, parameter, global element), see random.hpp: every cut of the parameters draws
// the same network.
#pragma once

#include "engine/device/device.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using device::Lane;
using tensor::Tensor;

// Every element becomes `value`.
void fill(Lane lane, const Tensor& to, float value);

// to = from, of one type: a copy on the device, by no kernel.
void copy(Lane lane, const Tensor& from, const Tensor& to);

// to = from (nominal f32), rounded to the type of `to`.
void cast(Lane lane, const Tensor& from, const Tensor& to);

// Which elements of a global matrix [.., global_columns] a tensor holds: of the part with rows from row_begin
// and columns [column_begin, column_begin + columns), taken row by row, those from `begin` on.
// A vector is a matrix of one column.
struct MatrixPart {
  std::int64_t row_begin = 0, column_begin = 0, columns = 1, global_columns = 1, begin = 0;
};

// to (nominal f32) = mean + deviation · g, g normal. `parameter` is the number of the parameter in the model,
// equal on all ranks.
void init_normal(Lane lane, const Tensor& to, const MatrixPart& part, std::uint64_t seed, std::uint32_t parameter,
                 float mean, float deviation);

}  // namespace shardbook::kernels
