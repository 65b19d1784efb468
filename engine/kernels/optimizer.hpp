// kernels/optimizer: how does a shard of parameters move, given its gradient?
//
// All work on one shard of a flat unit: elements [shard_begin, shard_begin + elements) of the unit's flat
// parameters, padding included. A unit puts what one rank of many counts, and what is not decayed, in one
// range each, so that a range of flat indices says which elements count.
//
// Everything here is nominal f32 but the parameters' copy that the layers use. None is a collective: the
// caller all-reduces the total of squares between sum_of_squares and clip_factor.
#pragma once

#include "engine/device/device.hpp"
#include "engine/kernels/arguments.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using device::Lane;
using tensor::Tensor;

// total[0] (+)= Σ gradient² over flat indices in [counted_begin, counted_end) that lie in this shard. The other
// ranges of a unit (what another rank counts, padding) are another call, or none. `scratch` is nominal f32,
// of at least sum_of_squares_scratch() elements.
void sum_of_squares(Lane lane, const Tensor& gradient, std::int64_t shard_begin, std::int64_t counted_begin,
                    std::int64_t counted_end, const Tensor& total, const Tensor& scratch, bool accumulate);
std::int64_t sum_of_squares_scratch();

// norm[0] = √total, factor[0] = min(1, clip / (norm + 1e-6)); clip = 0 does not clip. The factor stays on the
// device: adam_w reads it there, so no step waits for the host. As torch.nn.utils.clip_grad_norm_.
void clip_factor(Lane lane, const Tensor& total, float clip, const Tensor& factor, const Tensor& norm);

struct AdamWStep {
  float learning_rate, beta1, beta2, epsilon, weight_decay;
  std::int64_t step;  // counts from 1
};

// AdamW as torch.optim.AdamW (Loshchilov and Hutter 2019), on g = factor · gradient, element by element:
//   master ← master · (1 − lr · weight_decay)                      where the flat index is < decay_end
//   m ← β1 m + (1 − β1) g,   v ← β2 v + (1 − β2) g²
//   master ← master − lr · (m / (1 − β1^step)) / (√(v / (1 − β2^step)) + epsilon)
//   parameter ← master, rounded to the parameter's type          where there is one
// `factors`: where there is one, AdamWFactors in memory of the device, which the op reads as it runs; of `step` then only β1, β2
// and epsilon count.
void adam_w(Lane lane, const AdamWStep& step, const Tensor& gradient, const Tensor& factor, std::int64_t shard_begin,
            std::int64_t decay_end, const Tensor& master, const Tensor& first_moment, const Tensor& second_moment,
            const Tensor& parameter, const Tensor& factors = {});
// What goes there: the same numbers that the op makes of `step`.
AdamWFactors factors_of(const AdamWStep& step);

// The same by the CPU, on tensors that lie in host memory all of them, in its place among the lane's ops. Each operation is
// rounded by itself, here and there, so it gives the same bits.
void adam_w_on_host(Lane lane, const AdamWStep& step, const Tensor& gradient, const Tensor& factor, std::int64_t shard_begin,
                    std::int64_t decay_end, const Tensor& master, const Tensor& first_moment, const Tensor& second_moment,
                    const Tensor& parameter);
// into += from, nominal f32, by the CPU in host memory.
void accumulate_on_host(Lane lane, const Tensor& from, const Tensor& into);

}  // namespace shardbook::kernels
