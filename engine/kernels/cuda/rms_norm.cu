// kernels/cuda/rms_norm: each token normed by a block that keeps the token's row in registers.
//
// As layer_norm.cu, without a mean: the row is read once and written once, 4 bytes a number in bf16 forward and 8 for the input
// gradient, for 4 and 8 flops. Floor: a copy of as many bytes. On an H200, 8192 rows of 4096 (kernel_bench): forward 36.4 us, a copy
// 34.9; input gradient 65.7 us, a copy 66. Formulas: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019. The weight's gradient is a sum
// over tokens: token_sums.cu. The reference is kernels/host/rms_norm.cpp.
#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/cuda/rows.cuh"

namespace shardbook::kernels::cuda {
namespace {

template <class T, int N, int Chunks, class Before>
__global__ void __launch_bounds__(most_threads) rms_forward_kernel(Before before, RmsNormForwardArgs args) {
  __shared__ float slots[warp_size];
  before.wait();
  const std::int64_t row = blockIdx.x, width = args.width;
  const T* x = static_cast<const T*>(args.x_ND) + row * width;

  // Read the row, and take its mean square.
  Words<T, N> kept[Chunks];
  for_chunks<N, Chunks>(width, [&](int chunk, int column) { kept[chunk] = load_words<N>(x + column); });
  float squares = 0.0f;
  for_chunks<N, Chunks>(width, [&](int chunk, int) {
    float value[N];
    to_floats(kept[chunk], value);
#pragma unroll
    for (int i = 0; i < N; ++i) squares += value[i] * value[i];
  });
  const float mean_square = over_block<Plus>(squares, slots) / static_cast<float>(width);
  const float rstd = 1.0f / sqrtf(mean_square + args.epsilon);

  for_chunks<N, Chunks>(width, [&](int chunk, int column) {
    float value[N], weight[N];
    to_floats(kept[chunk], value);
    load<N>(static_cast<const T*>(args.weight_D) + column, weight);
#pragma unroll
    for (int i = 0; i < N; ++i) value[i] *= rstd * weight[i];
    store<N>(static_cast<T*>(args.y_ND) + row * width + column, value);
  });
  if (threadIdx.x == 0) static_cast<float*>(args.rstd_N)[row] = rstd;
}

template <class T, int N, int Chunks, class Before>
__global__ void __launch_bounds__(most_threads) rms_input_gradient_kernel(Before before, RmsNormInputGradientArgs args) {
  __shared__ float slots[warp_size];
  before.wait();
  const std::int64_t row = from_the_last(), width = args.width, first = row * width;
  const T* residual = static_cast<const T*>(args.residual_gradient_ND);

  // Read the row of x and of dy, and of the path round the norm.
  Words<T, N> x[Chunks], dy[Chunks], around[Chunks];
  for_chunks<N, Chunks>(width, [&](int chunk, int column) {
    x[chunk] = load_words<N>(static_cast<const T*>(args.x_ND) + first + column);
    dy[chunk] = load_words<N>(static_cast<const T*>(args.dy_ND) + first + column);
    if (residual != nullptr) around[chunk] = load_words<N>(residual + first + column);
  });
  const float rstd = static_cast<const float*>(args.rstd_N)[row];

  // Of a chunk: x̂, and g = dy · weight.
  const auto chunk_of = [&](int chunk, int column, float (&normed)[N], float (&gradient)[N]) {
    float weight[N];
    to_floats(x[chunk], normed);
    to_floats(dy[chunk], gradient);
    load<N>(static_cast<const T*>(args.weight_D) + column, weight);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      normed[i] *= rstd;
      gradient[i] *= weight[i];
    }
  };

  // The mean of g · x̂.
  float sum = 0.0f;
  for_chunks<N, Chunks>(width, [&](int chunk, int column) {
    float normed[N], gradient[N];
    chunk_of(chunk, column, normed, gradient);
#pragma unroll
    for (int i = 0; i < N; ++i) sum += gradient[i] * normed[i];
  });
  const float mean = over_block<Plus>(sum, slots) / static_cast<float>(width);

  // Through the norm, and round it.
  for_chunks<N, Chunks>(width, [&](int chunk, int column) {
    float normed[N], gradient[N], total[N] = {};
    chunk_of(chunk, column, normed, gradient);
    if (residual != nullptr) to_floats(around[chunk], total);
#pragma unroll
    for (int i = 0; i < N; ++i) total[i] += rstd * (gradient[i] - normed[i] * mean);
    store<N>(static_cast<T*>(args.dx_ND) + first + column, total);
  });
}

}  // namespace

void rms_norm_forward(const RmsNormForwardArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "rms_norm_forward", [&](auto zero) {
    using T = decltype(zero);
    const bool wide = rows_are_wide<T>(args.width, {args.x_ND, args.weight_D, args.y_ND});
    with_row_shape<T>(args.width, wide, "rms_norm_forward", [&](auto pack, auto chunks, unsigned threads) {
      const auto kernel = [&](auto before) { return rms_forward_kernel<T, pack.value, chunks.value, decltype(before)>; };
      launch_timing("rms_norm_forward", kernel, grid_of(args.tokens, "rms_norm_forward"), threads, 0, queue, args);
    });
  });
}

void rms_norm_input_gradient(const RmsNormInputGradientArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "rms_norm_input_gradient", [&](auto zero) {
    using T = decltype(zero);
    const bool wide = rows_are_wide<T>(args.width, {args.dy_ND, args.x_ND, args.weight_D, args.residual_gradient_ND, args.dx_ND});
    with_row_shape<T>(args.width, wide, "rms_norm_input_gradient", [&](auto pack, auto chunks, unsigned threads) {
      const auto kernel = [&](auto before) { return rms_input_gradient_kernel<T, pack.value, chunks.value, decltype(before)>; };
      launch_timing("rms_norm_input_gradient", kernel, grid_of(args.tokens, "rms_norm_input_gradient"), threads, 0, queue, args);
    });
  });
}

}  // namespace shardbook::kernels::cuda
