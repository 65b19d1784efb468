// kernels/cuda/token_sums: gradients of what is shared by all tokens: norm weights and biases.
//
// Each is a sum over the tokens (rows) of a matrix, column by column. Idea: two stages with one order.
//   1. Rows are cut into row_blocks(tokens) blocks. A CUDA block sums one block of rows for 32 packs of
//      columns: 8 warps take every eighth row, then the warps' sums are added in rising order -> scratch.
//   2. 8 warps add an eighth of the row blocks' sums each, in rising order, then theirs -> the gradient.
// Every order is fixed by the sizes, so a run repeats bit for bit, which atomics would not.
#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/cuda/token_sums.cuh"

namespace shardbook::kernels::cuda {
namespace {

constexpr int row_lanes = 8;  // warps of a block

enum class Of { layer_norm, rms_norm, bias };
constexpr int sums_of(Of of) { return of == Of::layer_norm ? 2 : 1; }

// Sums[0] = Σ dy · x̂ for a norm, and the last one Σ dy for a layer norm or a bias: scratch[row_block][sum][column].
template <class T, int N, Of of>
__global__ void __launch_bounds__(warp_size* row_lanes)
    row_block_kernel(const T* dy_ND, const T* x_ND, const float* mean_N, const float* rstd_N, float* scratch,
                     std::int64_t tokens, std::int64_t width) {
  constexpr int Sums = sums_of(of);
  __shared__ float partial[Sums][row_lanes][warp_size * N];
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.x) * warp_size * N;
  const std::int64_t column = first_column + threadIdx.x * N;
  const std::int64_t rows = (tokens + gridDim.y - 1) / gridDim.y;
  const std::int64_t begin = blockIdx.y * rows;
  const std::int64_t end = begin + rows < tokens ? begin + rows : tokens;

  // This thread's columns over every eighth row of the block.
  float sum[Sums][N] = {};
  if (column < width) {
#pragma unroll 4
    for (std::int64_t row = begin + threadIdx.y; row < end; row += row_lanes) {
      float dy[N];
      load<N>(dy_ND + row * width + column, dy);
      if constexpr (of != Of::bias) {
        float x[N];
        load<N>(x_ND + row * width + column, x);
        const float mean = of == Of::layer_norm ? mean_N[row] : 0.0f, rstd = rstd_N[row];
#pragma unroll
        for (int i = 0; i < N; ++i) sum[0][i] += dy[i] * ((x[i] - mean) * rstd);
      }
      if constexpr (of != Of::rms_norm) {
#pragma unroll
        for (int i = 0; i < N; ++i) sum[Sums - 1][i] += dy[i];
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
  const std::int64_t blocks = row_blocks(tokens);
  with_width<T>(rows_are_wide<T>(width, {dy, x}), [&](auto pack) {
    const dim3 grid(grid_of(divide_up(width, warp_size * pack.value), op), static_cast<unsigned>(blocks));
    row_block_kernel<T, pack.value, of><<<grid, block, 0, stream_of(queue)>>>(
        static_cast<const T*>(dy), static_cast<const T*>(x), static_cast<const float*>(mean),
        static_cast<const float*>(rstd), static_cast<float*>(scratch), tokens, width);
  });
  check_launch(op);
  add_row_blocks(op, static_cast<const float*>(scratch), sums_of(of), static_cast<float*>(first), static_cast<float*>(second), tokens, width,
                 accumulate, queue);
}

}  // namespace

void add_row_blocks(const char* op, const float* scratch, int sums, float* first, float* second, std::int64_t tokens, std::int64_t width,
                    bool accumulate, const device::CudaQueue& queue) {
  const dim3 grid(grid_of(divide_up(width, warp_size), op), static_cast<unsigned>(sums));
  final_kernel<<<grid, dim3(warp_size, row_lanes), 0, stream_of(queue)>>>(scratch, first, second, width, static_cast<int>(row_blocks(tokens)),
                                                                          accumulate);
  check_launch(op);
}

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
