// kernels/host/rms_norm: the root mean square norm, row by row.
//
// Formulas: kernels/rms_norm.hpp; the input gradient is dx = rstd · (g − x̂ · mean(g · x̂)) with g = dy · weight and
// x̂ = x · rstd.
#include <cmath>

#include "engine/kernels/host/dispatch.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels::host {
namespace {

template <class T>
void forward(const RmsNormForwardArgs& args) {
  const std::int64_t width = args.width;
  const T* weight = as<T>(args.weight_D);
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    const T* x = as<T>(args.x_ND) + n * width;
    T* y = as<T>(args.y_ND) + n * width;
    const T mean_square = lane_sum<T>(width, [&](std::int64_t i) { return x[i] * x[i]; }) / T(width);
    const T rstd = T(1) / std::sqrt(mean_square + T(args.epsilon));
    for (std::int64_t i = 0; i < width; ++i) y[i] = x[i] * rstd * weight[i];
    as<T>(args.rstd_N)[n] = rstd;
  }
}

template <class T>
void input_gradient(const RmsNormInputGradientArgs& args) {
  const std::int64_t width = args.width;
  const T* weight = as<T>(args.weight_D);
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    const T* dy = as<T>(args.dy_ND) + n * width;
    const T* x = as<T>(args.x_ND) + n * width;
    const T* residual = args.residual_gradient_ND == nullptr ? nullptr : as<T>(args.residual_gradient_ND) + n * width;
    T* dx = as<T>(args.dx_ND) + n * width;
    const T rstd = as<T>(args.rstd_N)[n];
    const T mean = lane_sum<T>(width, [&](std::int64_t i) { return dy[i] * weight[i] * (x[i] * rstd); }) / T(width);
    for (std::int64_t i = 0; i < width; ++i) {
      const T through = rstd * (dy[i] * weight[i] - x[i] * rstd * mean);
      dx[i] = residual == nullptr ? through : through + residual[i];
    }
  }
}

template <class T>
void weight_gradient(const RmsNormWeightGradientArgs& args) {
  const std::int64_t width = args.width;
  T* dweight = as<T>(args.dweight_D);
  if (!args.accumulate) {
    for (std::int64_t i = 0; i < width; ++i) dweight[i] = T(0);
  }
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    const T* dy = as<T>(args.dy_ND) + n * width;
    const T* x = as<T>(args.x_ND) + n * width;
    const T rstd = as<T>(args.rstd_N)[n];
    for (std::int64_t i = 0; i < width; ++i) dweight[i] += dy[i] * (x[i] * rstd);
  }
}

}  // namespace

void rms_norm_forward(const RmsNormForwardArgs& args) {
  with_float(args.dtype, [&](auto zero) { forward<decltype(zero)>(args); });
}
void rms_norm_input_gradient(const RmsNormInputGradientArgs& args) {
  with_float(args.dtype, [&](auto zero) { input_gradient<decltype(zero)>(args); });
}
void rms_norm_weight_gradient(const RmsNormWeightGradientArgs& args) {
  with_float(args.dtype, [&](auto zero) { weight_gradient<decltype(zero)>(args); });
}

}  // namespace shardbook::kernels::host
