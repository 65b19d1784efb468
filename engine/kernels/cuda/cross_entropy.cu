// kernels/cuda/cross_entropy: the loss over a vocabulary, in three steps with a collective between each.
//
// A row of logits (100 KB at V = 50304 in bf16) is too long for registers, so a block goes over it once a
// step: maximum, sum of exponentials, gradient in place. Source of the three steps:
// Megatron-LM@d98e8a64, megatron/core/tensor_parallel/cross_entropy.py.
// Where the whole vocabulary is here nobody waits between them, and one kernel does all: each thread keeps a maximum and a
// sum relative to it, as attention by tiles does, so a row is read once; and once more for its gradient, soon enough to
// come from the cache. That is llm.c's way (karpathy/llm.c @f1e2ace6, llmc/fused_classifier.cuh).
#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/exponential.cuh"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda {
namespace {

constexpr int row_threads = 512;
constexpr int in_flight = 4;  // packs that a thread loads before it uses the first

// f(column, value[N]) for this thread's packs of a row of `width` columns, in rising order.
template <int N, class T, class F>
__device__ inline void for_packs(const T* row, std::int64_t width, F f) {
  constexpr std::int64_t step = static_cast<std::int64_t>(row_threads) * N;
  for (std::int64_t first = threadIdx.x * N; first < width; first += step * in_flight) {
    float value[in_flight][N];
#pragma unroll
    for (int i = 0; i < in_flight; ++i) {
      if (first + i * step < width) load<N>(row + first + i * step, value[i]);
    }
#pragma unroll
    for (int i = 0; i < in_flight; ++i) {
      if (first + i * step < width) f(first + i * step, value[i]);
    }
  }
}

template <class T, int N>
__global__ void __launch_bounds__(row_threads) max_kernel(CrossEntropyMaxArgs args) {
  __shared__ float slots[warp_size];
  float largest = Larger::neutral;
  for_packs<N>(static_cast<const T*>(args.logit_NV) + blockIdx.x * args.vocab, args.vocab,
               [&](std::int64_t, const float(&value)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) largest = fmaxf(largest, value[i]);
  });
  largest = over_block<Larger>(largest, slots);
  if (threadIdx.x == 0) static_cast<float*>(args.row_max_N)[blockIdx.x] = largest;
}

template <class T, int N>
__global__ void __launch_bounds__(row_threads) sums_kernel(CrossEntropySumsArgs args) {
  __shared__ float slots[warp_size];
  const T* row = static_cast<const T*>(args.logit_NV) + blockIdx.x * args.vocab;
  const float row_max = static_cast<const float*>(args.row_max_N)[blockIdx.x];
  float sum = 0.0f;
  for_packs<N>(row, args.vocab, [&](std::int64_t, const float(&value)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) sum += exponential<T>(value[i] - row_max);
  });
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
  T* row = static_cast<T*>(args.logit_NV) + blockIdx.x * args.vocab;
  const float row_max = static_cast<const float*>(args.row_max_N)[blockIdx.x];
  const float sum = static_cast<const float*>(args.sums_2N)[blockIdx.x];
  const std::int64_t target = static_cast<std::int64_t>(args.target_N[blockIdx.x]) - args.vocab_begin;
  const float scale_over_sum = args.scale / sum;
  // Each thread reads what it writes itself, so the row can be overwritten as it goes.
  for_packs<N>(row, args.vocab, [&](std::int64_t column, float(&value)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      value[i] = exponential<T>(value[i] - row_max) * scale_over_sum - (column + i == target ? args.scale : 0.0f);
    }
    store<N>(row + column, value);
  });
  if (threadIdx.x == 0) {
    const float target_logit = static_cast<const float*>(args.sums_2N)[args.tokens + blockIdx.x];
    static_cast<float*>(args.loss_N)[blockIdx.x] = logf(sum) - target_logit;
  }
}

template <class T, int N>
__global__ void __launch_bounds__(row_threads) whole_kernel(CrossEntropyArgs args) {
  __shared__ float slots[2][warp_size];
  T* row = static_cast<T*>(args.logit_NV) + blockIdx.x * args.vocab;
  const std::int64_t target = args.target_N[blockIdx.x];

  // This thread's maximum, and its sum of exponentials relative to that
  float largest = Larger::neutral, sum = 0.0f;
  for_packs<N>(static_cast<const T*>(row), args.vocab, [&](std::int64_t, const float(&value)[N]) {
    float most = value[0];
#pragma unroll
    for (int i = 1; i < N; ++i) most = fmaxf(most, value[i]);
    if (most > largest) {
      sum *= exponential<T>(largest - most);
      largest = most;
    }
#pragma unroll
    for (int i = 0; i < N; ++i) sum += exponential<T>(value[i] - largest);
  });

  // The row's; a thread without numbers has −∞, and counts for nothing
  const float row_max = over_block<Larger>(largest, slots[0]);
  sum = over_block<Plus>(largest == Larger::neutral ? 0.0f : sum * exponential<T>(largest - row_max), slots[1]);

  // Every thread reads what it writes itself, but for the target's logit, which is needed before it is overwritten
  if (threadIdx.x == 0) static_cast<float*>(args.loss_N)[blockIdx.x] = logf(sum) - (static_cast<float>(row[target]) - row_max);
  __syncthreads();
  const float scale_over_sum = args.scale / sum;
  for_packs<N>(static_cast<const T*>(row), args.vocab, [&](std::int64_t column, float(&value)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      value[i] = exponential<T>(value[i] - row_max) * scale_over_sum - (column + i == target ? args.scale : 0.0f);
    }
    store<N>(row + column, value);
  });
}

}  // namespace

void cross_entropy_max(const CrossEntropyMaxArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "cross_entropy_max", [&](auto zero) {
    using T = decltype(zero);
    with_width<T>(rows_are_wide<T>(args.vocab, {args.logit_NV}), [&](auto pack) {
      max_kernel<T, pack.value>
          <<<grid_of(args.tokens, "cross_entropy_max"), row_threads, 0, stream_of(queue)>>>(args);
    });
  });
  check_launch("cross_entropy_max");
}

void cross_entropy_sums(const CrossEntropySumsArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "cross_entropy_sums", [&](auto zero) {
    using T = decltype(zero);
    with_width<T>(rows_are_wide<T>(args.vocab, {args.logit_NV}), [&](auto pack) {
      sums_kernel<T, pack.value>
          <<<grid_of(args.tokens, "cross_entropy_sums"), row_threads, 0, stream_of(queue)>>>(args);
    });
  });
  check_launch("cross_entropy_sums");
}

void cross_entropy_gradient(const CrossEntropyGradientArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "cross_entropy_gradient", [&](auto zero) {
    using T = decltype(zero);
    with_width<T>(rows_are_wide<T>(args.vocab, {args.logit_NV}), [&](auto pack) {
      gradient_kernel<T, pack.value>
          <<<grid_of(args.tokens, "cross_entropy_gradient"), row_threads, 0, stream_of(queue)>>>(args);
    });
  });
  check_launch("cross_entropy_gradient");
}

void cross_entropy(const CrossEntropyArgs& args, const device::CudaQueue& queue) {
  if (args.tokens <= 0) return;
  with_type(args.dtype, "cross_entropy", [&](auto zero) {
    using T = decltype(zero);
    with_width<T>(rows_are_wide<T>(args.vocab, {args.logit_NV}), [&](auto pack) {
      whole_kernel<T, pack.value><<<grid_of(args.tokens, "cross_entropy"), row_threads, 0, stream_of(queue)>>>(args);
    });
  });
  check_launch("cross_entropy");
}

}  // namespace shardbook::kernels::cuda
