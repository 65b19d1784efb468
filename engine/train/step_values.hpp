// train/step_values: what is told a step's kernels that is another number each step?
//
// Where a step becomes a graph (host.graph), the arguments of its ops are written once. What changes lies in memory of the
// device instead: a few numbers, which the first op of each step brings from host memory. Only these do, beside the tokens:
// AdamW's learning rate and bias corrections, and by which key dropout draws. Host memory is kept twice, as that of the tokens is,
// and the loss's: so there are two graphs, of even and of odd steps, and nothing else in a step knows which it is.
//
// Source: pytorch/pytorch@002d2f0b, torch/optim/adamw.py (capturable: step and learning rate are tensors on the device).
#pragma once

#include <array>

#include "engine/kernels/arguments.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::train {

class StepValues {
 public:
  // Set-up.
  explicit StepValues(device::Device& device);

  // Writes the host memory of this step. REQUIRES: the copy of step − 2 has run.
  void fill(std::int64_t step, const kernels::AdamWFactors& update, std::uint64_t step_key);
  // Issues the copy.
  void upload(device::Lane lane, std::int64_t step);

  // Where the device finds them.
  tensor::Tensor update() const { return there_.slice(0, {words(sizeof(kernels::AdamWFactors))}); }
  const std::uint64_t* step_key() const;

 private:
  struct Values {
    kernels::AdamWFactors update;
    std::uint64_t step_key;
  };
  static constexpr std::int64_t words(std::size_t bytes) { return static_cast<std::int64_t>(bytes / sizeof(std::int32_t)); }

  tensor::Tensor there_;             // i32 [words of Values]
  std::array<Values*, 2> here_{};    // by step mod 2; null on meta
};

}  // namespace shardbook::train
