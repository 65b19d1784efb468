// kernels/cuda/layer_norm: each token normed by a block that keeps the token's row in registers.
//
// Idea: the row is read once (16 numbers a thread), mean and variance are taken from the registers in two
// passes (a sum of squares minus a squared mean would cancel), and the result is written once. So both
// directions move only what they must. Formulas: Ba, Kiros, Hinton, "Layer Normalization", 2016.
#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/cuda/rows.cuh"

namespace shardbook::kernels::cuda {
namespace {

template <class T, int N, int Chunks>
__global__ void __launch_bounds__(most_threads) forward_kernel(LayerNormForwardArgs args) {
  __shared__ float slots[2][warp_size];
  const std::int64_t row = blockIdx.x * args.width;
  const T* x = static_cast<const T*>(args.x_ND) + row;
  const float one_over_width = 1.0f / static_cast<float>(args.width);

  // Read the row, and take its mean.
  float value[Chunks][N];
  float sum = 0.0f;
  for_chunks<N, Chunks>(args.width, [&](int chunk, int column) { load<N>(x + column, value[chunk]); });
  for_chunks<N, Chunks>(args.width, [&](int chunk, int) {
#pragma unroll
    for (int i = 0; i < N; ++i) sum += value[chunk][i];
  });
  const float mean = over_block<Plus>(sum, slots[0]) * one_over_width;

  // The variance of what is in the registers.
  float squares = 0.0f;
  for_chunks<N, Chunks>(args.width, [&](int chunk, int) {
#pragma unroll
    for (int i = 0; i < N; ++i) squares += (value[chunk][i] - mean) * (value[chunk][i] - mean);
  });
  const float variance = over_block<Plus>(squares, slots[1]) * one_over_width;
  const float rstd = 1.0f / sqrtf(variance + args.epsilon);

  // Write the normed row and what backward needs.
  for_chunks<N, Chunks>(args.width, [&](int chunk, int column) {
    float weight[N], bias[N];
    load<N>(static_cast<const T*>(args.weight_D) + column, weight);
    load<N>(static_cast<const T*>(args.bias_D) + column, bias);
#pragma unroll
    for (int i = 0; i < N; ++i) value[chunk][i] = (value[chunk][i] - mean) * rstd * weight[i] + bias[i];
    store<N>(static_cast<T*>(args.y_ND) + row + column, value[chunk]);
  });
  if (threadIdx.x == 0) {
    static_cast<float*>(args.mean_N)[blockIdx.x] = mean;
    static_cast<float*>(args.rstd_N)[blockIdx.x] = rstd;
  }
}

template <class T, int N, int Chunks>
__global__ void __launch_bounds__(most_threads) input_gradient_kernel(LayerNormInputGradientArgs args) {
  __shared__ float slots[2][warp_size];
  const std::int64_t row = blockIdx.x * args.width;
  const T* x = static_cast<const T*>(args.x_ND) + row;
  const T* dy = static_cast<const T*>(args.dy_ND) + row;
  const T* weight_D = static_cast<const T*>(args.weight_D);
  const T* residual = static_cast<const T*>(args.residual_gradient_ND);
  const float mean = static_cast<const float*>(args.mean_N)[blockIdx.x];
  const float rstd = static_cast<const float*>(args.rstd_N)[blockIdx.x];
  const float one_over_width = 1.0f / static_cast<float>(args.width);

  // Read the row of x and of dy, and of the path round the norm.
  float normed[Chunks][N], gradient[Chunks][N], around[Chunks][N];
  for_chunks<N, Chunks>(args.width, [&](int chunk, int column) {
    load<N>(x + column, normed[chunk]);
    load<N>(dy + column, gradient[chunk]);
  });
  for_chunks<N, Chunks>(args.width, [&](int chunk, int column) {
    if (residual != nullptr) {
      load<N>(residual + row + column, around[chunk]);
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) around[chunk][i] = 0.0f;
    }
  });

  // x̂, g = dy · weight, and the means of g and of g · x̂.
  float sum = 0.0f, sum_normed = 0.0f;
  for_chunks<N, Chunks>(args.width, [&](int chunk, int column) {
    float weight[N];
    load<N>(weight_D + column, weight);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      normed[chunk][i] = (normed[chunk][i] - mean) * rstd;
      gradient[chunk][i] *= weight[i];
      sum += gradient[chunk][i];
      sum_normed += gradient[chunk][i] * normed[chunk][i];
    }
  });
  sums_over_block(sum, sum_normed, slots);
  const float mean_gradient = sum * one_over_width, mean_normed = sum_normed * one_over_width;

  // dx = rstd · (g − mean(g) − x̂ · mean(g · x̂)), plus the path round the norm.
  for_chunks<N, Chunks>(args.width, [&](int chunk, int column) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      around[chunk][i] += rstd * (gradient[chunk][i] - mean_gradient - normed[chunk][i] * mean_normed);
    }
    store<N>(static_cast<T*>(args.dx_ND) + row + column, around[chunk]);
  });
}

}  // namespace

void layer_norm_forward(const LayerNormForwardArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "layer_norm_forward", [&](auto zero) {
    using T = decltype(zero);
    const bool wide = rows_are_wide<T>(args.width, {args.x_ND, args.weight_D, args.bias_D, args.y_ND});
    with_row_shape<T>(args.width, wide, "layer_norm_forward", [&](auto pack, auto chunks, unsigned threads) {
      forward_kernel<T, pack.value, chunks.value>
          <<<grid_of(args.tokens, "layer_norm_forward"), threads, 0, stream_of(queue)>>>(args);
    });
  });
  check_launch("layer_norm_forward");
}

void layer_norm_input_gradient(const LayerNormInputGradientArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "layer_norm_input_gradient", [&](auto zero) {
    using T = decltype(zero);
    const bool wide = rows_are_wide<T>(
        args.width, {args.dy_ND, args.x_ND, args.weight_D, args.residual_gradient_ND, args.dx_ND});
    with_row_shape<T>(args.width, wide, "layer_norm_input_gradient", [&](auto pack, auto chunks, unsigned threads) {
      input_gradient_kernel<T, pack.value, chunks.value>
          <<<grid_of(args.tokens, "layer_norm_input_gradient"), threads, 0, stream_of(queue)>>>(args);
    });
  });
  check_launch("layer_norm_input_gradient");
}

}  // namespace shardbook::kernels::cuda
