// kernels/cuda/mma_tiles: how does a warp multiply tiles of bf16 on tensor cores?
//
// Tensor cores multiply fragments: a 16 x 16 matrix of bf16 that lies spread over the registers of a warp (A), a
// 16 x 8 one (B), and a 16 x 8 accumulator of f32 (C). Thread l of the warp holds of C rows l/4 and l/4 + 8,
// columns 2·(l mod 4) and the next. An accumulator is spread just as an A is, so that what one product made, the
// next can take from registers: that is what fused attention lives on.
//
// A tile is Rows x K of bf16 in shared memory, row by row. Chunks of 16 bytes are permuted within each 128 bytes
// by an exclusive or with the row's number, so that 8 rows of one column of chunks, which ldmatrix reads at once,
// lie in 8 different groups of banks.
//
// Source: NVIDIA, PTX ISA 8.5, "Matrix Fragments for mma.m16n8k16", "ldmatrix", "cp.async". Needs sm_80.
#pragma once

#include "engine/kernels/cuda/common.cuh"

namespace shardbook::kernels::cuda {

// ---- Tiles in shared memory ----------------------------------------------------------------------

template <int Rows, int K>
struct Tile {
  static constexpr int row_bytes = 2 * K;
  static constexpr int chunks = K / 8;  // of 16 bytes, in a row
  static constexpr int bytes = Rows * row_bytes;
  static_assert(chunks == 4 || chunks == 8 || chunks == 16);

  std::uint32_t begin;  // in shared memory; a multiple of 256

  __device__ std::uint32_t address(int row, int chunk) const {
    constexpr int rows_in_128_bytes = chunks < 8 ? 8 / chunks : 1;
    constexpr int mask = chunks < 8 ? chunks - 1 : 7;
    return begin + row * row_bytes + (chunk ^ (row / rows_in_128_bytes & mask)) * 16;
  }

  // Where this lane's row of a fragment begins. Eight rows further the permutation is the same, and columns
  // [16k, 16k + 16) are an exclusive or away: see fragment().
  __device__ std::uint32_t lane_of_left(int row) const {  // left operands, and right ones by columns
    const int lane = threadIdx.x % warp_size;
    return address(row + lane % 16, lane / 16);
  }
  __device__ std::uint32_t lane_of_rows() const {  // right operands by rows
    const int lane = threadIdx.x % warp_size;
    return address(lane % 8 + lane / 16 * 8, lane / 8 % 2);
  }
  // Rows [16r, 16r + 16) from the lane's on and columns [16k, 16k + 16).
  __device__ static std::uint32_t fragment(std::uint32_t lane, int r, int k) { return (lane ^ 32 * k) + r * 16 * row_bytes; }

  // Begins to copy rows [0, count) of a matrix of `stride` elements a row; rows beyond become 0. All `Threads` threads
  // of the block call it. REQUIRES: rows are aligned to 16 bytes.
  template <int Threads>
  __device__ void begin_copy(const Bf16* from, std::int64_t stride, int count) const {
    constexpr int rows = Threads / chunks;  // at once
    static_assert(Rows % rows == 0 && rows % 8 == 0);
    const int row = threadIdx.x / chunks, chunk = threadIdx.x % chunks;
    const std::uint32_t to = address(row, chunk);
    const Bf16* source = from + row * stride + chunk * 8;
#pragma unroll
    for (int i = 0; i < Rows / rows; ++i) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + i * rows * row_bytes), "l"(source),
                   "r"(row + i * rows < count ? 16 : 0));
      source += rows * stride;
    }
  }
};

// A row of f32 beside a tile, copied likewise.
__device__ inline void begin_copy(float* to, const float* from, int length, int count) {
  for (int at = threadIdx.x; at < length; at += blockDim.x) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(to + at))),
                 "l"(at < count ? from + at : from), "r"(at < count ? 4 : 0));
  }
}

// Copies begun so far are one group; wait_for_copies() waits until all groups are there, for all threads.
__device__ inline void end_of_group() { asm volatile("cp.async.commit_group;"); }
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
}

// ---- Fragments -----------------------------------------------------------------------------------

// 16 x 16 of bf16, left operand.
struct Left {
  std::uint32_t pair[4];
};

// 16 x N of f32: c[j] are columns [8j, 8j + 8).
template <int N>
struct Accumulator {
  float c[N / 8][4] = {};

