// kernels/cuda/cross_entropy: the loss over a vocabulary, in three steps with a collective between each, or in one.
//
// A row of logits (100 KB at V = 50304 in bf16) is too long for registers, so a block goes over it once a
// step: maximum, sum of exponentials, gradient in place. Source of the three steps:
// Megatron-LM@d98e8a64, megatron/core/tensor_parallel/cross_entropy.py.
//
// Where the whole vocabulary is here nobody waits between the steps, and one kernel takes all three. It is bound by memory,
// so the row is read from there once: it is copied to shared memory, where the steps find it, and two blocks share a
// multiprocessor, so that one loads while the other computes. Of a row that is longer than half of a
// multiprocessor's shared memory the rest is read again, soon enough to come from the cache. (karpathy/llm.c @f1e2ace6,
// llmc/fused_classifier.cuh, reads all of the row twice, with a running maximum.) Each thread treats the same numbers in the
// same order as in the three steps, so not a bit differs.
//
// Flops: 1, 3 and 3 a logit in the three steps, 7 in one. Bytes in bf16: 2, 2 and 4 a logit, or 4 in one (a row that is longer
// than half of a multiprocessor's shared memory: up to 8, the rest of them from the cache). Floor: a copy of as many bytes.
// Reference: kernels/host/cross_entropy.cpp.
#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/exponential.cuh"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda {
namespace {

constexpr int row_threads = 512;
constexpr int in_flight = 2;  // packs that a thread loads before it uses the first; of more the numbers do not stay in registers

// Columns between two packs of a thread.
template <int N>
constexpr std::int64_t stride = static_cast<std::int64_t>(row_threads) * N;

// f(column, value[N]) for this thread's packs of columns [begin, end) of a row, in rising order.
// REQUIRES: begin is a multiple of stride<N>, or there are none.
template <int N, class T, class F>
__device__ inline void for_packs(const T* row, std::int64_t begin, std::int64_t end, F f) {
  for (std::int64_t first = begin + threadIdx.x * N; first < end; first += stride<N> * in_flight) {
    float value[in_flight][N];
#pragma unroll
    for (int i = 0; i < in_flight; ++i) {
      if (first + i * stride<N> < end) load<N>(row + first + i * stride<N>, value[i]);
    }
#pragma unroll
    for (int i = 0; i < in_flight; ++i) {
      if (first + i * stride<N> < end) f(first + i * stride<N>, value[i]);
    }
  }
}

// What the steps do with a pack, and with what a thread has: the same wherever they stand.
template <int N>
__device__ inline void take_larger(float& largest, const float (&value)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) largest = fmaxf(largest, value[i]);
}
template <class T, int N>
__device__ inline void add_exponentials(float& sum, const float (&value)[N], float row_max) {
#pragma unroll
  for (int i = 0; i < N; ++i) sum += exponential<T>(value[i] - row_max);
}
// `target` counts from the pack's first column; roundings are spelt out, for a compiler fuses where it likes.
template <class T, int N>
__device__ inline void make_gradient(float (&value)[N], float row_max, float scale_over_sum, float scale, std::int64_t target) {
#pragma unroll
  for (int i = 0; i < N; ++i) value[i] = __fmul_rn(exponential<T>(value[i] - row_max), scale_over_sum);
  if (target < 0 || target >= N) return;
#pragma unroll
  for (int i = 0; i < N; ++i) value[i] = i == target ? __fsub_rn(value[i], scale) : value[i];
}

template <class T, int N>
__global__ void __launch_bounds__(row_threads) max_kernel(CrossEntropyMaxArgs args) {
  __shared__ float slots[warp_size];
  wait_for_kernel_before();
  float largest = Larger::neutral;
  for_packs<N>(static_cast<const T*>(args.logit_NV) + blockIdx.x * args.vocab, 0, args.vocab,
               [&](std::int64_t, const float(&value)[N]) { take_larger(largest, value); });
  largest = over_block<Larger>(largest, slots);
  if (threadIdx.x == 0) static_cast<float*>(args.row_max_N)[blockIdx.x] = largest;
}

