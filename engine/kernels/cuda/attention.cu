// kernels/cuda/attention: heads first and back, and the causal softmax with its backward.
//
// The two products of attention are batched GEMMs; these are the steps between. A row of scores is
// held in registers by one warp (up to 1024 columns) or one block (up to 16384), so it is read once and
// written once. Columns after the diagonal are not read; zeros are written there, for the products read them.
//
// Flops: 5 an entry up to the diagonal, forward as backward; heads are only moved. Bytes in bf16: forward 3 an entry of the square
// (half of it read, all written), backward 4; heads 4 a number. Floor: a copy of as many bytes.
// Reference: kernels/host/attention.cpp.
#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/exponential.cuh"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda {
namespace {

// ---- Heads ---------------------------------------------------------------------------------------

// Moves units of U bytes; head_units of them make a head's row.
template <class Unit, class Before>
__global__ void __launch_bounds__(pointwise_threads)
    split_heads_kernel(Before before, Unit* tokens_first, Unit* heads_first, std::int64_t units, std::uint32_t heads,
                       std::uint32_t positions, std::uint32_t sequences,
                       std::uint32_t head_units, std::int64_t row_units, bool inverse) {
  before.wait();
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * pointwise_threads + threadIdx.x;
  if (at >= units) return;

  // Which unit of the heads-first tensor [p, b, h, s, k] this is.
  RowColumn split = row_and_column(at, head_units);
  const std::int64_t k = split.column;
  split = row_and_column(split.row, positions);
  const std::int64_t s = split.column;
  split = row_and_column(split.row, heads);
  const std::int64_t h = split.column;
  split = row_and_column(split.row, sequences);
  const std::int64_t b = split.column, p = split.row;

  const std::int64_t other = (b * positions + s) * row_units + (p * heads + h) * head_units + k;
  if (inverse) {
    tokens_first[other] = heads_first[at];
  } else {
    heads_first[at] = tokens_first[other];
  }
}

template <class Unit>
void launch_split_heads(const SplitHeadsArgs& args, std::int64_t head_units, const device::CudaQueue& queue) {
  const std::int64_t units = args.parts * args.sequences * args.heads * args.positions * head_units;
  if (units <= 0) return;
  const auto kernel = [](auto before) { return split_heads_kernel<Unit, decltype(before)>; };
  launch_timing("split_heads", kernel, grid_of(divide_up(units, pointwise_threads), "split_heads"), pointwise_threads, 0, queue,
         static_cast<Unit*>(args.tokens_first_NPHK), static_cast<Unit*>(args.heads_first_PBHSK), units, static_cast<std::uint32_t>(args.heads),
         static_cast<std::uint32_t>(args.positions), static_cast<std::uint32_t>(args.sequences), static_cast<std::uint32_t>(head_units),
         args.row_stride * head_units / args.head_dim, args.inverse);
}

// ---- Causal softmax ------------------------------------------------------------------------------

constexpr int most_softmax_threads = 512;  // so that a thread may have 128 registers
constexpr int rows_of_block = 4;  // where a warp holds a row

// The row that this thread helps with, and its place among those that do.
template <bool OneWarp>
struct Team {
  __device__ Team()
      : row(OneWarp ? static_cast<std::int64_t>(blockIdx.x) * rows_of_block + threadIdx.x / warp_size : blockIdx.x),
        place(OneWarp ? threadIdx.x % warp_size : threadIdx.x),
        size(OneWarp ? warp_size : blockDim.x) {}
  template <class Combine>
  __device__ float over(float value, float* slots) const {
    if constexpr (OneWarp) {
      return over_warp<Combine>(value);
    } else {
      return over_block<Combine>(value, slots);
    }
  }
  std::int64_t row;
  int place, size;
};

template <class T, int N, int Chunks, bool OneWarp>
__global__ void __launch_bounds__(OneWarp ? rows_of_block* warp_size : most_softmax_threads)
    softmax_forward_kernel(CausalSoftmaxForwardArgs args, std::int64_t rows) {
  __shared__ float slots[2][warp_size];
  wait_for_kernel_before();
  const Team<OneWarp> team;
  if (team.row >= rows) return;
  const int positions = static_cast<int>(args.positions);
  const int diagonal = static_cast<int>(team.row % args.positions);
  const T* score = static_cast<const T*>(args.score_BHSS) + team.row * args.positions;
  T* probability = static_cast<T*>(args.probability_BHSS) + team.row * args.positions;

  // Read what lies at or before the diagonal.
  float value[Chunks][N];
#pragma unroll
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    const int column = (chunk * team.size + team.place) * N;
    if (column <= diagonal) load<N>(score + column, value[chunk]);
  }

  // Its maximum.
  float largest = Larger::neutral;
#pragma unroll
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    const int column = (chunk * team.size + team.place) * N;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      value[chunk][i] = column + i <= diagonal ? args.scale * value[chunk][i] : Larger::neutral;
      largest = fmaxf(largest, value[chunk][i]);
    }
  }
  largest = team.template over<Larger>(largest, slots[0]);

  // Exponentials (0 after the diagonal) and their sum.
  float sum = 0.0f;
#pragma unroll
  for (int chunk = 0; chunk < Chunks; ++chunk) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      value[chunk][i] = exponential<T>(value[chunk][i] - largest);
      sum += value[chunk][i];
    }
  }
  const float one_over_sum = 1.0f / team.template over<Plus>(sum, slots[1]);

#pragma unroll
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    const int column = (chunk * team.size + team.place) * N;
#pragma unroll
    for (int i = 0; i < N; ++i) value[chunk][i] *= one_over_sum;
    if (column < positions) store<N>(probability + column, value[chunk]);
  }
}