  // f(value, row, column) for each number of this thread; rows are 0 to 15.
  template <class F>
  __device__ void for_each(F f) {
    const int lane = threadIdx.x % warp_size;
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) f(c[j][i], lane / 4 + i / 2 * 8, 8 * j + lane % 4 * 2 + i % 2);
    }
  }
  // f(value, which): `which` says whether the number lies in this thread's first or second row.
  template <class F>
  __device__ void for_each_row(F f) {
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) f(c[j][i], i / 2);
    }
  }
};

__device__ inline std::uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// Columns [16k, 16k + 16) of an accumulator, each number through f and rounded to bf16, as a left operand.
template <int N, class F>
__device__ inline Left as_left(const Accumulator<N>& from, int k, F f) {
  const auto& low = from.c[2 * k];
  const auto& high = from.c[2 * k + 1];
  return {pack(f(low[0]), f(low[1])), pack(f(low[2]), f(low[3])), pack(f(high[0]), f(high[1])), pack(f(high[2]), f(high[3]))};
}
template <int N>
__device__ inline Left as_left(const Accumulator<N>& from, int k) {
  return as_left(from, k, [](float value) { return value; });
}

__device__ inline void load_four(std::uint32_t (&to)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address));
}
__device__ inline void load_four_transposed(std::uint32_t (&to)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address));
}

// Rows [16r, 16r + 16) from where `lane` is of a tile, and columns [16k, 16k + 16), as a left operand.
template <class T>
__device__ inline Left load_left(std::uint32_t lane, int r, int k) {
  Left left;
  load_four(left.pair, T::fragment(lane, r, k));
  return left;
}

__device__ inline void multiply_add(float (&c)[4], const Left& a, std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.pair[0]), "r"(a.pair[1]), "r"(a.pair[2]), "r"(a.pair[3]), "r"(b0), "r"(b1));
}

// c[m][i, r] += Σ_k a_m[i, k] · tile[r, k], for M left operands of 16 rows each; left(m, k) gives columns
// [16k, 16k + 16) of the m-th. Each part of the tile is read once for all M.
template <int M, int Rows, int K, class LeftOf>
__device__ inline void multiply_by_rows(Accumulator<Rows> (&c)[M], LeftOf left, const Tile<Rows, K>& tile) {
  const std::uint32_t lane = tile.lane_of_rows();
#pragma unroll
  for (int k = 0; k < K / 16; ++k) {
    Left a[M];
#pragma unroll
    for (int m = 0; m < M; ++m) a[m] = left(m, k);
#pragma unroll
    for (int r = 0; r < Rows / 16; ++r) {
      std::uint32_t b[4];
      load_four(b, tile.fragment(lane, r, k));
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply_add(c[m].c[2 * r], a[m], b[0], b[1]);
        multiply_add(c[m].c[2 * r + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// c[m][i, k] += Σ_r a_m[i, r] · tile[r, k], likewise.
template <int M, int Rows, int K, class LeftOf>
__device__ inline void multiply_by_columns(Accumulator<K> (&c)[M], LeftOf left, const Tile<Rows, K>& tile) {
  const std::uint32_t lane = tile.lane_of_left(0);
#pragma unroll
  for (int r = 0; r < Rows / 16; ++r) {
    Left a[M];
#pragma unroll
    for (int m = 0; m < M; ++m) a[m] = left(m, r);
#pragma unroll
    for (int k = 0; k < K / 16; ++k) {
      std::uint32_t b[4];
      load_four_transposed(b, tile.fragment(lane, r, k));
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply_add(c[m].c[2 * k], a[m], b[0], b[1]);
        multiply_add(c[m].c[2 * k + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// Stores rows [row, row + 16) of which `count` rows of the matrix are there, times `factor`, rounded to bf16.
template <int K>
__device__ inline void store_rows(const Accumulator<K>& from, Bf16* to, std::int64_t stride, int row, int count, float factor) {
  const int lane = threadIdx.x % warp_size;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int mine = row + lane / 4 + 8 * half;
    if (mine >= count) continue;
#pragma unroll
    for (int j = 0; j < K / 8; ++j) {
      *reinterpret_cast<std::uint32_t*>(to + mine * stride + 8 * j + lane % 4 * 2) =
          pack(factor * from.c[j][2 * half], factor * from.c[j][2 * half + 1]);
    }
  }
}

// Over the four threads that share a row of an accumulator.
template <class Combine>
__device__ inline float over_row(float value) {
  value = Combine{}(value, __shfl_xor_sync(0xFFFFFFFFu, value, 1));
  return Combine{}(value, __shfl_xor_sync(0xFFFFFFFFu, value, 2));
}

}  // namespace shardbook::kernels::cuda
