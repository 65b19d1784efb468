// kernels/cuda/common: what do all CUDA kernels share?
//
// Memory-bound kernels on a GPU run at the speed of its memory only if each thread moves 16 bytes at a
// time. A Pack is that: N numbers of storage type T, loaded by one or more 16-byte accesses, seen as f32.
// Where a row's length or an address does not allow it, the same kernel runs with N = 1.
//
// Invariants
//   - numbers are bf16 or f32 in memory and f32 in registers; one rounding, to nearest even, at the store.
//   - every sum has one order: a thread adds its own numbers in rising order, lanes by a butterfly,
//     warps in rising order. No atomics.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "engine/base/check.hpp"
#include "engine/base/types.hpp"
#include "engine/device/cuda/early.cuh"
#include "engine/device/cuda/mark_kernel.hpp"
#include "engine/device/cuda_queue.hpp"

namespace shardbook::kernels::cuda {

using Bf16 = __nv_bfloat16;

inline constexpr int warp_size = 32;
inline constexpr int pointwise_threads = 256;

// ---- Packs ---------------------------------------------------------------------------------------

// N numbers of T as they lie in memory, in 32-bit words: in bf16 half the registers that they take as f32.
template <class T, int N>
struct Words {
  static_assert(N * sizeof(T) % 4 == 0);
  static constexpr int count = N * static_cast<int>(sizeof(T)) / 4;
  std::uint32_t word[count];
};
template <>
struct Words<Bf16, 1> {
  Bf16 only;
};

// REQUIRES: `from` is aligned to N numbers of T, or to 16 bytes where those are more. So is `to` below.
template <int N, class T>
__device__ inline Words<T, N> load_words(const T* from) {
  Words<T, N> words;
  if constexpr (N * sizeof(T) == 2) {
    words.only = *from;
  } else if constexpr (Words<T, N>::count % 4 == 0) {
#pragma unroll
    for (int i = 0; i < words.count; i += 4) {
      const uint4 four = *reinterpret_cast<const uint4*>(from + i * 4 / sizeof(T));
      words.word[i] = four.x;
      words.word[i + 1] = four.y;
      words.word[i + 2] = four.z;
      words.word[i + 3] = four.w;
    }
  } else if constexpr (Words<T, N>::count == 2) {
    const uint2 two = *reinterpret_cast<const uint2*>(from);
    words.word[0] = two.x;
    words.word[1] = two.y;
  } else {
    static_assert(Words<T, N>::count == 1);
    words.word[0] = *reinterpret_cast<const std::uint32_t*>(from);
  }
  return words;
}

template <class T, int N>
__device__ inline void store_words(T* to, const Words<T, N>& words) {
  if constexpr (N * sizeof(T) == 2) {
    *to = words.only;
  } else if constexpr (Words<T, N>::count % 4 == 0) {
#pragma unroll
    for (int i = 0; i < words.count; i += 4) {
      *reinterpret_cast<uint4*>(to + i * 4 / sizeof(T)) =
          make_uint4(words.word[i], words.word[i + 1], words.word[i + 2], words.word[i + 3]);
    }
  } else if constexpr (Words<T, N>::count == 2) {
    *reinterpret_cast<uint2*>(to) = make_uint2(words.word[0], words.word[1]);
  } else {
    static_assert(Words<T, N>::count == 1);
    *reinterpret_cast<std::uint32_t*>(to) = words.word[0];
  }
}

template <class T, int N>
__device__ inline void to_floats(const Words<T, N>& words, float (&to)[N]) {
  if constexpr (N * sizeof(T) == 2) {
    to[0] = static_cast<float>(words.only);
  } else if constexpr (std::is_same_v<T, float>) {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = __uint_as_float(words.word[i]);
  } else {
    // bf16 is the upper half of an f32.
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      to[i] = __uint_as_float(words.word[i / 2] << 16);
      to[i + 1] = __uint_as_float(words.word[i / 2] & 0xFFFF0000u);
    }
  }
}

