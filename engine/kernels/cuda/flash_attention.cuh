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

// Which probabilities of one head of one sequence are dropped: those that the unfused form drops. Each is drawn by itself: a
// mixing makes the draws of two elements side by side (random.hpp), but taking both from one gained no time here.
class HeadMask {
 public:
  __device__ HeadMask(const DropoutMask& mask, const FlashAttentionSizes& sizes, int b, int head)
      : key_(key_of(mask)), threshold_(mask.threshold), positions_(sizes.positions),
        first_(static_cast<std::uint64_t>(mask.first + b * mask.stride + head * sizes.positions * sizes.positions)) {}
  __device__ bool drops(int query, int key) const {
    return is_dropped(key_, first_ + static_cast<std::uint64_t>(query * positions_ + key), threshold_);
  }

 private:
  std::uint64_t key_;
  std::uint32_t threshold_;
  std::int64_t positions_;
  std::uint64_t first_;
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
  launch(op, kernel, grid, flash_threads, shared_bytes, queue, args);
}

}  // namespace shardbook::kernels::cuda
