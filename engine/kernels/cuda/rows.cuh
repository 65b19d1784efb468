// kernels/cuda/rows: how does a block keep a row in its registers?
//
// Norms take statistics of a row and then use the row again, so it stays in registers: it is read once. It stays there as it lies
// in memory (Words), in bf16 half of what it takes as f32, and is made f32 anew where it is used. A kernel that asks for all
// its rows before it uses the first, and has registers left for more blocks beside it, always has numbers on their way.
#pragma once

#include "engine/kernels/cuda/common.cuh"

namespace shardbook::kernels::cuda {

// The most threads of a row, so that a thread may have 128 registers.
inline constexpr int most_threads = 512;

// A row is cut into packs of N numbers that go round the threads: pack c · threads + thread is chunk c of
// a thread. Calls f(chunk, column) for this thread's chunks that lie in the row.
template <int N, int Chunks, class F>
__device__ inline void for_chunks(std::int64_t width, F f) {
#pragma unroll
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    const int column = (chunk * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * N;
    if (column < width) f(chunk, column);
  }
}

// f(Width<N>{}, Width<Chunks>{}, threads) for rows of this width: of 16, 24 and 32 numbers a thread those that leave the fewest
// places empty, the least of them. So 768 columns are one warp of 24 (two of 16 would be idle by a quarter, and took 61 us
// where this takes 54), and 2048 are four of 16.
template <class T, class F>
void with_row_shape(std::int64_t width, bool wide, const char* op, F f) {
  constexpr std::int64_t most = most_threads * 32;
  SHARDBOOK_CHECK(width > 0 && width <= most, op, " keeps a row in registers: at most ", most, " columns, not ", width);
  std::int64_t numbers = 0, threads = 0;
  for (const std::int64_t each : {16, 24, 32}) {
    const std::int64_t needed = divide_up(width, each * warp_size) * warp_size;
    if (needed <= most_threads && (numbers == 0 || needed * each < threads * numbers)) {
      numbers = each;
      threads = needed;
    }
  }
  with_width<T>(wide, [&](auto pack) {
    constexpr int n = decltype(pack)::value;
    if (numbers == 16) f(pack, Width<16 / n>{}, static_cast<unsigned>(threads));
    else if (numbers == 24) f(pack, Width<24 / n>{}, static_cast<unsigned>(threads));
    else f(pack, Width<32 / n>{}, static_cast<unsigned>(threads));
  });
}

}  // namespace shardbook::kernels::cuda