template <class T, int N>
__global__ void __launch_bounds__(row_threads) sums_kernel(CrossEntropySumsArgs args) {
  __shared__ float slots[warp_size];
  wait_for_kernel_before();
  const T* row = static_cast<const T*>(args.logit_NV) + blockIdx.x * args.vocab;
  const float row_max = static_cast<const float*>(args.row_max_N)[blockIdx.x];
  float sum = 0.0f;
  for_packs<N>(row, 0, args.vocab, [&](std::int64_t, const float(&value)[N]) { add_exponentials<T>(sum, value, row_max); });
  sum = over_block<Plus>(sum, slots);
  if (threadIdx.x != 0) return;
  const std::int64_t target = static_cast<std::int64_t>(args.target_N[blockIdx.x]) - args.vocab_begin;
  float* sums = static_cast<float*>(args.sums_2N);
  sums[blockIdx.x] = sum;
  sums[args.tokens + blockIdx.x] =
      target >= 0 && target < args.vocab ? static_cast<float>(row[target]) - row_max : 0.0f;
}

template <class T, int N>
__global__ void __launch_bounds__(row_threads) gradient_kernel(CrossEntropyGradientArgs args) {
  wait_for_kernel_before();
  T* row = static_cast<T*>(args.logit_NV) + blockIdx.x * args.vocab;
  const float row_max = static_cast<const float*>(args.row_max_N)[blockIdx.x];
  const float sum = static_cast<const float*>(args.sums_2N)[blockIdx.x];
  const std::int64_t target = static_cast<std::int64_t>(args.target_N[blockIdx.x]) - args.vocab_begin;
  const float scale_over_sum = args.scale / sum;
  // Each thread reads what it writes itself, so the row can be overwritten as it goes.
  for_packs<N>(row, 0, args.vocab, [&](std::int64_t column, float(&value)[N]) {
    make_gradient<T>(value, row_max, scale_over_sum, args.scale, target - column);
    store<N>(row + column, value);
  });
  if (threadIdx.x == 0) {
    const float target_logit = static_cast<const float*>(args.sums_2N)[args.tokens + blockIdx.x];
    static_cast<float*>(args.loss_N)[blockIdx.x] = logf(sum) - target_logit;
  }
}

// A pack's way to shared memory, past the registers where it is wide enough: there when __pipeline_wait_prior says so.
template <int N, class T>
__device__ inline void send_for(T* to, const T* from) {
  if constexpr (N * sizeof(T) >= 4) {
    __pipeline_memcpy_async(to, from, N * sizeof(T));
  } else {
    *to = *from;
  }
}

//@ kernels.cross_entropy: Three steps over a row that comes from memory once: its first `held` columns stay in shared memory.
template <class T, int N>
__global__ void __launch_bounds__(row_threads, 2) whole_kernel(CrossEntropyArgs args, std::int64_t held) {
  extern __shared__ uint4 row_held[];
  __shared__ float slots[2][warp_size];
  wait_for_kernel_before();
  T* const here = reinterpret_cast<T*>(row_held);
  T* const row = static_cast<T*>(args.logit_NV) + blockIdx.x * args.vocab;
  const std::int64_t target = args.target_N[blockIdx.x];
  // Read before anybody overwrites it; otherwise a thread reads what it wrote itself
  const bool is_here = target >= 0 && target < args.vocab;
  const float target_logit = threadIdx.x == 0 && is_here ? static_cast<float>(row[target]) : 0.0f;

  // A thread sends for its own packs, all of them at once, and waits for no other thread's
  for (std::int64_t column = threadIdx.x * N; column < held; column += stride<N>) send_for<N>(here + column, row + column);
  __pipeline_commit();
  __pipeline_wait_prior(0);

  // The row's maximum
  float largest = Larger::neutral;
  const auto take = [&](std::int64_t, const float(&value)[N]) { take_larger(largest, value); };
  for_packs<N>(here, 0, held, take);
  for_packs<N>(row, held, args.vocab, take);
  const float row_max = over_block<Larger>(largest, slots[0]);

  // Its sum of exponentials, and its loss
  float sum = 0.0f;
  const auto add = [&](std::int64_t, const float(&value)[N]) { add_exponentials<T>(sum, value, row_max); };
  for_packs<N>(here, 0, held, add);
  for_packs<N>(row, held, args.vocab, add);
  sum = over_block<Plus>(sum, slots[1]);
  if (threadIdx.x == 0) static_cast<float*>(args.loss_N)[blockIdx.x] = logf(sum) - (is_here ? target_logit - row_max : 0.0f);

  // The gradient, over the logits
  const float scale_over_sum = args.scale / sum;
  const auto overwrite = [&](std::int64_t column, float(&value)[N]) {
    make_gradient<T>(value, row_max, scale_over_sum, args.scale, target - column);
    store<N>(row + column, value);
  };
  for_packs<N>(here, 0, held, overwrite);
  for_packs<N>(row, held, args.vocab, overwrite);
}
//@end

