// kernels/cuda/flash_attention_forward: attention's forward without scores in memory.
//
// A block has 128 queries of one head, 32 a warp, and goes over the keys by tiles of 64 up to its diagonal; the
// next tile of keys and values is copied while this one is multiplied. A warp keeps for its rows a reference near the
// largest score, the sum of exponentials and the context under it, all in registers (the online softmax, derived in
// notes/05_flash_attention.md). Scores of two products: S = Q Kᵀ, then O += P V with P from S's own registers.
//
// Flops: 4·K a pair of query and key, half of the square. Bytes: q, k, v, out once from HBM (keys again from L2
// for each block of queries). Floor: the flops at the rate of matmuls; what it reaches beside cuDNN's: notes/05_flash_attention.md.
// Reference: kernels/host/flash_attention.cpp. Source: Dao, "FlashAttention-2" (2023), for
// queries outside, keys inside, and one division at the end.
#include "engine/kernels/cuda/flash_attention.cuh"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda {
namespace {

constexpr int row_tiles = 2;  // of 16 queries, a warp
constexpr int warp_rows = 16 * row_tiles;
constexpr int query_rows = flash_warps * warp_rows;
constexpr int key_rows = 64;

template <int K>
constexpr int shared_bytes = (query_rows + 4 * key_rows) * K * static_cast<int>(sizeof(Bf16));

// Sums of a row under a reference, in units of log2: of the rows lane/4 and lane/4 + 8.
struct Online {
  float reference[2] = {minus_infinity, minus_infinity};
  float sum[2] = {};  // of this thread's columns; over the row's four threads at the end
};

// A row's sums move to a larger reference only where a score exceeds the old one by a factor of 2^8: until then
// nothing overflows, and most tiles need not touch the context.
constexpr float slack = 8.0f;

//@ kernels.online_softmax.tile: Takes a tile of scores into the sums, and leaves p in its place; the context shrinks where the reference grows.
template <int K>
__device__ inline void take(Online& online, Accumulator<key_rows>& score, Accumulator<K>& context, float scale_log2) {
  float largest[2] = {minus_infinity, minus_infinity};
  score.for_each_row([&](float s, int which) { largest[which] = fmaxf(largest[which], s); });
#pragma unroll
  for (int which = 0; which < 2; ++which) largest[which] = over_row<Larger>(largest[which]) * scale_log2;
  const bool grows = largest[0] > online.reference[0] + slack || largest[1] > online.reference[1] + slack;
  if (__any_sync(0xFFFFFFFFu, grows)) {
    float shrink[2];
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const float reference = fmaxf(online.reference[which], largest[which]);
      shrink[which] = power_of_two(online.reference[which] - reference);
      online.reference[which] = reference;
      online.sum[which] *= shrink[which];
    }
    context.for_each_row([&](float& value, int which) { value *= shrink[which]; });
  }
  score.for_each_row([&](float& s, int which) {
    s = power_of_two(s * scale_log2 - online.reference[which]);
    online.sum[which] += s;
  });
}
//@end

// value / by, from 1 / by: with the remainder taken back, rounded as a division rounds (Markstein 1990).
__device__ inline float divided(float value, float by, float reciprocal) {
  const float quotient = value * reciprocal;
  return fmaf(fmaf(-quotient, by, value), reciprocal, quotient);
}

