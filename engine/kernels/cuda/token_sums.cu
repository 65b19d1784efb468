// kernels/cuda/token_sums: gradients of what is shared by all tokens: norm weights and biases.
//
// Each is a sum over the tokens (rows) of a matrix, column by column. Idea: two stages with one order.
//   1. Rows are cut into blocks of rows, at most row_blocks(tokens). A CUDA block sums one of them for 32 packs of
//      columns: 8 warps take every eighth row, then the warps' sums are added in rising order -> scratch.
//   2. 8 warps add an eighth of the row blocks' sums each, in rising order, then theirs -> the gradient.
// Every order is fixed by the sizes, so a run repeats bit for bit, which atomics would not.
//
// Flops: 1, 3 and 5 an entry for a bias, an RMS norm's weight and both of a norm's, so memory bounds them. Bytes in bf16: 2 a number of a bias' gradient, 4 of a norm's.
// Floor: a copy of as many bytes; and two launches, where the matrix is small: the second stage
// is set up while the first one ends (common.cuh). On an H200 in bf16 (kernel_bench; before 2026-11-23 in brackets):
//   biases         8192 x 2048 13.0 us (14.8), x 8192 36.1 us (40.9); 65 536 x 3072 95.7 us (98.8)
//   norm weights   8192 x 2048 22.2 us (25.8); 65 536 x 768 52.2 us (58.6)
//   copies that move as many bytes: 33.5 MB 10.8 us, 67 MB 19.0, 134 MB 34.5, 201 MB 50.5, 403 MB 98
// llm.c's matmul_backward_bias_kernel9 has the same stages (karpathy/llm.c@f1e2ace6, llmc/matmul.cuh), and adds norm weights by the
// last block that ends. The references are kernels/host/layer_norm.cpp, rms_norm.cpp and residual.cpp.
#include <algorithm>

#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda {
namespace {

constexpr int row_lanes = 8;     // warps of a block
constexpr int rows_at_once = 4;  // of a warp, asked for before the first is added

enum class Of { layer_norm, rms_norm, bias };
constexpr int sums_of(Of of) { return of == Of::layer_norm ? 2 : 1; }
// Blocks of the first stage: so many for each of an H200's multiprocessors, so that all begin and end together. More would come
// in a second turn, which fills the device in part, and leave the second stage more to add. A norm's rows are of two matrices.
constexpr int blocks_a_multiprocessor(Of of) { return of == Of::bias ? 4 : 2; }
constexpr std::int64_t multiprocessors = 132;

// Sums[0] = Σ dy · x̂ for a norm, and the last one Σ dy for a layer norm or a bias: scratch[row_block][sum][column].
template <class T, int N, Of of, class Before>
__global__ void __launch_bounds__(warp_size* row_lanes, blocks_a_multiprocessor(of))
    row_block_kernel(Before before, const T* dy_ND, const T* x_ND, const float* mean_N, const float* rstd_N, float* scratch,
                     std::int64_t tokens, std::int64_t width) {
  constexpr int Sums = sums_of(of);
  __shared__ float partial[Sums][row_lanes][warp_size * N];
  let_next_kernel_start();
  before.wait();
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.x) * warp_size * N;
  const std::int64_t column = first_column + threadIdx.x * N;
  const int rows = static_cast<int>((tokens + gridDim.y - 1) / gridDim.y), begin = static_cast<int>(blockIdx.y) * rows;
  const int end = static_cast<int>(begin + rows < tokens ? begin + rows : tokens);

  // This thread's columns over every eighth row of the block. So many rows are asked for at once that memory always has some to bring.
  float sum[Sums][N] = {};
  for (int row = begin + static_cast<int>(threadIdx.y); column < width && row < end; row += rows_at_once * row_lanes) {
    Words<T, N> dy[rows_at_once], x[rows_at_once];
    float mean[rows_at_once] = {}, rstd[rows_at_once];
#pragma unroll
    for (int i = 0; i < rows_at_once; ++i) {
      const int at = row + i * row_lanes;
      if (at >= end) continue;
      dy[i] = load_words<N>(dy_ND + at * width + column);
      if constexpr (of != Of::bias) {
        x[i] = load_words<N>(x_ND + at * width + column);
        rstd[i] = rstd_N[at];
      }
      if constexpr (of == Of::layer_norm) mean[i] = mean_N[at];
    }
#pragma unroll
    for (int i = 0; i < rows_at_once; ++i) {
      if (row + i * row_lanes >= end) continue;
      float gradient[N];
      to_floats(dy[i], gradient);
      if constexpr (of != Of::bias) {
        float value[N];
        to_floats(x[i], value);
#pragma unroll
        for (int j = 0; j < N; ++j) sum[0][j] += gradient[j] * ((value[j] - mean[i]) * rstd[i]);
      }
      if constexpr (of != Of::rms_norm) {
#pragma unroll
        for (int j = 0; j < N; ++j) sum[Sums - 1][j] += gradient[j];
      }
    }
  }
#pragma unroll
  for (int which = 0; which < Sums; ++which) {
#pragma unroll
    for (int i = 0; i < N; ++i) partial[which][threadIdx.y][threadIdx.x * N + i] = sum[which][i];
  }
  __syncthreads();

