// kernels/dropout: which numbers are set to 0 in training, and how does backward know?
//
//   y = x · mask / (1 − p), an element kept with probability 1 − p            (Srivastava et al. 2014)
//
// A mask is not kept. Whether an element is dropped is a function of (seed, step, place in the model, element of the
// whole tensor) (random.hpp), so backward draws it again, and so does whoever computes a part of the tensor or computes
// it twice: the same element has the same fate in every layout. PyTorch's native_dropout keeps a byte an element
// instead; its generator is a counter too (Philox), but the counter counts calls, not places.
//
// The gradient is dropped as its number was: dx = dy · mask / (1 − p), the same op. None is a collective.
#pragma once

#include "engine/device/device.hpp"
#include "engine/kernels/arguments.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using device::Lane;
using tensor::Tensor;

// A draw of its own for each place and step: the fate of every element of one tensor.
std::uint64_t dropout_key(std::uint64_t seed, std::int64_t step, std::uint32_t place);

// The key of a step alone, which a mask finds in memory of the device (by_step).
std::uint64_t dropout_step_key(std::uint64_t seed, std::int64_t step);
// The same mask, of `place` in whatever step `key` lies there of: 64 bits, written before the op runs.
DropoutMask by_step(DropoutMask mask, std::uint32_t place, const std::uint64_t* key);

// Drops each element with probability `rate` (0 to below 1), in steps of 2^-32. The tensor is the elements from `first`
// on of the whole one.
DropoutMask dropout_mask(double rate, std::uint64_t key, std::int64_t first);
// The tensor is runs of `run` elements of the whole one, of which each begins `stride` after the last, the first at `first`.
DropoutMask dropout_mask(double rate, std::uint64_t key, std::int64_t first, std::int64_t run, std::int64_t stride);

// y = x, some of it dropped. y may be x. `op` is "dropout_forward" or "dropout_backward", a literal: what it is for.
void dropout(Lane lane, const char* op, const Tensor& x, const DropoutMask& mask, const Tensor& y);

// out_ND = residual_ND + (x_ND + bias_D, some of it dropped). `bias_D` may be Tensor{}. out may be residual or x.
// REQUIRES: the mask is of one run.
void bias_dropout_residual(Lane lane, const Tensor& residual_ND, const Tensor& x_ND, const Tensor& bias_D, const DropoutMask& mask,
                           const Tensor& out_ND);

}  // namespace shardbook::kernels
