// kernels/cuda/layer_norm_gradients: both gradients of a norm, from one reading of dy and x.
//
// Apart (layer_norm.cu, token_sums.cu) they read dy and x twice. Here a block has a block of rows, as token_sums.cu cuts
// them, and goes over it row by row: of each row it makes dx, and its threads add dy · x̂ and dy of their columns to sums in
// registers. Several groups of threads take rows in turn, so that one loads while another adds; a group awaits its own
// threads alone, by a barrier of its own (bar.sync with a number). At the end the groups' sums are added in rising order.
// So each number is a sum in an order that sizes alone decide, and a run repeats bit for bit.
//
// A thread has 8 numbers of a row, not 16 as in forward: its sums take 16 registers more, and with 64 in all two blocks fit
// on a multiprocessor. Formulas: Ba, Kiros, Hinton, "Layer Normalization", 2016.
#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/cuda/rows.cuh"
#include "engine/kernels/cuda/token_sums.cuh"

namespace shardbook::kernels::cuda {
namespace {

// Of a block: blockDim.x threads have a row, blockDim.y of such groups.
constexpr int block_threads = 512, most_groups = 16;

// All threads of this group have come. Barrier 0 is __syncthreads'.
__device__ inline void await_group() {
  asm volatile("bar.sync %0, %1;" ::"r"(static_cast<int>(threadIdx.y) + 1), "r"(static_cast<int>(blockDim.x)) : "memory");
}

// Two sums over a group; every thread of it gets both. `slots` may be used again by the next call but one.
__device__ inline void sums_over_group(float& a, float& b, float (*slots)[warp_size]) {
  a = over_warp<Plus>(a);
  b = over_warp<Plus>(b);
  const int warps = blockDim.x / warp_size;
  if (warps == 1) return;
  const int lane = threadIdx.x % warp_size;
  if (lane == 0) {
    slots[0][threadIdx.x / warp_size] = a;
    slots[1][threadIdx.x / warp_size] = b;
  }
  await_group();
  a = over_warp<Plus>(lane < warps ? slots[0][lane] : 0.0f);
  b = over_warp<Plus>(lane < warps ? slots[1][lane] : 0.0f);
}

// dx of one row, whose numbers of x and dy are in registers already; adds dy · x̂ and dy to this thread's sums.
template <class T, int N, int Chunks>
__device__ inline void row_gradient(const LayerNormInputGradientArgs& args, std::int64_t row, float (&normed)[Chunks][N],
                                    float (&gradient)[Chunks][N], float (&weight_sum)[Chunks][N], float (&bias_sum)[Chunks][N],
                                    float (*slots)[warp_size]) {
  const float mean = static_cast<const float*>(args.mean_N)[row], rstd = static_cast<const float*>(args.rstd_N)[row];
  const float one_over_width = 1.0f / static_cast<float>(args.width);
  const std::int64_t begin = row * args.width;

  // x̂ and g = dy · weight, the sums over tokens on the way, and the means of g and of g · x̂
  float sum = 0.0f, sum_normed = 0.0f;
  for_chunks<N, Chunks>(args.width, [&](int chunk, int column) {
    float weight[N];
    load<N>(static_cast<const T*>(args.weight_D) + column, weight);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      normed[chunk][i] = (normed[chunk][i] - mean) * rstd;
      weight_sum[chunk][i] += gradient[chunk][i] * normed[chunk][i];
      bias_sum[chunk][i] += gradient[chunk][i];
      gradient[chunk][i] *= weight[i];
      sum += gradient[chunk][i];
      sum_normed += gradient[chunk][i] * normed[chunk][i];
    }
  });
  sums_over_group(sum, sum_normed, slots);
  const float mean_gradient = sum * one_over_width, mean_normed = sum_normed * one_over_width;