template <class T, int N, int Chunks, bool OneWarp>
__global__ void __launch_bounds__(OneWarp ? rows_of_block* warp_size : most_softmax_threads)
    softmax_backward_kernel(CausalSoftmaxBackwardArgs args, std::int64_t rows) {
  __shared__ float slots[warp_size];
  wait_for_kernel_before();
  const Team<OneWarp> team;
  if (team.row >= rows) return;
  const int positions = static_cast<int>(args.positions);
  const int diagonal = static_cast<int>(team.row % args.positions);
  const T* probability = static_cast<const T*>(args.probability_BHSS) + team.row * args.positions;
  const T* dprobability = static_cast<const T*>(args.dprobability_BHSS) + team.row * args.positions;
  T* dscore = static_cast<T*>(args.dscore_BHSS) + team.row * args.positions;

  // Read both rows up to the diagonal.
  float p[Chunks][N], dp[Chunks][N];
#pragma unroll
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    const int column = (chunk * team.size + team.place) * N;
    if (column <= diagonal) {
      load<N>(probability + column, p[chunk]);
      load<N>(dprobability + column, dp[chunk]);
    }
  }

  // Σ p · dp.
  float sum = 0.0f;
#pragma unroll
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    const int column = (chunk * team.size + team.place) * N;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (column + i > diagonal) p[chunk][i] = dp[chunk][i] = 0.0f;
      sum += p[chunk][i] * dp[chunk][i];
    }
  }
  sum = team.template over<Plus>(sum, slots);

#pragma unroll
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    const int column = (chunk * team.size + team.place) * N;
#pragma unroll
    for (int i = 0; i < N; ++i) dp[chunk][i] = args.scale * p[chunk][i] * (dp[chunk][i] - sum);
    if (column < positions) store<N>(dscore + column, dp[chunk]);
  }
}

// f(Width<N>{}, Width<Chunks>{}, one_warp, threads): 8 numbers a thread in short rows, else 32.
template <class T, class F>
void with_softmax_shape(std::int64_t positions, bool wide, const char* op, F f) {
  with_width<T>(wide, [&](auto pack) {
    constexpr int n = decltype(pack)::value;
    SHARDBOOK_CHECK(positions <= most_softmax_threads * 32, op, " keeps a row in registers: at most ", most_softmax_threads * 32,
                    " positions, not ", positions);
    if (positions <= 8 * warp_size) {
      f(pack, Width<8 / n>{}, std::true_type{}, rows_of_block * warp_size);
    } else if (positions <= 32 * warp_size) {
      f(pack, Width<32 / n>{}, std::true_type{}, rows_of_block * warp_size);
    } else {
      f(pack, Width<32 / n>{}, std::false_type{},
        static_cast<int>(divide_up(divide_up(positions, 32), warp_size)) * warp_size);
    }
  });
}

}  // namespace

void split_heads(const SplitHeadsArgs& args, const device::CudaQueue& queue) {
  const std::int64_t size = base::size_of(args.dtype);
  if (args.head_dim * size % 16 == 0 && args.row_stride * size % 16 == 0 && aligned({args.tokens_first_NPHK, args.heads_first_PBHSK})) {
    launch_split_heads<uint4>(args, args.head_dim * size / 16, queue);
  } else if (size == 4) {
    launch_split_heads<std::uint32_t>(args, args.head_dim, queue);
  } else {
    SHARDBOOK_CHECK(args.dtype == DType::bf16, "split_heads on cuda is for bf16 and f32, not ", base::name_of(args.dtype));
    launch_split_heads<std::uint16_t>(args, args.head_dim, queue);
  }
}

void causal_softmax_forward(const CausalSoftmaxForwardArgs& args, const device::CudaQueue& queue) {
  const std::int64_t rows = args.batch_heads * args.positions;
  if (rows <= 0) return;
  with_type(args.dtype, "causal_softmax_forward", [&](auto zero) {
    using T = decltype(zero);
    const bool wide = rows_are_wide<T>(args.positions, {args.score_BHSS, args.probability_BHSS});
    with_softmax_shape<T>(args.positions, wide, "causal_softmax_forward",
                      [&](auto pack, auto chunks, auto one_warp, int threads) {
      const unsigned grid = grid_of(one_warp.value ? divide_up(rows, rows_of_block) : rows, "causal_softmax_forward");
      launch("causal_softmax_forward", softmax_forward_kernel<T, pack.value, chunks.value, one_warp.value>, grid, static_cast<unsigned>(threads), 0, queue, args, rows);
    });
  });
}

void causal_softmax_backward(const CausalSoftmaxBackwardArgs& args, const device::CudaQueue& queue) {
  const std::int64_t rows = args.batch_heads * args.positions;
  if (rows <= 0) return;
  with_type(args.dtype, "causal_softmax_backward", [&](auto zero) {
    using T = decltype(zero);
    const bool wide =
        rows_are_wide<T>(args.positions, {args.probability_BHSS, args.dprobability_BHSS, args.dscore_BHSS});
    with_softmax_shape<T>(args.positions, wide, "causal_softmax_backward",
                      [&](auto pack, auto chunks, auto one_warp, int threads) {
      const unsigned grid = grid_of(one_warp.value ? divide_up(rows, rows_of_block) : rows, "causal_softmax_backward");
      launch("causal_softmax_backward", softmax_backward_kernel<T, pack.value, chunks.value, one_warp.value>, grid, static_cast<unsigned>(threads), 0, queue, args, rows);
    });
  });
}

}  // namespace shardbook::kernels::cuda
