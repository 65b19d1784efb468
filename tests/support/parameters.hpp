// Parameters for tests of single layers: memory of their own, numbers by global element.
#pragma once

#include <functional>

#include "engine/model/pieces.hpp"
#include "tests/support/host_ranks.hpp"

namespace shardbook::tests {

using ValueOf = std::function<double(const std::string& name, std::int64_t row, std::int64_t column)>;

// Gives a parameter a value and a gradient, and fills the value by global row and column.
inline void provide(device::Device& device, model::Parameter& parameter, const ValueOf& value_of) {
  parameter.value = tensor::allocate(device, parameter.shape, base::DType::bf16, program::MemoryKind::parameter, parameter.name);
  parameter.gradient = tensor::allocate(device, parameter.shape, base::DType::f32, program::MemoryKind::gradient, parameter.name + ".gradient");
  std::int64_t at = 0;
  for (const shard::Box& box : parameter.boxes) {
    const shard::Interval columns = box.dims == 2 ? box[1] : shard::Interval{0, 1};
    for (std::int64_t row = box[0].begin; row < box[0].end; ++row) {
      for (std::int64_t column = columns.begin; column < columns.end; ++column) {
        set(parameter.value, at++, value_of(parameter.name, row, column));
      }
    }
  }
}

inline void provide(device::Device& device, const std::vector<model::Parameter*>& parameters, const ValueOf& value_of) {
  for (model::Parameter* parameter : parameters) provide(device, *parameter, value_of);
}

// Small integers by name and place.
inline double integer_weight(const std::string& name, std::int64_t row, std::int64_t column) {
  return small_integer(std::hash<std::string>{}(name) + static_cast<std::uint64_t>(row * 65537 + column));
}

inline tensor::Tensor filled(device::Device& device, base::Shape shape, const std::string& name,
                             const std::function<double(std::int64_t)>& value_of, base::DType nominal = base::DType::bf16) {
  const tensor::Tensor tensor = tensor::allocate(device, shape, nominal, program::MemoryKind::activation, name);
  for (std::int64_t at = 0; at < tensor.elements(); ++at) set(tensor, at, value_of(at));
  return tensor;
}

}  // namespace shardbook::tests
