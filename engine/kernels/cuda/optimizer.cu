// kernels/cuda/optimizer: sums over a whole shard, the clip factor, and AdamW.
//
// Sums go in two stages of fixed shape: square_blocks blocks of 256 threads, then one block that adds their
// partial sums; they read at 4.0 TB/s (201 MB, an H200), as a copy does. AdamW is bound by memory: four f32 numbers read and
// three written an element, and the copy that the next forward uses, at 4.2 TB/s. So each of its operations may be
// rounded by itself, with no fused multiply-add: then it gives the bits of kernels/host/optimizer.cpp, the reference, as kernels/host/reduce.cpp is of the sum.
// Flops: 1 a number of the sum, 2 of the norm, 15 of AdamW. Bytes: 4 a number of both; 28 of AdamW, and the copy's 2 or 4. Floor: a copy of as many.
// Source of the update: torch.optim.AdamW (Loshchilov and Hutter, 2019).
#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels::cuda {
namespace {

constexpr int sum_threads = 1024;
constexpr int square_threads = 256;

// total (+)= scale · Σ value, by one block.
__global__ void __launch_bounds__(sum_threads)
    sum_kernel(const float* value, float* total, std::int64_t elements, float scale, bool accumulate) {
  __shared__ float slots[warp_size];
  wait_for_kernel_before();
  float sum = 0.0f;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < elements; i += sum_threads) sum += value[i];
  sum = scale * over_block<Plus>(sum, slots);
  if (threadIdx.x == 0) *total = accumulate ? *total + sum : sum;
}

// scratch[block] = Σ gradient² over the packs of N that the block's threads meet, of [begin, end).
template <int N>
__global__ void __launch_bounds__(square_threads)
    squares_kernel(const float* gradient, float* scratch, std::int64_t begin, std::int64_t end) {
  __shared__ float slots[warp_size];
  let_next_kernel_start();
  wait_for_kernel_before();
  // Packs start at multiples of N; the first and the last may lie partly outside.
  const std::int64_t first = begin / N * N;
  constexpr std::int64_t step = square_blocks * square_threads * N;
  float sum = 0.0f;
#pragma unroll 4
  for (std::int64_t at = first + (blockIdx.x * square_threads + threadIdx.x) * N; at < end; at += step) {
    float value[N];
    if (at >= begin && at + N <= end) {
      load<N>(gradient + at, value);
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) value[i] = at + i >= begin && at + i < end ? gradient[at + i] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < N; ++i) sum += value[i] * value[i];
  }
  sum = over_block<Plus>(sum, slots);
  if (threadIdx.x == 0) scratch[blockIdx.x] = sum;
}

__global__ void clip_factor_kernel(const float* total, float* factor, float* norm, float clip) {
  wait_for_kernel_before();
  const float length = sqrtf(*total);
  *norm = length;
  *factor = clip > 0.0f ? fminf(1.0f, clip / (length + 1e-6f)) : 1.0f;
}

template <class T>
struct AdamW {
  float* master;
  float* first_moment;
  float* second_moment;
  const float* gradient;
  T* parameter;
  const float* clip_factor;
  std::int64_t shard_begin, decay_end;
  float beta1, beta2, epsilon;
  float keep;             // 1 − learning rate · weight decay
  float step_size;        // learning rate / (1 − beta1^step)
  float root_correction;  // 1 / √(1 − beta2^step)
  const AdamWFactors* factors;  // the three, where a graph reads them; or null

