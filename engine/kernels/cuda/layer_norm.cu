// kernels/cuda/layer_norm: each token normed by a block that keeps the token's row in registers.
//
// Idea: the row is read once (16 to 32 numbers a thread, rows.cuh), mean and variance are taken from the registers in two
// passes (a sum of squares minus a squared mean would cancel), and the result is written once. So both
// directions move only what they must. Formulas: Ba, Kiros, Hinton, "Layer Normalization", 2016.
//
// Memory bounds both: forward moves 4 bytes a number of the row in bf16 and does 8 flops for them, the input gradient 8 bytes and
// 13 flops. Floor: a copy of as many bytes. On an H200 (kernel_bench):
//   8192 x 2048    forward 20.9 us, copy 19.0; input gradient 35.5 us, copy 34.5
//   65 536 x 768   forward 52.6 us, copy 50.5; input gradient 96.3 us, copy 98
// What the input gradient keeps is three rows. As f32 they took 92 registers a thread, now 50, so that too few blocks fitted beside
// each other, and the third was asked for behind the first two: 46 and 145 us. A warp a row was tried (36 us),
// weights in registers or shared memory, and blocks that stay and take row after row: none was faster.
// llm.c (karpathy/llm.c@f1e2ace6, llmc/layernorm.cuh) and PyTorch (pytorch/pytorch@0005c538, aten/src/ATen/native/cuda/
// layer_norm_kernel.cu) have a warp a row with weights in shared memory, and a block a row that reads its row twice.
// The reference is kernels/host/layer_norm.cpp; tests/gpu/layer_norm_test.cpp derives how far f32 may lie from it.
#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/cuda/rows.cuh"

namespace shardbook::kernels::cuda {
namespace {

template <class T, int N, int Chunks, class Before>
__global__ void __launch_bounds__(most_threads) forward_kernel(Before before, LayerNormForwardArgs args) {
  __shared__ float slots[2][warp_size];
  before.wait();
  const std::int64_t row = blockIdx.x, width = args.width;
  const T* x = static_cast<const T*>(args.x_ND) + row * width;
  const float one_over_width = 1.0f / static_cast<float>(width);

  // Read the row, and take its mean.
  Words<T, N> kept[Chunks];
  for_chunks<N, Chunks>(width, [&](int chunk, int column) { kept[chunk] = load_words<N>(x + column); });
  float sum = 0.0f;
  for_chunks<N, Chunks>(width, [&](int chunk, int) {
    float value[N];
    to_floats(kept[chunk], value);
#pragma unroll
    for (int i = 0; i < N; ++i) sum += value[i];
  });
  const float mean = over_block<Plus>(sum, slots[0]) * one_over_width;

  // The variance of what is in the registers.
  float squares = 0.0f;
  for_chunks<N, Chunks>(width, [&](int chunk, int) {
    float value[N];
    to_floats(kept[chunk], value);
#pragma unroll
    for (int i = 0; i < N; ++i) squares += (value[i] - mean) * (value[i] - mean);
  });
  const float variance = over_block<Plus>(squares, slots[1]) * one_over_width;
  const float rstd = 1.0f / sqrtf(variance + args.epsilon);

  // Write the normed row and what backward needs.
  for_chunks<N, Chunks>(width, [&](int chunk, int column) {
    float value[N], weight[N], bias[N];
    to_floats(kept[chunk], value);
    load<N>(static_cast<const T*>(args.weight_D) + column, weight);
    load<N>(static_cast<const T*>(args.bias_D) + column, bias);
#pragma unroll
    for (int i = 0; i < N; ++i) value[i] = (value[i] - mean) * rstd * weight[i] + bias[i];
    store<N>(static_cast<T*>(args.y_ND) + row * width + column, value);
  });
  if (threadIdx.x == 0) {
    static_cast<float*>(args.mean_N)[row] = mean;
    static_cast<float*>(args.rstd_N)[row] = rstd;
  }
}

template <class T, int N, int Chunks, class Before>
__global__ void __launch_bounds__(most_threads) input_gradient_kernel(Before before, LayerNormInputGradientArgs args) {
  __shared__ float slots[2][warp_size];
  before.wait();
  const std::int64_t row = from_the_last(), width = args.width, first = row * width;
  const T* weight_D = static_cast<const T*>(args.weight_D);
  const T* residual = static_cast<const T*>(args.residual_gradient_ND);
  const float one_over_width = 1.0f / static_cast<float>(width);

  // Read the row of x and of dy, and of the path round the norm.
  Words<T, N> x[Chunks], dy[Chunks], around[Chunks];
  for_chunks<N, Chunks>(width, [&](int chunk, int column) {
    x[chunk] = load_words<N>(static_cast<const T*>(args.x_ND) + first + column);
    dy[chunk] = load_words<N>(static_cast<const T*>(args.dy_ND) + first + column);
    if (residual != nullptr) around[chunk] = load_words<N>(residual + first + column);
  });
  const float mean = static_cast<const float*>(args.mean_N)[row];
  const float rstd = static_cast<const float*>(args.rstd_N)[row];

  // Of a chunk: x̂, and g = dy · weight.
  const auto chunk_of = [&](int chunk, int column, float (&normed)[N], float (&gradient)[N]) {
    float weight[N];
    to_floats(x[chunk], normed);
    to_floats(dy[chunk], gradient);
    load<N>(weight_D + column, weight);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      normed[i] = (normed[i] - mean) * rstd;
      gradient[i] *= weight[i];
    }
  };

