// kernels/cuda/flash_attention_backward: attention's backward without probabilities in memory.
//
// Three kernels, none with atomics, so that a run repeats bit for bit:
//   1. δ = Σ dout ∘ out, one number a query and head: equal to Σ_t p·dp, so that p need not be kept.
//   2. dk and dv: a block has 64 keys, 16 a warp, and goes over all queries that see them, of all query heads that
//      share its key-value head. It works on transposed scores, Sᵀ = K Qᵀ, so that Pᵀ and dSᵀ are already in the
//      registers that the products dV += Pᵀ dO and dK += dSᵀ Q want.
//   3. dq: a block has 64 queries and goes over their keys, dQ += dS K.
// Scores and dp are made in both 2 and 3: seven products where float atomics on dq would need five.
//
// Flops: 14·K a pair of query and key (10·K count), half of the square. Reference: host/flash_attention.cpp.
// Formulas: notes/05_flash_attention.md. Source: Dao, "FlashAttention-2" (2023), §3.
#include "engine/kernels/cuda/flash_attention.cuh"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda {
namespace {

constexpr int warps = 4;
constexpr int rows = 64;  // of a block, and of a tile that it goes over

template <int K>
constexpr int tiles_bytes = 6 * rows * K * static_cast<int>(sizeof(Bf16));
constexpr int statistics_bytes = 4 * rows * static_cast<int>(sizeof(float));

// ---- 1. Row sums ---------------------------------------------------------------------------------

// A warp for each query and head.
template <int K>
__global__ void __launch_bounds__(pointwise_threads) delta_kernel(FlashAttentionBackwardArgs args) {
  const FlashAttentionSizes& sizes = args.sizes;
  const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * pointwise_threads + threadIdx.x) / warp_size;
  if (at >= sizes.sequences * sizes.positions * sizes.heads) return;
  constexpr int each = K / warp_size;
  const RowColumn place = row_and_column(at, sizes.heads);  // token, head
  const RowColumn token = row_and_column(place.row, sizes.positions);
  const std::int64_t first = at * K + threadIdx.x % warp_size * each;
  const Bf16* const out = static_cast<const Bf16*>(args.out_NHK) + first;
  const Bf16* const dout = static_cast<const Bf16*>(args.dout_NHK) + first;
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < each; ++i) sum += static_cast<float>(out[i]) * static_cast<float>(dout[i]);
  sum = over_warp<Plus>(sum);
  if (threadIdx.x % warp_size == 0) {
    static_cast<float*>(args.delta_BHS)[(token.row * sizes.heads + place.column) * sizes.positions + token.column] = sum;
  }
}

// ---- 2. Keys and values --------------------------------------------------------------------------