  template <int N>
  __device__ void run(std::int64_t at) const {
    float p[N], m[N], v[N], g[N];
    load<N>(gradient + at, g);
    load<N>(first_moment + at, m);
    load<N>(second_moment + at, v);
    load<N>(master + at, p);
    const float factor = *clip_factor;
    const bool from_memory = factors != nullptr;
    const float keeps = from_memory ? static_cast<float>(factors->keep) : keep;
    const float size = from_memory ? static_cast<float>(factors->step_size) : step_size;
    const float correction = from_memory ? static_cast<float>(factors->root_correction) : root_correction;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      g[i] = __fmul_rn(factor, g[i]);
      if (shard_begin + at + i < decay_end) p[i] = __fmul_rn(keeps, p[i]);
      m[i] = __fadd_rn(__fmul_rn(beta1, m[i]), __fmul_rn(1.0f - beta1, g[i]));
      v[i] = __fadd_rn(__fmul_rn(beta2, v[i]), __fmul_rn(__fmul_rn(1.0f - beta2, g[i]), g[i]));
      const float root = __fadd_rn(__fmul_rn(__fsqrt_rn(v[i]), correction), epsilon);
      p[i] = __fsub_rn(p[i], __fdiv_rn(__fmul_rn(size, m[i]), root));
    }
    store<N>(first_moment + at, m);
    store<N>(second_moment + at, v);
    store<N>(master + at, p);
    if (parameter != nullptr) store<N>(parameter + at, p);
  }
};

}  // namespace

void sum(const SumArgs& args, const device::CudaQueue& queue) {
  launch("sum", sum_kernel, 1, sum_threads, 0, queue, static_cast<const float*>(args.value_N), static_cast<float*>(args.total), args.elements,
         args.scale, args.accumulate);
}

void sum_of_squares(const SumOfSquaresArgs& args, const device::CudaQueue& queue) {
  const float* gradient = static_cast<const float*>(args.gradient);
  float* scratch = static_cast<float*>(args.scratch);
  // What is counted of this shard, as places in the shard; it may be nothing, and then the sum is 0.
  const std::int64_t begin = args.counted_begin > args.shard_begin ? args.counted_begin - args.shard_begin : 0;
  std::int64_t end = args.counted_end - args.shard_begin;
  if (end > args.elements) end = args.elements;
  with_width<float>(aligned({gradient}), [&](auto pack) {
    launch("sum_of_squares", squares_kernel<pack.value>, static_cast<unsigned>(square_blocks), square_threads, 0, queue, gradient, scratch, begin, end);
  });
  launch("sum_of_squares", sum_kernel, 1, sum_threads, 0, queue, scratch, static_cast<float*>(args.total), square_blocks, 1.0f, args.accumulate);
}

void clip_factor(const ClipFactorArgs& args, const device::CudaQueue& queue) {
  launch("clip_factor", clip_factor_kernel, 1, 1, 0, queue, static_cast<const float*>(args.total), static_cast<float*>(args.factor),
         static_cast<float*>(args.norm), args.clip);
}

void adam_w(const AdamWArgs& args, const device::CudaQueue& queue) {
  SHARDBOOK_CHECK(args.step >= 1, "adam_w counts steps from 1, for bias correction");
  with_type(args.dtype, "adam_w", [&](auto zero) {
    using T = decltype(zero);
    AdamW<T> op;
    op.master = static_cast<float*>(args.master);
    op.first_moment = static_cast<float*>(args.first_moment);
    op.second_moment = static_cast<float*>(args.second_moment);
    op.gradient = static_cast<const float*>(args.gradient);
    op.parameter = static_cast<T*>(args.parameter);
    op.clip_factor = static_cast<const float*>(args.clip_factor);
    op.shard_begin = args.shard_begin;
    op.decay_end = args.decay_end;
    op.beta1 = args.beta1;
    op.beta2 = args.beta2;
    op.epsilon = args.epsilon;
    const AdamWFactors factors = host::factors_of(args);
    op.keep = static_cast<float>(factors.keep);
    op.step_size = static_cast<float>(factors.step_size);
    op.root_correction = static_cast<float>(factors.root_correction);
    op.factors = args.factors;
    const bool wide = aligned({args.master, args.first_moment, args.second_moment, args.gradient}) &&
                      aligned({args.parameter}, 4 * sizeof(T));
    with_width<float>(wide, [&](auto pack) { launch_pointwise<pack.value>("adam_w", args.elements, op, queue); });
  });
}

}  // namespace shardbook::kernels::cuda
