// kernels/cuda/flash_attention_backward: attention's backward without probabilities in memory.
//
// Two kernels, without atomics, so that a run repeats bit for bit:
//   1. dq: a block has 128 queries and goes over their keys, dQ += dS K. It makes δ = Σ dout ∘ out first, one number a
//      query and head: equal to Σ_t p·dp, so that p need not be kept.
//   2. dk and dv: a block has some keys (64 of 128 numbers, 128 of fewer), and goes over all queries that see them, of
//      all query heads that share its key-value head. It works on transposed scores, Sᵀ = K Qᵀ, so that Pᵀ and dSᵀ are
//      already in the registers that the products dV += Pᵀ dO and dK += dSᵀ Q want.
// Scores and dp are made in both: seven products where float atomics on dq would need five.
//
// Flops: 14·K a pair of query and key (10·K count), half of the square. Bytes: q, k, v, out, dout and dq, dk, dv once from HBM, and
// two f32 a query and head (what a block needs again comes from L2). Floor: the flops at the rate of matmuls; what it reaches
// beside cuDNN's: notes/05_flash_attention.md. Reference: kernels/host/flash_attention.cpp.
// Formulas: notes/05_flash_attention.md. Source: Dao, "FlashAttention-2" (2023), §3.
#include "engine/kernels/cuda/flash_attention.cuh"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda {
namespace {

// How a head dimension is cut: 16 · row_tiles rows a warp of what a block owns, and tiles of so many columns of what it
// goes over. More rows a warp read shared memory less often; the registers are full in each.
template <int Rows, int Columns>
struct Cut {
  static constexpr int row_tiles = Rows / (16 * flash_warps);
  static constexpr int rows = Rows, columns = Columns;
};
template <int K>
using KeyCut = std::conditional_t<K == 128, Cut<64, 64>, Cut<128, 32>>;
template <int K>
using QueryCut = std::conditional_t<K == 128, Cut<128, 32>, Cut<128, 64>>;

template <class C, int K>
constexpr int tiles_bytes = (2 * C::rows + 4 * C::columns) * K * static_cast<int>(sizeof(Bf16));
template <class C>
constexpr int statistics_bytes = 4 * C::columns * static_cast<int>(sizeof(float));

// ---- 1. Queries ----------------------------------------------------------------------------------

// A thread's quarter of a row's Σ dout ∘ out, for over_row().
template <int K>
__device__ inline float row_product(const FlashAttentionBackwardArgs& args, const FlashAttentionSizes& sizes, int b, int head, int query) {
  constexpr int each = 8;  // numbers of 16 bytes
  const std::int64_t first = ((b * sizes.positions + query) * sizes.heads + head) * K + threadIdx.x % 4 * each;
  const Bf16* const out = static_cast<const Bf16*>(args.out_NHK) + first;
  const Bf16* const dout = static_cast<const Bf16*>(args.dout_NHK) + first;
  float sum = 0.0f;
#pragma unroll
  for (int at = 0; at < K; at += 4 * each) {
    const uint4 eight_out = *reinterpret_cast<const uint4*>(out + at), eight_dout = *reinterpret_cast<const uint4*>(dout + at);
    const Bf16* const x = reinterpret_cast<const Bf16*>(&eight_out);
    const Bf16* const y = reinterpret_cast<const Bf16*>(&eight_dout);
#pragma unroll
    for (int i = 0; i < each; ++i) sum += static_cast<float>(x[i]) * static_cast<float>(y[i]);
  }
  return sum;
}

template <int K, bool Dropped>
__global__ void __launch_bounds__(flash_threads, 2) query_kernel(FlashAttentionBackwardArgs args) {
  // Whose queries these are, and how many tiles of keys they see
  extern __shared__ __align__(1024) Bf16 shared[];
  wait_for_kernel_before();
  using C = QueryCut<K>;
  constexpr int M = C::row_tiles;
  const FlashAttentionSizes& sizes = args.sizes;
  const int positions = static_cast<int>(sizes.positions);
  const int head = blockIdx.x, b = blockIdx.y;
  const int key_head = head / static_cast<int>(sizes.heads / sizes.key_value_heads);
  const int first_query = static_cast<int>(gridDim.z - 1 - blockIdx.z) * C::rows;  // the first has the most keys
  const int row = threadIdx.x / warp_size * 16 * M;
  const int tiles = (min(first_query + C::rows, positions) + C::columns - 1) / C::columns;

  // In shared memory Q and dO stay, and tiles of K and V come in two stages: one is used while the next is copied
  using Queries = Tile<C::rows, K>;
  using Keys = Tile<C::columns, K>;
  const Queries query{static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))}, dout{query.begin + Queries::bytes};
  const Bf16* const keys = of_head<Bf16>(args.k, sizes, sizes.row_stride, b, key_head);
  const Bf16* const values = of_head<Bf16>(args.v, sizes, sizes.row_stride, b, key_head);
  const auto stage = [&](int tile, int which) {  // which: 0 keys, 1 values
    return Keys{dout.begin + Queries::bytes + (tile % 2 * 2 + which) * Keys::bytes};
  };
  const auto begin_stage = [&](int tile) {
    const std::int64_t first = static_cast<std::int64_t>(tile) * C::columns * sizes.row_stride;
    stage(tile, 0).template begin_copy<flash_threads>(keys + first, sizes.row_stride, positions - tile * C::columns);
    stage(tile, 1).template begin_copy<flash_threads>(values + first, sizes.row_stride, positions - tile * C::columns);
    end_of_group();
  };
  query.template begin_copy<flash_threads>(of_head<Bf16>(args.q, sizes, sizes.row_stride, b, head) + first_query * sizes.row_stride,
                                           sizes.row_stride, positions - first_query);
  dout.template begin_copy<flash_threads>(of_head<Bf16>(args.dout_NHK, sizes, sizes.heads * K, b, head) + first_query * sizes.heads * K,
                                          sizes.heads * K, positions - first_query);
  begin_stage(0);

  // What this thread's rows have: the logsumexp, and δ, which is made here
  float logsumexp[M][2] = {}, delta[M][2] = {};
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const int mine = first_query + row + 16 * m + threadIdx.x % warp_size / 4 + 8 * which;
      const bool there = mine < positions;
      const float sum = over_row<Plus>(there ? row_product<K>(args, sizes, b, head, mine) : 0.0f);
      if (!there) continue;
      const std::int64_t at = statistic(sizes, b, head) + mine;
      if (threadIdx.x % 4 == 0) static_cast<float*>(args.delta_BHS)[at] = sum;
      logsumexp[m][which] = static_cast<const float*>(args.logsumexp_BHS)[at] * log2_e;
      delta[m][which] = sum;
    }
  }

  // What a tile of keys adds
  Accumulator<K> dquery[M];
  const float scale_log2 = args.scale * log2_e;
  const std::uint32_t query_lane = query.lane_of_left(row), dout_lane = dout.lane_of_left(row);
  const auto take_tile = [&](int tile, auto on_diagonal) {
    const int first_key = tile * C::columns, mine = first_query + row;
    // P from S = Q Kᵀ, without keys that come after the query, and dP = dO Vᵀ
    Accumulator<C::columns> p[M], dscore[M];
    multiply_by_rows(p, [&](int m, int k) { return load_left<Queries>(query_lane, m, k); }, stage(tile, 0));
    multiply_by_rows(dscore, [&](int m, int k) { return load_left<Queries>(dout_lane, m, k); }, stage(tile, 1));
#pragma unroll
    for (int m = 0; m < M; ++m) {
      p[m].for_each_row([&](float& s, int which) { s = power_of_two(s * scale_log2 - logsumexp[m][which]); });
    }
    if constexpr (decltype(on_diagonal)::value) {
#pragma unroll
      for (int m = 0; m < M; ++m) {
        p[m].for_each([&](float& s, int i, int j) {
          if (first_key + j > mine + 16 * m + i) s = 0.0f;
        });
      }
    }
    if constexpr (Dropped) {
      const HeadMask mask(args.mask, sizes, b, head);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        dscore[m].for_each([&](float& dp, int i, int j) { dp = mask.drops(mine + 16 * m + i, first_key + j) ? 0.0f : dp * args.mask.scale; });
      }
    }

    // dS = P ∘ (dP − δ), then dQ += dS K
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int j = 0; j < C::columns / 8; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) dscore[m].c[j][i] = p[m].c[j][i] * (dscore[m].c[j][i] - delta[m][i / 2]);
      }
    }
    multiply_by_columns(dquery, [&](int m, int k) { return as_left(dscore[m], k); }, stage(tile, 0));
  };

  // All tiles; a warp whose queries all come before these keys sees none of them
  for (int tile = 0; tile < tiles; ++tile) {
    wait_for_copies();
    if (tile + 1 < tiles) begin_stage(tile + 1);
    const int first_key = tile * C::columns, mine = first_query + row;
    if (first_key + C::columns - 1 <= mine) take_tile(tile, std::false_type{});
    else if (first_key <= mine + 16 * M - 1) take_tile(tile, std::true_type{});
  }

  // Out: dQ, with the scale of the scores