  // The eight warps' sums, in rising order.
  for (int at = threadIdx.y * warp_size + threadIdx.x; at < Sums * warp_size * N; at += warp_size * row_lanes) {
    const int which = at / (warp_size * N), place = at % (warp_size * N);
    if (first_column + place >= width) continue;
    float total = 0.0f;
#pragma unroll
    for (int lane = 0; lane < row_lanes; ++lane) total += partial[which][lane][place];
    scratch[(static_cast<std::int64_t>(blockIdx.y) * Sums + which) * width + first_column + place] = total;
  }
}

// The gradient from the row blocks' sums: blockIdx.y says which of the sums.
__global__ void __launch_bounds__(warp_size* row_lanes)
    final_kernel(const float* scratch, float* first, float* second, std::int64_t width, int blocks, bool accumulate) {
  __shared__ float partial[row_lanes][warp_size];
  const int each = (blocks + row_lanes - 1) / row_lanes;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * warp_size + threadIdx.x;
  const int sums = gridDim.y;

  wait_for_kernel_before();
  float total = 0.0f;
  if (column < width) {
    const int begin = threadIdx.y * each, end = min(begin + each, blocks);
#pragma unroll 8
    for (int block = begin; block < end; ++block) {
      total += scratch[(static_cast<std::int64_t>(block) * sums + blockIdx.y) * width + column];
    }
  }
  partial[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y > 0 || column >= width) return;
  float* to = blockIdx.y == 0 ? first : second;
  total = accumulate ? to[column] : 0.0f;
#pragma unroll
  for (int lane = 0; lane < row_lanes; ++lane) total += partial[lane][threadIdx.x];
  to[column] = total;
}

template <class T, Of of>
void launch_sums(const char* op, const void* dy, const void* x, const void* mean, const void* rstd, void* scratch,
                 void* first, void* second, std::int64_t tokens, std::int64_t width, bool accumulate,
                 const device::CudaQueue& queue) {
  if (width <= 0) return;
  const dim3 block(warp_size, row_lanes);
  std::int64_t blocks = 0;  // of rows
  with_width<T>(rows_are_wide<T>(width, {dy, x}), [&](auto pack) {
    const std::int64_t column_blocks = divide_up(width, warp_size * pack.value);
    blocks = std::clamp<std::int64_t>(blocks_a_multiprocessor(of) * multiprocessors / column_blocks, 1, row_blocks(tokens));
    const dim3 grid(grid_of(column_blocks, op), static_cast<unsigned>(blocks));
    const auto kernel = [&](auto before) { return row_block_kernel<T, pack.value, of, decltype(before)>; };
    launch_timing(op, kernel, grid, block, 0, queue, static_cast<const T*>(dy), static_cast<const T*>(x), static_cast<const float*>(mean),
                  static_cast<const float*>(rstd), static_cast<float*>(scratch), tokens, width);
  });
  const dim3 grid(grid_of(divide_up(width, warp_size), op), sums_of(of));
  launch(op, final_kernel, grid, block, 0, queue, static_cast<const float*>(scratch), static_cast<float*>(first),
         static_cast<float*>(second), width, static_cast<int>(blocks), accumulate);
}

}  // namespace

void layer_norm_weight_gradient(const LayerNormWeightGradientArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "layer_norm_weight_gradient", [&](auto zero) {
    launch_sums<decltype(zero), Of::layer_norm>("layer_norm_weight_gradient", args.dy_ND, args.x_ND, args.mean_N, args.rstd_N,
                                   args.scratch, args.dweight_D, args.dbias_D, args.tokens, args.width,
                                   args.accumulate, queue);
  });
}

void rms_norm_weight_gradient(const RmsNormWeightGradientArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "rms_norm_weight_gradient", [&](auto zero) {
    launch_sums<decltype(zero), Of::rms_norm>("rms_norm_weight_gradient", args.dy_ND, args.x_ND, nullptr, args.rstd_N,
                                              args.scratch, args.dweight_D, nullptr, args.tokens, args.width,
                                              args.accumulate, queue);
  });
}

void bias_gradient(const BiasGradientArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "bias_gradient", [&](auto zero) {
    launch_sums<decltype(zero), Of::bias>("bias_gradient", args.dy_NO, nullptr, nullptr, nullptr, args.scratch,
                                   args.dbias_O, nullptr, args.tokens, args.width, args.accumulate, queue);
  });
}

}  // namespace shardbook::kernels::cuda
