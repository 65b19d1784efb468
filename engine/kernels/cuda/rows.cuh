// kernels/cuda/rows: how does a block keep a row in its registers?
//
// Norms take statistics of a row and then use the row again: it is read once, 16 numbers a thread.
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

// f(Width<N>{}, Width<Chunks>{}, threads) for rows of this width: 16 numbers a thread, or 32 where 512
// threads would not do.
template <class T, class F>
void with_row_shape(std::int64_t width, bool wide, const char* op, F f) {
  with_width<T>(wide, [&](auto pack) {
    constexpr int n = decltype(pack)::value;
    SHARDBOOK_CHECK(width > 0 && width <= most_threads * 32, op, " keeps a row in registers: at most ",
                    most_threads * 32, " columns, not ", width);
    if (width <= most_threads * 16) {
      f(pack, Width<16 / n>{}, static_cast<unsigned>(divide_up(divide_up(width, 16), warp_size) * warp_size));
    } else {
      f(pack, Width<32 / n>{}, static_cast<unsigned>(divide_up(divide_up(width, 32), warp_size) * warp_size));
    }
  });
}

}  // namespace shardbook::kernels::cuda
