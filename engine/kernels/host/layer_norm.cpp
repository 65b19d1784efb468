// kernels/host/layer_norm: the textbook's layer norm, row by row.
//
// The variance is taken around the mean (two passes over a row that is in the cache), never as a
// difference of large squares. Formulas: kernels/layer_norm.hpp; the input gradient is
//   dx = rstd · (g − mean(g) − x̂ · mean(g · x̂)),  g = dy · weight.
#include <cmath>

#include "engine/kernels/host/dispatch.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels::host {
namespace {

template <class T>
void forward(const LayerNormForwardArgs& args) {
  const std::int64_t width = args.width;
  const T* weight = as<T>(args.weight_D);
  const T* bias = as<T>(args.bias_D);
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    const T* x = as<T>(args.x_ND) + n * width;
    T* y = as<T>(args.y_ND) + n * width;
    const T mean = lane_sum<T>(width, [&](std::int64_t i) { return x[i]; }) / T(width);
    const T variance =
        lane_sum<T>(width, [&](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / T(width);
    const T rstd = T(1) / std::sqrt(variance + T(args.epsilon));
    for (std::int64_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
    as<T>(args.mean_N)[n] = mean;
    as<T>(args.rstd_N)[n] = rstd;
  }
}

template <class T>
void input_gradient(const LayerNormInputGradientArgs& args) {
  const std::int64_t width = args.width;
  const T* weight = as<T>(args.weight_D);
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    const T* dy = as<T>(args.dy_ND) + n * width;
    const T* x = as<T>(args.x_ND) + n * width;
    const T* residual = args.residual_gradient_ND == nullptr ? nullptr : as<T>(args.residual_gradient_ND) + n * width;
    T* dx = as<T>(args.dx_ND) + n * width;
    const T mean = as<T>(args.mean_N)[n], rstd = as<T>(args.rstd_N)[n];
    const T mean_g = lane_sum<T>(width, [&](std::int64_t i) { return dy[i] * weight[i]; }) / T(width);
    const T mean_g_xhat =
        lane_sum<T>(width, [&](std::int64_t i) { return dy[i] * weight[i] * ((x[i] - mean) * rstd); }) / T(width);
    for (std::int64_t i = 0; i < width; ++i) {
      const T xhat = (x[i] - mean) * rstd;
      const T through = rstd * (dy[i] * weight[i] - mean_g - xhat * mean_g_xhat);
      dx[i] = residual == nullptr ? through : through + residual[i];
    }
  }
}

template <class T>
void weight_gradient(const LayerNormWeightGradientArgs& args) {
  const std::int64_t width = args.width;
  T* dweight = as<T>(args.dweight_D);
  T* dbias = as<T>(args.dbias_D);
  if (!args.accumulate) {
    for (std::int64_t i = 0; i < width; ++i) dweight[i] = dbias[i] = T(0);
  }
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    const T* dy = as<T>(args.dy_ND) + n * width;
    const T* x = as<T>(args.x_ND) + n * width;
    const T mean = as<T>(args.mean_N)[n], rstd = as<T>(args.rstd_N)[n];
    for (std::int64_t i = 0; i < width; ++i) {
      dweight[i] += dy[i] * ((x[i] - mean) * rstd);
      dbias[i] += dy[i];
    }
  }
}

}  // namespace

void layer_norm_forward(const LayerNormForwardArgs& args) {
  with_float(args.dtype, [&](auto zero) { forward<decltype(zero)>(args); });
}
void layer_norm_input_gradient(const LayerNormInputGradientArgs& args) {
  with_float(args.dtype, [&](auto zero) { input_gradient<decltype(zero)>(args); });
}
void layer_norm_weight_gradient(const LayerNormWeightGradientArgs& args) {
  with_float(args.dtype, [&](auto zero) { weight_gradient<decltype(zero)>(args); });
}
void layer_norm_both_gradients(const LayerNormBothGradientsArgs& args) {
  layer_norm_weight_gradient(args.weight);   // first: the other may write where dy is
  layer_norm_input_gradient(args.input);
}

}  // namespace shardbook::kernels::host