// Shared memory that two blocks of a kernel can each have on a multiprocessor of this thread's device, `of_its_own` of it taken.
std::int64_t half_a_multiprocessor(std::int64_t of_its_own) {
  int device = 0, all = 0, reserved = 0, most = 0;
  const auto ask = [&](int& value, cudaDeviceAttr what) {
    const cudaError_t code = cudaDeviceGetAttribute(&value, what, device);
    SHARDBOOK_CHECK(code == cudaSuccess, "cross_entropy asks how much shared memory there is: ", cudaGetErrorString(code));
  };
  SHARDBOOK_CHECK(cudaGetDevice(&device) == cudaSuccess, "cross_entropy needs a device");
  ask(all, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  ask(reserved, cudaDevAttrReservedSharedMemoryPerBlock);
  ask(most, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  return std::min(all / 2 - reserved, most) - of_its_own;
}

// As many columns as fit there: the whole row, or whole rounds of the block. The kernel is told once a device; a device belongs to
// a thread.
template <class T, int N>
std::int64_t columns_held(std::int64_t vocab) {
  thread_local std::int64_t room = 0;
  if (room == 0) {
    room = half_a_multiprocessor(2 * warp_size * sizeof(float));
    const cudaError_t code = cudaFuncSetAttribute(whole_kernel<T, N>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(room));
    SHARDBOOK_CHECK(code == cudaSuccess, "cross_entropy asks for ", room, " bytes of shared memory: ", cudaGetErrorString(code));
  }
  const std::int64_t fit = room / static_cast<std::int64_t>(sizeof(T));
  return vocab <= fit ? vocab : fit / stride<N> * stride<N>;
}

}  // namespace

void cross_entropy_max(const CrossEntropyMaxArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "cross_entropy_max", [&](auto zero) {
    using T = decltype(zero);
    with_width<T>(rows_are_wide<T>(args.vocab, {args.logit_NV}), [&](auto pack) {
      launch("cross_entropy_max", max_kernel<T, pack.value>, grid_of(args.tokens, "cross_entropy_max"), row_threads, 0, queue, args);
    });
  });
}

void cross_entropy_sums(const CrossEntropySumsArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "cross_entropy_sums", [&](auto zero) {
    using T = decltype(zero);
    with_width<T>(rows_are_wide<T>(args.vocab, {args.logit_NV}), [&](auto pack) {
      launch("cross_entropy_sums", sums_kernel<T, pack.value>, grid_of(args.tokens, "cross_entropy_sums"), row_threads, 0, queue, args);
    });
  });
}

void cross_entropy_gradient(const CrossEntropyGradientArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "cross_entropy_gradient", [&](auto zero) {
    using T = decltype(zero);
    with_width<T>(rows_are_wide<T>(args.vocab, {args.logit_NV}), [&](auto pack) {
      launch("cross_entropy_gradient", gradient_kernel<T, pack.value>, grid_of(args.tokens, "cross_entropy_gradient"), row_threads, 0, queue, args);
    });
  });
}

void cross_entropy(const CrossEntropyArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "cross_entropy", [&](auto zero) {
    using T = decltype(zero);
    with_width<T>(rows_are_wide<T>(args.vocab, {args.logit_NV}), [&](auto pack) {
      const std::int64_t held = columns_held<T, pack.value>(args.vocab);
      const unsigned bytes = static_cast<unsigned>(held) * sizeof(T);
      launch("cross_entropy", whole_kernel<T, pack.value>, grid_of(args.tokens, "cross_entropy"), row_threads, bytes, queue, args, held);
    });
  });
}

}  // namespace shardbook::kernels::cuda