#pragma unroll
  for (int m = 0; m < M; ++m) {
    store_rows(dquery[m], of_head<Bf16>(args.dq, sizes, sizes.row_stride, b, head), sizes.row_stride, first_query + row + 16 * m, positions,
               args.scale);
  }
}

// ---- 2. Keys and values --------------------------------------------------------------------------

// f(number, m, which, its column's statistic) for each number of transposed scores: `which` is 4j + i of Accumulator::c.
template <int M, int N, class F>
__device__ inline void for_each_pair(Accumulator<N> (&of)[M], const float* statistics, F f) {
#pragma unroll
  for (int j = 0; j < N / 8; ++j) {
    const float2 two = *reinterpret_cast<const float2*>(statistics + 8 * j);
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) f(of[m].c[j][i], m, 4 * j + i, i % 2 == 0 ? two.x : two.y);
    }
  }
}

// Of a probability that was dropped, dv has no part and dp is 0; until both are made, its sign says so.
__device__ inline float kept(float p) { return fmaxf(p, 0.0f); }

template <int K, bool Dropped>
__global__ void __launch_bounds__(flash_threads, 2) key_value_kernel(FlashAttentionBackwardArgs args) {
  // Whose keys these are, and how many tiles of queries see them: of each head that shares them
  extern __shared__ __align__(1024) Bf16 shared[];
  wait_for_kernel_before();
  using C = KeyCut<K>;
  constexpr int M = C::row_tiles;
  const FlashAttentionSizes& sizes = args.sizes;
  const int positions = static_cast<int>(sizes.positions);
  const int key_head = blockIdx.x, b = blockIdx.z;
  const int sharers = static_cast<int>(sizes.heads / sizes.key_value_heads);
  const int first_key = static_cast<int>(blockIdx.y) * C::rows;  // the first has the most queries
  const int row = threadIdx.x / warp_size * 16 * M;              // this warp's first in the block
  const int query_tiles = (positions - first_key + C::columns - 1) / C::columns;
  const int steps = sharers * query_tiles;

  // In shared memory K and V stay, and tiles of Q and dO come in two stages, each with its queries' statistics
  using Keys = Tile<C::rows, K>;
  using Queries = Tile<C::columns, K>;
  const Keys key{static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))}, value{key.begin + Keys::bytes};
  float* const statistics = reinterpret_cast<float*>(shared) + tiles_bytes<C, K> / static_cast<int>(sizeof(float));
  const auto stage = [&](int step, int which) {  // which: 0 queries, 1 gradients of the context
    return Queries{value.begin + Keys::bytes + (step % 2 * 2 + which) * Queries::bytes};
  };
  const auto statistic_of = [&](int step, int which) { return statistics + (step % 2 * 2 + which) * C::columns; };  // logsumexp, δ
  // Step: query heads that share these keys, one after the other, each from the diagonal on.
  const auto head_of = [&](int step) { return key_head * sharers + step / query_tiles; };
  const auto query_of = [&](int step) { return first_key + step % query_tiles * C::columns; };
  const auto begin_stage = [&](int step) {
    const int head = head_of(step), first_query = query_of(step), count = positions - first_query;
    stage(step, 0).template begin_copy<flash_threads>(
        of_head<Bf16>(args.q, sizes, sizes.row_stride, b, head) + first_query * sizes.row_stride, sizes.row_stride, count);
    stage(step, 1).template begin_copy<flash_threads>(
        of_head<Bf16>(args.dout_NHK, sizes, sizes.heads * K, b, head) + first_query * sizes.heads * K, sizes.heads * K, count);
    const std::int64_t first = statistic(sizes, b, head) + first_query;
    begin_copy(statistic_of(step, 0), static_cast<const float*>(args.logsumexp_BHS) + first, C::columns, count);
    begin_copy(statistic_of(step, 1), static_cast<const float*>(args.delta_BHS) + first, C::columns, count);
    end_of_group();
  };

  key.template begin_copy<flash_threads>(of_head<Bf16>(args.k, sizes, sizes.row_stride, b, key_head) + first_key * sizes.row_stride,
                                         sizes.row_stride, positions - first_key);
  value.template begin_copy<flash_threads>(of_head<Bf16>(args.v, sizes, sizes.row_stride, b, key_head) + first_key * sizes.row_stride,
                                           sizes.row_stride, positions - first_key);
  begin_stage(0);

  // What a tile of queries adds
  Accumulator<K> dkey[M], dvalue[M];
  const float scale_log2 = args.scale * log2_e;
  const std::uint32_t key_lane = key.lane_of_left(row), value_lane = value.lane_of_left(row);
  const int column = threadIdx.x % 4 * 2;  // this thread's first of eight
  const auto take_step = [&](int step, auto on_diagonal) {
    const int first_query = query_of(step), mine = first_key + row;
    // Pᵀ from Sᵀ = K Qᵀ, without queries that come before the key
    Accumulator<C::columns> p[M];
    multiply_by_rows(p, [&](int m, int k) { return load_left<Keys>(key_lane, m, k); }, stage(step, 0));
    for_each_pair(p, statistic_of(step, 0) + column, [&](float& s, int, int, float logsumexp) {
      s = power_of_two(s * scale_log2 - logsumexp * log2_e);
    });
    if constexpr (decltype(on_diagonal)::value) {
#pragma unroll
      for (int m = 0; m < M; ++m) {
        p[m].for_each([&](float& s, int i, int j) {
          if (first_query + j < mine + 16 * m + i) s = 0.0f;
        });
      }
    }
    if constexpr (Dropped) {
      const HeadMask mask(args.mask, sizes, b, head_of(step));
#pragma unroll
      for (int m = 0; m < M; ++m) {
        p[m].for_each([&](float& weight, int i, int j) {
          if (mask.drops(first_query + j, mine + 16 * m + i)) weight = -weight;
        });
      }
    }
    // dV += Pᵀ dO
    multiply_by_columns(dvalue, [&](int m, int k) {
      if constexpr (Dropped) return as_left(p[m], k, kept);
      else return as_left(p[m], k);
    }, stage(step, 1));

    // dSᵀ = Pᵀ ∘ (dPᵀ − δ) from dPᵀ = V dOᵀ, then dK += dSᵀ Q
    Accumulator<C::columns> dscore[M];
    multiply_by_rows(dscore, [&](int m, int k) { return load_left<Keys>(value_lane, m, k); }, stage(step, 1));
    for_each_pair(dscore, statistic_of(step, 1) + column, [&](float& dp, int m, int at, float delta) {
      float weight = p[m].c[at / 4][at % 4];
      if constexpr (Dropped) {
        dp = signbit(weight) ? 0.0f : dp * args.mask.scale;
        weight = fabsf(weight);
      }
      dp = weight * (dp - delta);
    });
    multiply_by_columns(dkey, [&](int m, int k) { return as_left(dscore[m], k); }, stage(step, 0));
  };

  // All tiles; queries that come before all of a warp's keys see none of them, and from the diagonal on, all see all
  for (int step = 0; step < steps; ++step) {
    wait_for_copies();
    if (step + 1 < steps) begin_stage(step + 1);
    const int first_query = query_of(step), mine = first_key + row;
    if (first_query >= mine + 16 * M - 1) take_step(step, std::false_type{});
    else if (first_query + C::columns - 1 >= mine) take_step(step, std::true_type{});
  }

  // Out: dK, with the scale of the scores, and dV, with that of what was kept