template <int K>
__global__ void __launch_bounds__(warps* warp_size, 2) key_value_kernel(FlashAttentionBackwardArgs args) {
  extern __shared__ __align__(128) Bf16 shared[];
  const FlashAttentionSizes& sizes = args.sizes;
  const int positions = static_cast<int>(sizes.positions);
  const int key_head = blockIdx.y, b = blockIdx.z;
  const int sharers = static_cast<int>(sizes.heads / sizes.key_value_heads);
  const int first_key = static_cast<int>(blockIdx.x) * rows;  // the first has the most queries
  const int row = threadIdx.x / warp_size * 16;               // this warp's first in the block
  const int query_tiles = (positions - first_key + rows - 1) / rows;
  const int steps = sharers * query_tiles;

  const Tile<rows, K> key{shared}, value{shared + rows * K};
  float* const statistics = reinterpret_cast<float*>(shared + 6 * rows * K);
  const auto stage = [&](int step, int which) {  // which: 0 queries, 1 gradients of the context
    return Tile<rows, K>{shared + (2 + step % 2 * 2 + which) * rows * K};
  };
  const auto statistic_of = [&](int step, int which) { return statistics + (step % 2 * 2 + which) * rows; };  // logsumexp, δ
  // Step: query heads that share these keys, one after the other, each from the diagonal on.
  const auto begin_stage = [&](int step) {
    const int head = key_head * sharers + step / query_tiles;
    const int first_query = first_key + step % query_tiles * rows, count = positions - first_query;
    stage(step, 0).begin_copy(of_head<Bf16>(args.q, sizes, sizes.row_stride, b, head) + first_query * sizes.row_stride,
                              sizes.row_stride, count);
    stage(step, 1).begin_copy(of_head<Bf16>(args.dout_NHK, sizes, sizes.heads * K, b, head) + first_query * sizes.heads * K,
                              sizes.heads * K, count);
    begin_copy(statistic_of(step, 0), static_cast<const float*>(args.logsumexp_BHS) + statistic(sizes, b, head) + first_query, rows, count);
    begin_copy(statistic_of(step, 1), static_cast<const float*>(args.delta_BHS) + statistic(sizes, b, head) + first_query, rows, count);
    end_of_group();
  };

  key.begin_copy(of_head<Bf16>(args.k, sizes, sizes.row_stride, b, key_head) + first_key * sizes.row_stride, sizes.row_stride,
                 positions - first_key);
  value.begin_copy(of_head<Bf16>(args.v, sizes, sizes.row_stride, b, key_head) + first_key * sizes.row_stride, sizes.row_stride,
                   positions - first_key);
  begin_stage(0);

  Accumulator<K> dkey[1], dvalue[1];
  const float scale_log2 = args.scale * log2_e;
  for (int step = 0; step < steps; ++step) {
    wait_for_copies();
    if (step + 1 < steps) begin_stage(step + 1);
    const float* const logsumexp = statistic_of(step, 0);
    const float* const delta = statistic_of(step, 1);

    // Pᵀ from Sᵀ = K Qᵀ, without queries that come before the key: those are in the diagonal's tile alone
    Accumulator<rows> p[1];
    multiply_by_rows(p, [&](int, int k) { return load_left(key, row, k); }, stage(step, 0));
    const bool diagonal = step % query_tiles == 0;
    p[0].for_each([&](float& s, int i, int j) {
      s = diagonal && j < row + i ? 0.0f : power_of_two(s * scale_log2 - logsumexp[j] * log2_e);
    });
    // dV += Pᵀ dO
    multiply_by_columns(dvalue, [&](int, int k) { return as_left(p[0], k); }, stage(step, 1));

    // dSᵀ = Pᵀ ∘ (dPᵀ − δ) from dPᵀ = V dOᵀ, then dK += dSᵀ Q
    Accumulator<rows> dscore[1];
    multiply_by_rows(dscore, [&](int, int k) { return load_left(value, row, k); }, stage(step, 1));
#pragma unroll
    for (int j = 0; j < rows / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = 8 * j + threadIdx.x % 4 * 2 + i % 2;
        dscore[0].c[j][i] = p[0].c[j][i] * (dscore[0].c[j][i] - delta[column]);
      }
    }
    multiply_by_columns(dkey, [&](int, int k) { return as_left(dscore[0], k); }, stage(step, 0));
  }
  store_rows(dkey[0], of_head<Bf16>(args.dk, sizes, sizes.row_stride, b, key_head), sizes.row_stride, first_key + row, positions, args.scale);
  store_rows(dvalue[0], of_head<Bf16>(args.dv, sizes, sizes.row_stride, b, key_head), sizes.row_stride, first_key + row, positions, 1.0f);
}

// ---- 3. Queries ----------------------------------------------------------------------------------