template <class T, int N>
__device__ inline Words<T, N> to_words(const float (&from)[N]) {
  Words<T, N> words;
  if constexpr (N * sizeof(T) == 2) {
    words.only = __float2bfloat16_rn(from[0]);
  } else if constexpr (std::is_same_v<T, float>) {
#pragma unroll
    for (int i = 0; i < N; ++i) words.word[i] = __float_as_uint(from[i]);
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(from[i], from[i + 1]);
      words.word[i / 2] = *reinterpret_cast<const std::uint32_t*>(&pair);
    }
  }
  return words;
}

template <int N, class T>
__device__ inline void load(const T* from, float (&to)[N]) {
  to_floats(load_words<N>(from), to);
}
template <int N, class T>
__device__ inline void store(T* to, const float (&from)[N]) {
  store_words(to, to_words<T>(from));
}

// ---- Sums and maxima over threads ----------------------------------------------------------------

struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
  static constexpr float neutral = 0.0f;
};
struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
  static constexpr float neutral = -__builtin_huge_valf();
};

template <class Combine>
__device__ inline float over_warp(float value) {
#pragma unroll
  for (int distance = warp_size / 2; distance > 0; distance /= 2) {
    value = Combine{}(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
  }
  return value;
}

// Over all threads of a block of one dimension; every thread gets it. All threads must call it.
// Each call in a kernel needs `slots` of its own: 32 floats of shared memory.
template <class Combine>
__device__ inline float over_block(float value, float* slots) {
  value = over_warp<Combine>(value);
  const int warps = blockDim.x / warp_size;
  if (warps == 1) return value;
  const int lane = threadIdx.x % warp_size;
  if (lane == 0) slots[threadIdx.x / warp_size] = value;
  __syncthreads();
  return over_warp<Combine>(lane < warps ? slots[lane] : Combine::neutral);
}

// Two sums over a block at the price of one: both a and b become their sums in every thread.
__device__ inline void sums_over_block(float& a, float& b, float (*slots)[warp_size]) {
  a = over_warp<Plus>(a);
  b = over_warp<Plus>(b);
  const int warps = blockDim.x / warp_size;
  if (warps == 1) return;
  const int lane = threadIdx.x % warp_size;
  if (lane == 0) {
    slots[0][threadIdx.x / warp_size] = a;
    slots[1][threadIdx.x / warp_size] = b;
  }
  __syncthreads();
  a = over_warp<Plus>(lane < warps ? slots[0][lane] : 0.0f);
  b = over_warp<Plus>(lane < warps ? slots[1][lane] : 0.0f);
}

// ---- Launching -----------------------------------------------------------------------------------

inline cudaStream_t stream_of(const device::CudaQueue& queue) { return static_cast<cudaStream_t>(queue.stream); }

using device::cuda::KernelBefore;
using device::cuda::TimedKernelBefore;
using device::cuda::let_next_kernel_start;
using device::cuda::wait_for_kernel_before;

template <class... Parameters, class... Args>
void launch_kernel(const char* op, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, const device::CudaQueue& queue, Args... args) {
  const cudaError_t code = device::cuda::launch_early(kernel, grid, block, shared_bytes, stream_of(queue), args...);
  if (code != cudaSuccess) throw base::Failure(base::text("launch of ", op, ": ", cudaGetErrorName(code), " (", cudaGetErrorString(code), ")"));
}
// All kernels here are launched so: they may be on their multiprocessors before the one ahead of them has ended, and wait for it
// before they read or write (device/cuda/early.cuh). The second stage of a sum of two comes sooner still: the first says
// let_next_kernel_start(). Throws Failure where the launch is refused.
template <class... Parameters, class... Args>
void launch(const char* op, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, const device::CudaQueue& queue, Args... args) {
  device::cuda::mark_if_asked(queue, op);
  launch_kernel(op, kernel, grid, block, shared_bytes, queue, args...);
}

// The same for a kernel that can say itself when the one before it ended: `kernel` gives it for either of the two types of early.cuh.
template <class Kernel, class... Args>
void launch_timing(const char* op, Kernel kernel, dim3 grid, dim3 block, std::size_t shared_bytes, const device::CudaQueue& queue, Args... args) {
  if (queue.before_ended != nullptr && queue.before_ended->at != nullptr) {
    const TimedKernelBefore before{queue.before_ended->take()};
    launch_kernel(op, kernel(before), grid, block, shared_bytes, queue, before, args...);
  } else {
    launch_kernel(op, kernel(KernelBefore{}), grid, block, shared_bytes, queue, KernelBefore{}, args...);
  }
}

// f(T{}) with the type that stands for `dtype` in device memory.
template <class F>
void with_type(base::DType dtype, const char* op, F f) {
  if (dtype == base::DType::bf16) {
    f(Bf16{});
  } else {
    SHARDBOOK_CHECK(dtype == base::DType::f32, op, " on cuda is for bf16 and f32, not ", base::name_of(dtype));
    f(float{});
  }
}

template <int N>
using Width = std::integral_constant<int, N>;

// f(Width<N>{}) with N = 16 bytes of T where `wide`, else 1.
template <class T, class F>
void with_width(bool wide, F f) {
  if (wide) {
    f(Width<16 / static_cast<int>(sizeof(T))>{});
  } else {
    f(Width<1>{});
  }
}

inline bool aligned(std::initializer_list<const void*> pointers, std::uintptr_t to = 16) {
  for (const void* pointer : pointers) {
    if (reinterpret_cast<std::uintptr_t>(pointer) % to != 0) return false;
  }
  return true;
}

// Whether rows of `width` numbers of T, one after the other from each pointer, can be read by packs.
template <class T>
bool rows_are_wide(std::int64_t width, std::initializer_list<const void*> pointers) {
  return width % (16 / static_cast<std::int64_t>(sizeof(T))) == 0 && aligned(pointers);
}

inline std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

inline unsigned grid_of(std::int64_t blocks, const char* op) {
  SHARDBOOK_CHECK(blocks > 0 && blocks < (std::int64_t{1} << 31), op, " would need ", blocks, " blocks");
  return static_cast<unsigned>(blocks);
}

// Blocks begin in rising order. One that begins early takes a late part: the op before wrote that last, so it is likely in the
// cache still, and what this op writes last is what it wrote first. In a step of gpt-1.3b the residual sums, the norms after them
// and the norms' input gradients took 3 to 5 % less so, others as long. Source of the idea: llm.c's fused_classifier_kernel5
// (karpathy/llm.c@f1e2ace6, llmc/fused_classifier.cuh).
__device__ inline std::int64_t from_the_last() { return gridDim.x - 1 - blockIdx.x; }

// ---- Ops that treat every number by itself ------------------------------------------------------

// Op::run<N>(at) treats numbers [at, at + N).
template <int N, class Before, class Op>
__global__ void __launch_bounds__(pointwise_threads) pointwise_kernel(Before before, std::int64_t elements, Op op) {
  before.wait();
  const std::int64_t at = (from_the_last() * pointwise_threads + threadIdx.x) * N;
  if (at + N <= elements) {
    op.template run<N>(at);
  } else {
    for (std::int64_t i = at; i < elements; ++i) op.template run<1>(i);
  }
}

template <int N, class Op>
void launch_pointwise(const char* name, std::int64_t elements, const Op& op, const device::CudaQueue& queue) {
  if (elements <= 0) return;
  const unsigned grid = grid_of(divide_up(elements, static_cast<std::int64_t>(pointwise_threads) * N), name);
  launch_timing(name, [](auto before) { return pointwise_kernel<N, decltype(before), Op>; }, grid, pointwise_threads, 0, queue, elements, op);
}

struct RowColumn {
  std::int64_t row, column;
};
// Division of 64 bits is slow on a GPU; sizes nearly always fit into 32.
__device__ inline RowColumn row_and_column(std::int64_t at, std::int64_t width) {
  if (at < (std::int64_t{1} << 32)) {
    const std::uint32_t row = static_cast<std::uint32_t>(at) / static_cast<std::uint32_t>(width);
    return {row, at - row * width};
  }
  return {at / width, at % width};
}

}  // namespace shardbook::kernels::cuda