  // The means of g and of g · x̂.
  float sum = 0.0f, sum_normed = 0.0f;
  for_chunks<N, Chunks>(width, [&](int chunk, int column) {
    float normed[N], gradient[N];
    chunk_of(chunk, column, normed, gradient);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      sum += gradient[i];
      sum_normed += gradient[i] * normed[i];
    }
  });
  sums_over_block(sum, sum_normed, slots);
  const float mean_gradient = sum * one_over_width, mean_normed = sum_normed * one_over_width;

  // dx = rstd · (g − mean(g) − x̂ · mean(g · x̂)), plus the path round the norm.
  for_chunks<N, Chunks>(width, [&](int chunk, int column) {
    float normed[N], gradient[N], total[N] = {};
    chunk_of(chunk, column, normed, gradient);
    if (residual != nullptr) to_floats(around[chunk], total);
#pragma unroll
    for (int i = 0; i < N; ++i) total[i] += rstd * (gradient[i] - mean_gradient - normed[i] * mean_normed);
    store<N>(static_cast<T*>(args.dx_ND) + first + column, total);
  });
}

}  // namespace

void layer_norm_forward(const LayerNormForwardArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "layer_norm_forward", [&](auto zero) {
    using T = decltype(zero);
    const bool wide = rows_are_wide<T>(args.width, {args.x_ND, args.weight_D, args.bias_D, args.y_ND});
    with_row_shape<T>(args.width, wide, "layer_norm_forward", [&](auto pack, auto chunks, unsigned threads) {
      const auto kernel = [&](auto before) { return forward_kernel<T, pack.value, chunks.value, decltype(before)>; };
      launch_timing("layer_norm_forward", kernel, grid_of(args.tokens, "layer_norm_forward"), threads, 0, queue, args);
    });
  });
}

void layer_norm_input_gradient(const LayerNormInputGradientArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "layer_norm_input_gradient", [&](auto zero) {
    using T = decltype(zero);
    const bool wide = rows_are_wide<T>(
        args.width, {args.dy_ND, args.x_ND, args.weight_D, args.residual_gradient_ND, args.dx_ND});
    with_row_shape<T>(args.width, wide, "layer_norm_input_gradient", [&](auto pack, auto chunks, unsigned threads) {
      const auto kernel = [&](auto before) { return input_gradient_kernel<T, pack.value, chunks.value, decltype(before)>; };
      launch_timing("layer_norm_input_gradient", kernel, grid_of(args.tokens, "layer_norm_input_gradient"), threads, 0, queue, args);
    });
  });
}

}  // namespace shardbook::kernels::cuda