  // dx = rstd · (g − mean(g) − x̂ · mean(g · x̂)), plus the path round the norm
  const T* residual = static_cast<const T*>(args.residual_gradient_ND);
  for_chunks<N, Chunks>(args.width, [&](int chunk, int column) {
    float around[N] = {};
    if (residual != nullptr) load<N>(residual + begin + column, around);
#pragma unroll
    for (int i = 0; i < N; ++i) around[i] += rstd * (gradient[chunk][i] - mean_gradient - normed[chunk][i] * mean_normed);
    store<N>(static_cast<T*>(args.dx_ND) + begin + column, around);
  });
}

template <class T, int N, int Chunks>
__global__ void __launch_bounds__(block_threads, N * Chunks <= 8 ? 2 : 1) gradients_kernel(LayerNormInputGradientArgs args, float* scratch) {
  __shared__ float slots[2][most_groups][2][warp_size];
  extern __shared__ float earlier[];   // [2][width]: sums of the groups before
  const std::int64_t rows = (args.tokens + gridDim.x - 1) / gridDim.x, first = blockIdx.x * rows;
  const std::int64_t end = first + rows < args.tokens ? first + rows : args.tokens;

  // Every blockDim.y-th row
  float weight_sum[Chunks][N] = {}, bias_sum[Chunks][N] = {};
  int turn = 0;
  for (std::int64_t row = first + threadIdx.y; row < end; row += blockDim.y, turn ^= 1) {
    float normed[Chunks][N], gradient[Chunks][N];
    for_chunks<N, Chunks>(args.width, [&](int chunk, int column) {
      load<N>(static_cast<const T*>(args.x_ND) + row * args.width + column, normed[chunk]);
      load<N>(static_cast<const T*>(args.dy_ND) + row * args.width + column, gradient[chunk]);
    });
    row_gradient<T, N, Chunks>(args, row, normed, gradient, weight_sum, bias_sum, slots[turn][threadIdx.y]);
  }

  // The groups' sums, in rising order; the last one writes them
  float* const block_sums = scratch + blockIdx.x * 2 * args.width;
  for (int group = 0; group < static_cast<int>(blockDim.y); ++group) {
    __syncthreads();
    if (static_cast<int>(threadIdx.y) != group) continue;
    float* const to = group + 1 == static_cast<int>(blockDim.y) ? block_sums : earlier;
    for_chunks<N, Chunks>(args.width, [&](int chunk, int column) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float weight_before = group == 0 ? 0.0f : earlier[column + i], bias_before = group == 0 ? 0.0f : earlier[args.width + column + i];
        to[column + i] = weight_before + weight_sum[chunk][i];
        to[args.width + column + i] = bias_before + bias_sum[chunk][i];
      }
    });
  }
}

// f(Width<Chunks>{}, threads of a row) for a thread's 8 numbers of a row, or as many as 512 threads need.
template <int N, class F>
void with_chunks(std::int64_t width, F f) {
  const auto threads = [&](std::int64_t numbers) { return static_cast<unsigned>(divide_up(divide_up(width, numbers), warp_size) * warp_size); };
  if (width <= block_threads * 8) return f(Width<8 / N>{}, threads(8));
  if (width <= block_threads * 16) return f(Width<16 / N>{}, threads(16));
  SHARDBOOK_CHECK(width <= block_threads * 32, "layer_norm_both_gradients keeps a row in registers: at most ", block_threads * 32, " columns, not ", width);
  f(Width<32 / N>{}, threads(32));
}

}  // namespace

void layer_norm_both_gradients(const LayerNormBothGradientsArgs& both, const device::CudaQueue& queue) {
  static constexpr const char* op = "layer_norm_both_gradients";
  const LayerNormInputGradientArgs& args = both.input;
  if (args.tokens <= 0) return;
  float* const scratch = static_cast<float*>(both.weight.scratch);
  with_type(args.dtype, op, [&](auto zero) {
    using T = decltype(zero);
    const bool wide = rows_are_wide<T>(args.width, {args.dy_ND, args.x_ND, args.weight_D, args.residual_gradient_ND, args.dx_ND});
    with_width<T>(wide, [&](auto pack) {
      with_chunks<pack.value>(args.width, [&](auto chunks, unsigned threads) {
        const dim3 block(threads, block_threads / threads);
        // One group needs no place for earlier ones; several have few columns
        const std::size_t shared = block.y == 1 ? 0 : static_cast<std::size_t>(2 * args.width) * sizeof(float);
        gradients_kernel<T, pack.value, chunks.value>
            <<<grid_of(row_blocks(args.tokens), op), block, shared, stream_of(queue)>>>(args, scratch);
      });
    });
  });
  check_launch(op);
  add_row_blocks(op, scratch, 2, static_cast<float*>(both.weight.dweight_D), static_cast<float*>(both.weight.dbias_D), args.tokens, args.width,
                 both.weight.accumulate, queue);
}

}  // namespace shardbook::kernels::cuda