#pragma unroll
  for (int m = 0; m < M; ++m) {
    const int first = first_key + row + 16 * m;
    store_rows(dkey[m], of_head<Bf16>(args.dk, sizes, sizes.row_stride, b, key_head), sizes.row_stride, first, positions, args.scale);
    store_rows(dvalue[m], of_head<Bf16>(args.dv, sizes, sizes.row_stride, b, key_head), sizes.row_stride, first, positions,
               Dropped ? args.mask.scale : 1.0f);
  }
}

}  // namespace

void flash_attention_backward(const FlashAttentionBackwardArgs& args, const device::CudaQueue& queue) {
  static constexpr const char* op = "flash_attention_backward";
  const FlashAttentionSizes& sizes = args.sizes;
  if (sizes.sequences * sizes.heads * sizes.positions <= 0) return;
  SHARDBOOK_CHECK(aligned({args.q, args.k, args.v, args.out_NHK, args.dout_NHK}) && aligned({args.dq, args.dk, args.dv}, 4), op, ": tensors are not aligned");
  with_head_dim(sizes, args.mask, args.dtype, op, [&](auto width, auto dropped) {
    constexpr int k = decltype(width)::value;
    constexpr bool drops = decltype(dropped)::value;
    const unsigned key_heads = static_cast<unsigned>(sizes.key_value_heads), heads = static_cast<unsigned>(sizes.heads);
    const unsigned sequences = static_cast<unsigned>(sizes.sequences);
    const auto tiles = [&](int rows) { return grid_of(divide_up(sizes.positions, rows), op); };
    thread_local bool asked_for_keys = false, asked_for_queries = false;
    launch_tiles(query_kernel<k, drops>, dim3(heads, sequences, tiles(QueryCut<k>::rows)), tiles_bytes<QueryCut<k>, k>, args, queue, asked_for_queries, op);
    // Sequence by sequence: what its blocks share stays in L2
    launch_tiles(key_value_kernel<k, drops>, dim3(key_heads, tiles(KeyCut<k>::rows), sequences),
                 tiles_bytes<KeyCut<k>, k> + statistics_bytes<KeyCut<k>>, args, queue, asked_for_keys, op);
  });
}

}  // namespace shardbook::kernels::cuda
