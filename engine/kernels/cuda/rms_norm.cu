// kernels/cuda/rms_norm: each token normed by a block that keeps the token's row in registers.
//
// As layer_norm.cu, without a mean: the row is read once and written once. Formulas: Zhang and Sennrich, "Root Mean
// Square Layer Normalization", 2019. The weight's gradient is a sum over tokens: token_sums.cu.
#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/cuda/rows.cuh"

namespace shardbook::kernels::cuda {
namespace {

template <class T, int N, int Chunks>
__global__ void __launch_bounds__(most_threads) forward_kernel(RmsNormForwardArgs args) {
  __shared__ float slots[warp_size];
  const std::int64_t row = blockIdx.x * args.width;
  const T* x = static_cast<const T*>(args.x_ND) + row;

  // Read the row, and take its mean square.
  float value[Chunks][N];
  float squares = 0.0f;
  for_chunks<N, Chunks>(args.width, [&](int chunk, int column) { load<N>(x + column, value[chunk]); });
  for_chunks<N, Chunks>(args.width, [&](int chunk, int) {
#pragma unroll
    for (int i = 0; i < N; ++i) squares += value[chunk][i] * value[chunk][i];
  });
  const float mean_square = over_block<Plus>(squares, slots) / static_cast<float>(args.width);
  const float rstd = 1.0f / sqrtf(mean_square + args.epsilon);

  for_chunks<N, Chunks>(args.width, [&](int chunk, int column) {
    float weight[N];
    load<N>(static_cast<const T*>(args.weight_D) + column, weight);
#pragma unroll
    for (int i = 0; i < N; ++i) value[chunk][i] *= rstd * weight[i];
    store<N>(static_cast<T*>(args.y_ND) + row + column, value[chunk]);
  });
  if (threadIdx.x == 0) static_cast<float*>(args.rstd_N)[blockIdx.x] = rstd;
}

template <class T, int N, int Chunks>
__global__ void __launch_bounds__(most_threads) input_gradient_kernel(RmsNormInputGradientArgs args) {
  __shared__ float slots[warp_size];
  const std::int64_t row = blockIdx.x * args.width;
  const T* residual = static_cast<const T*>(args.residual_gradient_ND);
  const float rstd = static_cast<const float*>(args.rstd_N)[blockIdx.x];

  // x̂, g = dy · weight, and the mean of g · x̂.
  float normed[Chunks][N], gradient[Chunks][N];
  float sum = 0.0f;
  for_chunks<N, Chunks>(args.width, [&](int chunk, int column) {
    load<N>(static_cast<const T*>(args.x_ND) + row + column, normed[chunk]);
    load<N>(static_cast<const T*>(args.dy_ND) + row + column, gradient[chunk]);
  });
  for_chunks<N, Chunks>(args.width, [&](int chunk, int column) {
    float weight[N];
    load<N>(static_cast<const T*>(args.weight_D) + column, weight);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      normed[chunk][i] *= rstd;
      gradient[chunk][i] *= weight[i];
      sum += gradient[chunk][i] * normed[chunk][i];
    }
  });
  const float mean = over_block<Plus>(sum, slots) / static_cast<float>(args.width);

  // Through the norm, and round it.
  for_chunks<N, Chunks>(args.width, [&](int chunk, int column) {
    float around[N] = {};
    if (residual != nullptr) load<N>(residual + row + column, around);
#pragma unroll
    for (int i = 0; i < N; ++i) around[i] += rstd * (gradient[chunk][i] - normed[chunk][i] * mean);
    store<N>(static_cast<T*>(args.dx_ND) + row + column, around);
  });
}

}  // namespace

void rms_norm_forward(const RmsNormForwardArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "rms_norm_forward", [&](auto zero) {
    using T = decltype(zero);
    const bool wide = rows_are_wide<T>(args.width, {args.x_ND, args.weight_D, args.y_ND});
    with_row_shape<T>(args.width, wide, "rms_norm_forward", [&](auto pack, auto chunks, unsigned threads) {
      forward_kernel<T, pack.value, chunks.value>
          <<<grid_of(args.tokens, "rms_norm_forward"), threads, 0, stream_of(queue)>>>(args);
    });
  });
  check_launch("rms_norm_forward");
}

void rms_norm_input_gradient(const RmsNormInputGradientArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "rms_norm_input_gradient", [&](auto zero) {
    using T = decltype(zero);
    const bool wide = rows_are_wide<T>(args.width, {args.dy_ND, args.x_ND, args.weight_D, args.residual_gradient_ND, args.dx_ND});
    with_row_shape<T>(args.width, wide, "rms_norm_input_gradient", [&](auto pack, auto chunks, unsigned threads) {
      input_gradient_kernel<T, pack.value, chunks.value>
          <<<grid_of(args.tokens, "rms_norm_input_gradient"), threads, 0, stream_of(queue)>>>(args);
    });
  });
  check_launch("rms_norm_input_gradient");
}

}  // namespace shardbook::kernels::cuda
