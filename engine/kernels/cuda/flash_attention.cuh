// kernels/cuda/flash_attention: what the forward and the backward kernels share.
#pragma once

#include "engine/kernels/arguments.hpp"
#include "engine/kernels/cuda/mma_tiles.cuh"

namespace shardbook::kernels::cuda {

constexpr float log2_e = 1.44269504088896340736f;
constexpr float minus_infinity = -__builtin_huge_valf();

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

// f(Width<K>{}) with the head dimension.
template <class F>
void with_head_dim(const FlashAttentionSizes& sizes, DType dtype, const char* op, F f) {
  SHARDBOOK_CHECK(dtype == DType::bf16, op, " on cuda is for bf16, not ", base::name_of(dtype));
  SHARDBOOK_CHECK(sizes.row_stride % 8 == 0, op, " copies 16 bytes at a time: rows of ", sizes.row_stride, " numbers are not so aligned");
  if (sizes.head_dim == 128) return f(Width<128>{});
  if (sizes.head_dim == 64) return f(Width<64>{});
  SHARDBOOK_CHECK(sizes.head_dim == 32, op, " on cuda is for heads of 32, 64 or 128, not ", sizes.head_dim);
  f(Width<32>{});
}

// A kernel with more shared memory than 48 KiB must ask for it, once on each device; a device belongs to a thread.
template <class Args>
void launch_tiles(void (*kernel)(Args), dim3 grid, int threads, int shared_bytes, const Args& args, const device::CudaQueue& queue,
                  bool& asked, const char* op) {
  if (!asked) {
    const cudaError_t code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    SHARDBOOK_CHECK(code == cudaSuccess, op, " needs ", shared_bytes, " bytes of shared memory: ", cudaGetErrorString(code));
    asked = true;
  }
  kernel<<<grid, threads, shared_bytes, stream_of(queue)>>>(args);
  check_launch(op);
}

}  // namespace shardbook::kernels::cuda
