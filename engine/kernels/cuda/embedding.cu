// kernels/cuda/embedding: rows of a table, gathered forward and summed backward.
//
// Backward has one writer a row: a block takes the positions that hold one token, in rising order (the
// host sorted them), so there are no atomics, and for one shape (tokens, rows, width) the sum has one order.
// Threads of a column take the positions in turn, and their sums are added in order. They are as many as tokens
// come to a row at the mean (a power of two, at most 8), and more where the table is narrow and leaves threads
// over. (One token may be a tenth of a batch; one thread a column took 10 ms for 262 144 tokens of width 128 on
// an H200.) Source of the idea: llm.c's wte_backward (karpathy/llm.c@f1e2ace6, llmc/encoder.cuh), whose buckets
// are sorted on the host too, and whose warps share a bucket.
//
// Flops: one a number of a token's row backward, none forward, one where positions are added. Bytes in bf16: forward 4 a number (a
// row read, a row written); backward 2 a number, and of each row that has a token 4 written, or 8 where it is added to; where
// nothing is added to, all rows of the table are written; positions 6 a number forward (the table's rows come from the cache: 4), and 2
// backward. Floor: a copy of as many bytes; and where one token has many positions, the share of them that one thread takes. Reference: kernels/host/embedding.cpp.
#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda {
namespace {

template <class T>
struct EmbeddingForward {
  EmbeddingForwardArgs args;
  template <int N>
  __device__ void run(std::int64_t at) const {
    const RowColumn place = row_and_column(at, args.width);
    const std::int32_t token = args.token_N[place.row];
    float value[N] = {};
    if (token >= args.vocab_begin && token < args.vocab_end) {
      const std::int64_t row = token - args.vocab_begin;
      load<N>(static_cast<const T*>(args.weight_VD) + row * args.width + place.column, value);
    }
    store<N>(static_cast<T*>(args.x_ND) + at, value);
  }
};

constexpr int segment_threads = 256;
constexpr int most_for_tokens = 8;   // a warp of columns is left, whose loads are 64 bytes and more in a row

// How many threads at least take a token's positions in turn: as many as it has at the mean.
int in_turn(std::int64_t tokens, std::int64_t segments) {
  int threads = 1;
  while (threads < most_for_tokens && 2 * threads * segments <= tokens) threads *= 2;
  return threads;
}

// blockIdx.x: which segment; blockIdx.y: which packs of columns. Threads x are packs, threads y take positions in turn.
template <class T, int N>
__global__ void __launch_bounds__(segment_threads) embedding_backward_kernel(EmbeddingBackwardArgs args) {
  __shared__ float sum_YXN[segment_threads * N];
  wait_for_kernel_before();
  const std::int64_t segment = blockIdx.x;
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * N;
  if (segment >= *args.segments) return;
  const bool inside = column < args.width;
  const std::int32_t begin = args.segment_begin_N[segment], end = args.segment_begin_N[segment + 1];

  float sum[N] = {};
#pragma unroll 4
  for (std::int32_t i = begin + static_cast<std::int32_t>(threadIdx.y); inside && i < end; i += static_cast<std::int32_t>(blockDim.y)) {
    float gradient[N];
    load<N>(static_cast<const T*>(args.dx_ND) + args.order_N[i] * args.width + column, gradient);
#pragma unroll
    for (int j = 0; j < N; ++j) sum[j] += gradient[j];
  }

  // The threads' sums, in order
  if (blockDim.y > 1) {
#pragma unroll
    for (int j = 0; j < N; ++j) sum_YXN[(threadIdx.y * blockDim.x + threadIdx.x) * N + j] = sum[j];
    __syncthreads();
    for (unsigned lane = 1; threadIdx.y == 0 && lane < blockDim.y; ++lane) {
#pragma unroll
      for (int j = 0; j < N; ++j) sum[j] += sum_YXN[(lane * blockDim.x + threadIdx.x) * N + j];
    }
  }
  if (threadIdx.y > 0 || !inside) return;

  const std::int64_t row = args.segment_token_N[segment] - args.vocab_begin;
  float* to = static_cast<float*>(args.dweight_VD) + row * args.width + column;
  if (args.accumulate) {
    float before[N];
    load<N>(to, before);
#pragma unroll
    for (int j = 0; j < N; ++j) sum[j] += before[j];
  }
  store<N>(to, sum);
}

template <class T>
struct PositionForward {
  PositionForwardArgs args;
  template <int N>
  __device__ void run(std::int64_t at) const {
    // Tokens are sequence after sequence, so a number's place in weight_SD is its place among all modulo S·D.
    float value[N], weight[N];
    load<N>(static_cast<const T*>(args.x_ND) + at, value);
    load<N>(static_cast<const T*>(args.weight_SD) + row_and_column(args.first * args.width + at, args.positions * args.width).column, weight);
#pragma unroll
    for (int i = 0; i < N; ++i) value[i] += weight[i];
    store<N>(static_cast<T*>(args.x_ND) + at, value);
  }
};

template <class T>
struct PositionBackward {
  PositionBackwardArgs args;
  template <int N>
  __device__ void run(std::int64_t at) const {
    const std::int64_t stride = args.positions * args.width;
    float* to = static_cast<float*>(args.dweight_SD) + at;
    float sum[N] = {};
    // The first row here that is of this position; every S-th from there is
    const std::int64_t place = at - args.first * args.width % stride;
    for (std::int64_t from = place < 0 ? place + stride : place; from < args.rows * args.width; from += stride) {
      float gradient[N];
      load<N>(static_cast<const T*>(args.dx_ND) + from, gradient);
#pragma unroll
      for (int i = 0; i < N; ++i) sum[i] += gradient[i];
    }
    if (args.accumulate) {
      float before[N];
      load<N>(to, before);
#pragma unroll
      for (int i = 0; i < N; ++i) sum[i] += before[i];
    }
    store<N>(to, sum);
  }
};

}  // namespace