template <int K>
__global__ void __launch_bounds__(warps* warp_size, 2) query_kernel(FlashAttentionBackwardArgs args) {
  extern __shared__ __align__(128) Bf16 shared[];
  const FlashAttentionSizes& sizes = args.sizes;
  const int positions = static_cast<int>(sizes.positions);
  const int head = blockIdx.y, b = blockIdx.z;
  const int key_head = head / static_cast<int>(sizes.heads / sizes.key_value_heads);
  const int first_query = static_cast<int>(gridDim.x - 1 - blockIdx.x) * rows;
  const int row = threadIdx.x / warp_size * 16;
  const int tiles = first_query / rows + 1;

  const Tile<rows, K> query{shared}, dout{shared + rows * K};
  const Bf16* const keys = of_head<Bf16>(args.k, sizes, sizes.row_stride, b, key_head);
  const Bf16* const values = of_head<Bf16>(args.v, sizes, sizes.row_stride, b, key_head);
  const auto stage = [&](int tile, int which) {  // which: 0 keys, 1 values
    return Tile<rows, K>{shared + (2 + tile % 2 * 2 + which) * rows * K};
  };
  const auto begin_stage = [&](int tile) {
    stage(tile, 0).begin_copy(keys + tile * rows * sizes.row_stride, sizes.row_stride, positions - tile * rows);
    stage(tile, 1).begin_copy(values + tile * rows * sizes.row_stride, sizes.row_stride, positions - tile * rows);
    end_of_group();
  };
  query.begin_copy(of_head<Bf16>(args.q, sizes, sizes.row_stride, b, head) + first_query * sizes.row_stride, sizes.row_stride,
                   positions - first_query);
  dout.begin_copy(of_head<Bf16>(args.dout_NHK, sizes, sizes.heads * K, b, head) + first_query * sizes.heads * K, sizes.heads * K,
                  positions - first_query);
  begin_stage(0);

  // What this thread's two rows have
  float logsumexp[2] = {}, delta[2] = {};
#pragma unroll
  for (int which = 0; which < 2; ++which) {
    const int mine = first_query + row + threadIdx.x % warp_size / 4 + 8 * which;
    if (mine >= positions) continue;
    logsumexp[which] = static_cast<const float*>(args.logsumexp_BHS)[statistic(sizes, b, head) + mine] * log2_e;
    delta[which] = static_cast<const float*>(args.delta_BHS)[statistic(sizes, b, head) + mine];
  }

  Accumulator<K> dquery[1];
  const float scale_log2 = args.scale * log2_e;
  for (int tile = 0; tile < tiles; ++tile) {
    wait_for_copies();
    if (tile + 1 < tiles) begin_stage(tile + 1);

    // P from S = Q Kᵀ, and dP = dO Vᵀ
    Accumulator<rows> p[1], dscore[1];
    multiply_by_rows(p, [&](int, int k) { return load_left(query, row, k); }, stage(tile, 0));
    multiply_by_rows(dscore, [&](int, int k) { return load_left(dout, row, k); }, stage(tile, 1));
    const bool diagonal = tile + 1 == tiles;
    p[0].for_each([&](float& s, int i, int j) {
      s = diagonal && j > row + i ? 0.0f : power_of_two(s * scale_log2 - (i < 8 ? logsumexp[0] : logsumexp[1]));
    });

    // dS = P ∘ (dP − δ), then dQ += dS K
#pragma unroll
    for (int j = 0; j < rows / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) dscore[0].c[j][i] = p[0].c[j][i] * (dscore[0].c[j][i] - delta[i / 2]);
    }
    multiply_by_columns(dquery, [&](int, int k) { return as_left(dscore[0], k); }, stage(tile, 0));
  }
  store_rows(dquery[0], of_head<Bf16>(args.dq, sizes, sizes.row_stride, b, head), sizes.row_stride, first_query + row, positions, args.scale);
}

}  // namespace

void flash_attention_backward(const FlashAttentionBackwardArgs& args, const device::CudaQueue& queue) {
  static constexpr const char* op = "flash_attention_backward";
  const FlashAttentionSizes& sizes = args.sizes;
  if (sizes.sequences * sizes.heads * sizes.positions <= 0) return;
  SHARDBOOK_CHECK(aligned({args.q, args.k, args.v, args.dout_NHK}) && aligned({args.dq, args.dk, args.dv}, 4), op, ": tensors are not aligned");
  const unsigned tiles = grid_of(divide_up(sizes.positions, rows), op);
  const unsigned sequences = static_cast<unsigned>(sizes.sequences);
  with_head_dim(sizes, args.dtype, op, [&](auto width) {
    constexpr int k = decltype(width)::value;
    const std::int64_t threads = sizes.sequences * sizes.positions * sizes.heads * warp_size;
    delta_kernel<k><<<grid_of(divide_up(threads, pointwise_threads), op), pointwise_threads, 0, stream_of(queue)>>>(args);
    check_launch(op);
    thread_local bool asked_for_keys = false, asked_for_queries = false;
    launch_tiles(key_value_kernel<k>, dim3(tiles, static_cast<unsigned>(sizes.key_value_heads), sequences), warps * warp_size,
                 tiles_bytes<k> + statistics_bytes, args, queue, asked_for_keys, op);
    launch_tiles(query_kernel<k>, dim3(tiles, static_cast<unsigned>(sizes.heads), sequences), warps * warp_size, tiles_bytes<k>, args,
                 queue, asked_for_queries, op);
  });
}

}  // namespace shardbook::kernels::cuda
