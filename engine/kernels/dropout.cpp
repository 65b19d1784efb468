#include "engine/kernels/dropout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/expect.hpp"
#include "engine/kernels/host/references.hpp"
#include "engine/kernels/random.hpp"

namespace shardbook::kernels {

using program::OpDesc;
using program::OpKind;

std::uint64_t dropout_key(std::uint64_t seed, std::int64_t step, std::uint32_t place) {
  return mask_key(seed, static_cast<std::uint64_t>(step), place);
}

std::uint64_t dropout_step_key(std::uint64_t seed, std::int64_t step) { return step_key(seed, static_cast<std::uint64_t>(step)); }

DropoutMask by_step(DropoutMask mask, std::uint32_t place, const std::uint64_t* key) {
  mask.key = place;
  mask.step_key = key;
  return mask;
}

DropoutMask dropout_mask(double rate, std::uint64_t key, std::int64_t first) {
  return dropout_mask(rate, key, first, std::numeric_limits<std::int64_t>::max(), 0);
}

DropoutMask dropout_mask(double rate, std::uint64_t key, std::int64_t first, std::int64_t run, std::int64_t stride) {
  SHARDBOOK_CHECK(rate >= 0 && rate < 1, "a dropout of ", rate, " is none, or drops all");
  SHARDBOOK_CHECK(run > 0, "a mask of runs of ", run, " elements");
  constexpr double all = 4294967296.0;   // 2^32
  const double threshold = std::min(std::round(rate * all), all - 1);
  // What is kept is scaled by how often it truly is, so that the mean stays
  return {key, static_cast<std::uint32_t>(threshold), static_cast<float>(1 / (1 - threshold / all)), first, run, stride};
}

void dropout(Lane lane, const char* op, const Tensor& x, const DropoutMask& mask, const Tensor& y) {
  expect_elements(op, "y", y, x.elements());
  expect_same_type(op, "y", y, x);
  OpDesc desc(op, OpKind::pointwise, x.nominal);
  desc.flops(x.elements()).reads(x.use()).writes(y.use());   // the draw is in integers
  const DropoutArgs args{x.data, y.data, x.elements(), mask, x.storage};
  lane.device().launch(lane, desc, args, &host::dropout, &cuda::dropout);
}

void bias_dropout_residual(Lane lane, const Tensor& residual_ND, const Tensor& x_ND, const Tensor& bias_D, const DropoutMask& mask,
                           const Tensor& out_ND) {
  static constexpr const char* op = "bias_dropout_residual";
  expect_residual(op, residual_ND, x_ND, bias_D, out_ND);
  const std::int64_t tokens = x_ND.shape[0], width = x_ND.shape[1];
  SHARDBOOK_CHECK(mask.run >= x_ND.elements(), op, ": a mask of runs of ", mask.run, " for ", x_ND.elements(), " elements");

  OpDesc desc(op, OpKind::pointwise, x_ND.nominal);
  desc.flops(2 * x_ND.elements()).reads(residual_ND.use()).reads(x_ND.use()).writes(out_ND.use());
  if (bias_D.exists()) {
    desc.flops(3 * x_ND.elements()).reads(bias_D.use());
  }
  const BiasDropoutResidualArgs args{residual_ND.data, x_ND.data, bias_D.data, out_ND.data, tokens, width, mask, x_ND.storage};
  lane.device().launch(lane, desc, args, &host::bias_dropout_residual, &cuda::bias_dropout_residual);
}

}  // namespace shardbook::kernels
