// kernels/cuda/flash_attention_forward: attention's forward without scores in memory.
//
// A block has 128 queries of one head, 32 a warp, and goes over the keys by tiles of 64 up to its diagonal; the
// next tile of keys and values is copied while this one is multiplied. A warp keeps for its rows the largest
// score, the sum of exponentials and the context under it, all in registers (the online softmax, derived in
// notes/05_flash_attention.md). Scores of two products: S = Q Kᵀ, then O += P V with P from S's own registers.
//
// Flops: 4·K a pair of query and key, half of the square. Bytes: q, k, v, out once from HBM (keys again from L2
// for each block of queries). Reference: host/flash_attention.cpp. Source: Dao, "FlashAttention-2" (2023), for
// queries outside, keys inside, and one division at the end.
#include "engine/kernels/cuda/flash_attention.cuh"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda {
namespace {

constexpr int warps = 4;
constexpr int row_tiles = 2;  // of 16 queries, a warp
constexpr int warp_rows = 16 * row_tiles;
constexpr int query_rows = warps * warp_rows;
constexpr int key_rows = 64;

template <int K>
constexpr int shared_bytes = (query_rows + 4 * key_rows) * K * static_cast<int>(sizeof(Bf16));

// A row's largest score so far and the sum of exponentials under it: of the rows lane/4 and lane/4 + 8.
struct Online {
  float largest[2] = {minus_infinity, minus_infinity};
  float sum[2] = {};  // of this thread's columns; over the row's four threads at the end
};

// Takes a tile of scores into the sums, and leaves p in its place. `context` shrinks where a larger score comes.
template <int K>
__device__ inline void take(Online& online, Accumulator<key_rows>& score, Accumulator<K>& context, float scale_log2) {
  float largest[2] = {online.largest[0], online.largest[1]};
  score.for_each_row([&](float s, int which) { largest[which] = fmaxf(largest[which], s); });
  float shrink[2];
#pragma unroll
  for (int which = 0; which < 2; ++which) {
    largest[which] = over_row<Larger>(largest[which]);
    shrink[which] = power_of_two((online.largest[which] - largest[which]) * scale_log2);
    online.largest[which] = largest[which];
    online.sum[which] *= shrink[which];
    largest[which] *= scale_log2;
  }
  score.for_each_row([&](float& s, int which) {
    s = power_of_two(s * scale_log2 - largest[which]);
    online.sum[which] += s;
  });
  context.for_each_row([&](float& value, int which) { value *= shrink[which]; });
}

template <int K>
__global__ void __launch_bounds__(warps* warp_size, 2) forward_kernel(FlashAttentionForwardArgs args) {
  extern __shared__ __align__(128) Bf16 shared[];
  const FlashAttentionSizes& sizes = args.sizes;
  const int positions = static_cast<int>(sizes.positions);
  const int head = blockIdx.y, b = blockIdx.z;
  const int key_head = head / static_cast<int>(sizes.heads / sizes.key_value_heads);
  // Blocks with the most keys come first.
  const int first_query = static_cast<int>(gridDim.x - 1 - blockIdx.x) * query_rows;
  const int row = threadIdx.x / warp_size * warp_rows;  // this warp's first in the block
  const int tiles = (min(first_query + query_rows, positions) + key_rows - 1) / key_rows;

  const Tile<query_rows, K> query{shared};
  const Bf16* const keys = of_head<Bf16>(args.k, sizes, sizes.row_stride, b, key_head);
  const Bf16* const values = of_head<Bf16>(args.v, sizes, sizes.row_stride, b, key_head);
  const auto stage = [&](int tile, int which) {  // which: 0 keys, 1 values
    return Tile<key_rows, K>{shared + query_rows * K + (tile % 2 * 2 + which) * key_rows * K};
  };
  const auto begin_stage = [&](int tile) {
    stage(tile, 0).begin_copy(keys + tile * key_rows * sizes.row_stride, sizes.row_stride, positions - tile * key_rows);
    stage(tile, 1).begin_copy(values + tile * key_rows * sizes.row_stride, sizes.row_stride, positions - tile * key_rows);
    end_of_group();
  };

  query.begin_copy(of_head<Bf16>(args.q, sizes, sizes.row_stride, b, head) + first_query * sizes.row_stride, sizes.row_stride,
                   positions - first_query);
  begin_stage(0);

  Accumulator<K> context[row_tiles];
  Online online[row_tiles];
  const float scale_log2 = args.scale * log2_e;
  for (int tile = 0; tile < tiles; ++tile) {
    wait_for_copies();
    if (tile + 1 < tiles) begin_stage(tile + 1);
    // A warp whose queries all come before these keys has nothing to do.
    const int first_key = tile * key_rows;
    if (first_key > first_query + row + warp_rows - 1) continue;

    // S = Q Kᵀ, without keys that come after the query
    Accumulator<key_rows> score[row_tiles];
    multiply_by_rows(score, [&](int m, int k) { return load_left(query, row + 16 * m, k); }, stage(tile, 0));
    if (first_key + key_rows - 1 > first_query + row) {
#pragma unroll
      for (int m = 0; m < row_tiles; ++m) {
        score[m].for_each([&](float& s, int i, int j) {
          if (first_key + j > first_query + row + 16 * m + i) s = minus_infinity;
        });
      }
    }

    // P in place of S, then O += P V
#pragma unroll
    for (int m = 0; m < row_tiles; ++m) take(online[m], score[m], context[m], scale_log2);
    multiply_by_columns(context, [&](int m, int k) { return as_left(score[m], k); }, stage(tile, 1));
  }

  // One division at the end, and what backward needs
  Bf16* const out = of_head<Bf16>(args.out_NHK, sizes, sizes.heads * K, b, head);
  float* const logsumexp = static_cast<float*>(args.logsumexp_BHS) + statistic(sizes, b, head);
#pragma unroll
  for (int m = 0; m < row_tiles; ++m) {
    const int first = first_query + row + 16 * m;
    float sum[2];
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      sum[which] = over_row<Plus>(online[m].sum[which]);
      const int mine = first + threadIdx.x % warp_size / 4 + 8 * which;
      if (threadIdx.x % 4 == 0 && mine < positions) {
        logsumexp[mine] = args.scale * online[m].largest[which] + logf(sum[which]);
      }
    }
    context[m].for_each_row([&](float& value, int which) { value /= sum[which]; });
    store_rows(context[m], out, sizes.heads * K, first, positions, 1.0f);
  }
}

}  // namespace

void flash_attention_forward(const FlashAttentionForwardArgs& args, const device::CudaQueue& queue) {
  const FlashAttentionSizes& sizes = args.sizes;
  if (sizes.sequences * sizes.heads * sizes.positions <= 0) return;
  SHARDBOOK_CHECK(aligned({args.q, args.k, args.v}) && aligned({args.out_NHK}, 4), "flash_attention_forward: tensors are not aligned");
  const dim3 grid(grid_of(divide_up(sizes.positions, query_rows), "flash_attention_forward"), static_cast<unsigned>(sizes.heads),
                  static_cast<unsigned>(sizes.sequences));
  with_head_dim(sizes, args.dtype, "flash_attention_forward", [&](auto width) {
    constexpr int k = decltype(width)::value;
    thread_local bool asked = false;
    launch_tiles(forward_kernel<k>, grid, warps * warp_size, shared_bytes<k>, args, queue, asked, "flash_attention_forward");
  });
}

}  // namespace shardbook::kernels::cuda