void embedding_forward(const EmbeddingForwardArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "embedding_forward", [&](auto zero) {
    using T = decltype(zero);
    with_width<T>(rows_are_wide<T>(args.width, {args.weight_VD, args.x_ND}), [&](auto pack) {
      launch_pointwise<pack.value>("embedding_forward", args.tokens * args.width, EmbeddingForward<T>{args}, queue);
    });
  });
}

void embedding_backward(const EmbeddingBackwardArgs& args, const device::CudaQueue& queue) {
  const std::int64_t rows = args.vocab_end - args.vocab_begin;
  if (!args.accumulate) {
    // Rows of tokens that do not occur get no block below.
    fill({args.dweight_VD, rows * args.width, 0.0f, DType::f32}, queue);
  }
  // The number of segments is known on the device only; there are no more than tokens, nor than rows.
  const std::int64_t segments = args.tokens < rows ? args.tokens : rows;
  if (segments <= 0 || args.width <= 0) return;
  with_type(args.dtype, "embedding_backward", [&](auto zero) {
    using T = decltype(zero);
    with_width<T>(rows_are_wide<T>(args.width, {args.dx_ND, args.dweight_VD}), [&](auto pack) {
      const std::int64_t packs = divide_up(args.width, pack.value), most = segment_threads / in_turn(args.tokens, segments);
      const std::int64_t columns = packs < most ? packs : most;
      const dim3 grid(grid_of(segments, "embedding_backward"), static_cast<unsigned>(divide_up(packs, columns)));
      const dim3 threads(static_cast<unsigned>(columns), static_cast<unsigned>(segment_threads / columns));
      launch("embedding_backward", embedding_backward_kernel<T, pack.value>, grid, threads, 0, queue, args);
    });
  });
}

void position_forward(const PositionForwardArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "position_forward", [&](auto zero) {
    using T = decltype(zero);
    with_width<T>(rows_are_wide<T>(args.width, {args.weight_SD, args.x_ND}), [&](auto pack) {
      launch_pointwise<pack.value>("position_forward", args.rows * args.width, PositionForward<T>{args}, queue);
    });
  });
}

void position_backward(const PositionBackwardArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "position_backward", [&](auto zero) {
    using T = decltype(zero);
    with_width<T>(rows_are_wide<T>(args.width, {args.dx_ND, args.dweight_SD}), [&](auto pack) {
      launch_pointwise<pack.value>("position_backward", args.positions * args.width, PositionBackward<T>{args}, queue);
    });
  });
}

}  // namespace shardbook::kernels::cuda