template <int K, bool Dropped>
__global__ void __launch_bounds__(flash_threads, 2) forward_kernel(FlashAttentionForwardArgs args) {
  extern __shared__ __align__(1024) Bf16 shared[];
  wait_for_kernel_before();
  const FlashAttentionSizes& sizes = args.sizes;
  const int positions = static_cast<int>(sizes.positions);
  const int head = blockIdx.x, b = blockIdx.y;
  const int key_head = head / static_cast<int>(sizes.heads / sizes.key_value_heads);
  const int first_query = static_cast<int>(gridDim.z - 1 - blockIdx.z) * query_rows;  // blocks with the most keys come first
  const int row = threadIdx.x / warp_size * warp_rows;  // this warp's first in the block
  const int tiles = (min(first_query + query_rows, positions) + key_rows - 1) / key_rows;

  using Queries = Tile<query_rows, K>;
  using Keys = Tile<key_rows, K>;
  const Queries query{static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))};
  const Bf16* const keys = of_head<Bf16>(args.k, sizes, sizes.row_stride, b, key_head);
  const Bf16* const values = of_head<Bf16>(args.v, sizes, sizes.row_stride, b, key_head);
  const auto stage = [&](int tile, int which) {  // which: 0 keys, 1 values
    return Keys{query.begin + Queries::bytes + (tile % 2 * 2 + which) * Keys::bytes};
  };
  const auto begin_stage = [&](int tile) {
    const std::int64_t first = static_cast<std::int64_t>(tile) * key_rows * sizes.row_stride;
    stage(tile, 0).template begin_copy<flash_threads>(keys + first, sizes.row_stride, positions - tile * key_rows);
    stage(tile, 1).template begin_copy<flash_threads>(values + first, sizes.row_stride, positions - tile * key_rows);
    end_of_group();
  };

  query.template begin_copy<flash_threads>(of_head<Bf16>(args.q, sizes, sizes.row_stride, b, head) + first_query * sizes.row_stride,
                                           sizes.row_stride, positions - first_query);
  begin_stage(0);

  Accumulator<K> context[row_tiles];
  Online online[row_tiles];
  const float scale_log2 = args.scale * log2_e;
  const std::uint32_t query_lane = query.lane_of_left(row);
  const auto take_tile = [&](int tile, auto on_diagonal) {
    const int first_key = tile * key_rows;
    // S = Q Kᵀ, without keys that come after the query
    Accumulator<key_rows> score[row_tiles];
    multiply_by_rows(score, [&](int m, int k) { return load_left<Queries>(query_lane, m, k); }, stage(tile, 0));
    if constexpr (decltype(on_diagonal)::value) {
#pragma unroll
      for (int m = 0; m < row_tiles; ++m) {
        score[m].for_each([&](float& s, int i, int j) {
          if (first_key + j > first_query + row + 16 * m + i) s = minus_infinity;
        });
      }
    }

    // P in place of S, then O += P V
#pragma unroll
    for (int m = 0; m < row_tiles; ++m) {
      take(online[m], score[m], context[m], scale_log2);
      if constexpr (Dropped) {
        const HeadMask mask(args.mask, sizes, b, head);
        score[m].for_each([&](float& p, int i, int j) {
          if (mask.drops(first_query + row + 16 * m + i, first_key + j)) p = 0.0f;
        });
      }
    }
    multiply_by_columns(context, [&](int m, int k) { return as_left(score[m], k); }, stage(tile, 1));
  };
  for (int tile = 0; tile < tiles; ++tile) {
    wait_for_copies();
    if (tile + 1 < tiles) begin_stage(tile + 1);
    // A warp whose queries all come before these keys has nothing to do; most tiles have no query that comes before a key.
    const int first_key = tile * key_rows, first = first_query + row;
    if (first_key + key_rows - 1 <= first) take_tile(tile, std::false_type{});
    else if (first_key <= first + warp_rows - 1) take_tile(tile, std::true_type{});
  }

  // One division at the end, and what backward needs
  Bf16* const out = of_head<Bf16>(args.out_NHK, sizes, sizes.heads * K, b, head);
  float* const logsumexp = static_cast<float*>(args.logsumexp_BHS) + statistic(sizes, b, head);
#pragma unroll
  for (int m = 0; m < row_tiles; ++m) {
    const int first = first_query + row + 16 * m;
    float sum[2], reciprocal[2];
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      sum[which] = over_row<Plus>(online[m].sum[which]);
      reciprocal[which] = __frcp_rn(sum[which]);
      const int mine = first + threadIdx.x % warp_size / 4 + 8 * which;
      if (threadIdx.x % 4 == 0 && mine < positions) logsumexp[mine] = (online[m].reference[which] + log2f(sum[which])) / log2_e;
    }
    context[m].for_each_row([&](float& value, int which) {
      if constexpr (Dropped) value *= args.mask.scale;
      value = divided(value, sum[which], reciprocal[which]);
    });
    store_rows(context[m], out, sizes.heads * K, first, positions, 1.0f);
  }
}

}  // namespace

void flash_attention_forward(const FlashAttentionForwardArgs& args, const device::CudaQueue& queue) {
  static constexpr const char* op = "flash_attention_forward";
  const FlashAttentionSizes& sizes = args.sizes;
  if (sizes.sequences * sizes.heads * sizes.positions <= 0) return;
  SHARDBOOK_CHECK(aligned({args.q, args.k, args.v}) && aligned({args.out_NHK}, 4), op, ": tensors are not aligned");
  const dim3 grid(static_cast<unsigned>(sizes.heads), static_cast<unsigned>(sizes.sequences), grid_of(divide_up(sizes.positions, query_rows), op));
  with_head_dim(sizes, args.mask, args.dtype, op, [&](auto width, auto dropped) {
    constexpr int k = decltype(width)::value;
    thread_local bool asked = false;
    launch_tiles(forward_kernel<k, decltype(dropped)::value>, grid, shared_bytes<k>, args, queue, asked, op);
  });
}

}  // namespace shardbook::kernels::cuda
