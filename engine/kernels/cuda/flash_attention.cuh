// kernels/cuda/flash_attention: what the forward and the backward kernels share.
#pragma once

#include <type_traits>

#include "engine/kernels/arguments.hpp"
#include "engine/kernels/cuda/mma_tiles.cuh"
#include "engine/kernels/random.hpp"

namespace shardbook::kernels::cuda {

constexpr float log2_e = 1.44269504088896340736f;
constexpr float minus_infinity = -__builtin_huge_valf();
constexpr int flash_warps = 4;
constexpr int flash_threads = flash_warps * warp_size;

// 2ˣ, by the hardware's approximation: relative error below 2^-22.
__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Where sequence b's rows of one head begin.
template <class T>
__device__ inline T* of_head(const void* from, const FlashAttentionSizes& sizes, std::int64_t row, int b, int head) {
  return const_cast<T*>(static_cast<const T*>(from)) + b * sizes.positions * row + head * sizes.head_dim;
}
__device__ inline std::int64_t statistic(const FlashAttentionSizes& sizes, int b, int head) {
  return (b * sizes.heads + head) * sizes.positions;
}

// Which probabilities of one head of one sequence are dropped: those that the unfused form drops. A mixing makes the draws
// of an element and the next (random.hpp), so both are taken from one where they can be.
struct HeadMask {
  __device__ HeadMask(const DropoutMask& mask, const FlashAttentionSizes& sizes, int b, int head)
      : key(mask.key), threshold(mask.threshold), positions(sizes.positions),
        first(static_cast<std::uint64_t>(mask.first + b * mask.stride + head * sizes.positions * sizes.positions)) {}

  // f(value, dropped) for scores of queries from `query` on and keys from `at` on, an even number.
  template <int N, class F>
  __device__ void for_each(Accumulator<N>& scores, int query, int at, F f) const {
    const int lane = threadIdx.x % warp_size;
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int my_query = query + lane / 4 + 8 * half, my_key = at + 8 * j + lane % 4 * 2;
        bool dropped[2];
        if (paired()) {
          const std::uint64_t draws = draws_of_pair(key, element(my_query, my_key) / 2);
          dropped[0] = static_cast<std::uint32_t>(draws) < threshold;
          dropped[1] = static_cast<std::uint32_t>(draws >> 32) < threshold;
        } else {
          for (int i = 0; i < 2; ++i) dropped[i] = is_dropped(key, element(my_query, my_key + i), threshold);
        }
        f(scores.c[j][2 * half], dropped[0]);
        f(scores.c[j][2 * half + 1], dropped[1]);
      }
    }
  }
  // The same of transposed scores. The two keys of one draw lie in lanes 4 apart, the queries of a lane side by side: each
  // of the two lanes draws for one of the queries, and they exchange.
  template <int N, class F>
  __device__ void for_each_transposed(Accumulator<N>& scores, int query, int at, F f) const {
    const int lane = threadIdx.x % warp_size, odd = lane / 4 % 2;
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int my_query = query + 8 * j + lane % 4 * 2, my_key = at + lane / 4 + 8 * half;
        bool dropped[2];
        if (paired()) {
          const std::uint64_t draws = draws_of_pair(key, element(my_query + odd, my_key - odd) / 2);
          const std::uint32_t low = static_cast<std::uint32_t>(draws), high = static_cast<std::uint32_t>(draws >> 32);
          const std::uint32_t mine = odd ? high : low, other = __shfl_xor_sync(0xFFFFFFFFu, odd ? low : high, 4);
          dropped[0] = (odd ? other : mine) < threshold;
          dropped[1] = (odd ? mine : other) < threshold;
        } else {
          for (int i = 0; i < 2; ++i) dropped[i] = is_dropped(key, element(my_query + i, my_key), threshold);
        }
        f(scores.c[j][2 * half], dropped[0]);
        f(scores.c[j][2 * half + 1], dropped[1]);
      }
    }
  }

 private:
  __device__ bool paired() const { return positions % 2 == 0 && first % 2 == 0; }
  __device__ std::uint64_t element(int query, int at) const { return first + static_cast<std::uint64_t>(query * positions + at); }

  std::uint64_t key;
  std::uint32_t threshold;
  std::int64_t positions;
  std::uint64_t first;
};

// f(Width<K>{}, dropped) with the head dimension, and whether something is dropped as a std::bool_constant.
template <class F>
void with_head_dim(const FlashAttentionSizes& sizes, const DropoutMask& mask, DType dtype, const char* op, F f) {
  SHARDBOOK_CHECK(dtype == DType::bf16, op, " on cuda is for bf16, not ", base::name_of(dtype));
  SHARDBOOK_CHECK(sizes.row_stride % 8 == 0, op, " copies 16 bytes at a time: rows of ", sizes.row_stride, " numbers are not so aligned");
  const auto of_width = [&](auto width) { return mask.threshold == 0 ? f(width, std::false_type{}) : f(width, std::true_type{}); };
  if (sizes.head_dim == 128) return of_width(Width<128>{});
  if (sizes.head_dim == 64) return of_width(Width<64>{});
  SHARDBOOK_CHECK(sizes.head_dim == 32, op, " on cuda is for heads of 32, 64 or 128, not ", sizes.head_dim);
  of_width(Width<32>{});
}

// A kernel with more shared memory than 48 KiB must ask for it, once on each device; a device belongs to a thread.
template <class Args>
void launch_tiles(void (*kernel)(Args), dim3 grid, int shared_bytes, const Args& args, const device::CudaQueue& queue, bool& asked,
                  const char* op) {
  if (!asked) {
    const cudaError_t code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    SHARDBOOK_CHECK(code == cudaSuccess, op, " needs ", shared_bytes, " bytes of shared memory: ", cudaGetErrorString(code));
    asked = true;
  }
  kernel<<<grid, flash_threads, shared_bytes, stream_of(queue)>>>(args);
  check_launch(op);
}

}  // namespace shardbook::kernels::cuda
