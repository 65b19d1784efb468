// kernels/cuda/rotary: q and k turned by their positions, in place.
//
// A warp has a token. Each of its threads makes the sines of one pack of numbers and turns that pack in every head
// that falls to it, so that sines are made once for many heads; what remains is a read and a write.
//
// Flops: 3 a number, and the sines. Bytes in bf16: 4 a number of q and k. Floor: a copy of as many bytes; on an H200, 8192 tokens of
// width 2048, 40.4 us, a copy 85 % of that (kernel_bench). Reference: kernels/host/rotary.cpp.
#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda {
namespace {

template <class T, int N>
__global__ void __launch_bounds__(pointwise_threads) rotate_kernel(RotateArgs args) {
  wait_for_kernel_before();
  const std::int64_t token = (static_cast<std::int64_t>(blockIdx.x) * pointwise_threads + threadIdx.x) / warp_size;
  if (token >= args.sequences * args.positions) return;
  const int lane = threadIdx.x % warp_size;
  const int half = static_cast<int>(args.head_dim) / 2, packs = half / N;  // of the first half of a head
  const float position = static_cast<float>(row_and_column(token, args.positions).column);
  T* const row = static_cast<T*>(args.rows) + token * args.row_stride;

  // Lanes in turn over packs, and over heads where there are more lanes than packs.
  const int heads_at_once = packs < warp_size ? warp_size / packs : 1;
  if (lane / packs >= heads_at_once) return;
  for (int pack = lane % packs; pack < packs; pack += packs < warp_size ? packs : warp_size) {
    float cosine[N], sine[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float frequency = exp2f(-static_cast<float>(pack * N + i) / static_cast<float>(half) * log2f(args.theta));
      sincosf(position * frequency, &sine[i], &cosine[i]);
      if (args.inverse) sine[i] = -sine[i];
    }
    for (int head = packs < warp_size ? lane / packs : 0; head < args.heads; head += heads_at_once) {
      T* const first = row + head * args.head_dim + pack * N;
      float x[N], y[N];
      load<N>(first, x);
      load<N>(first + half, y);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float turned = x[i] * cosine[i] - y[i] * sine[i];
        y[i] = y[i] * cosine[i] + x[i] * sine[i];
        x[i] = turned;
      }
      store<N>(first, x);
      store<N>(first + half, y);
    }
  }
}

}  // namespace

void rotate(const RotateArgs& args, const device::CudaQueue& queue) {
  const std::int64_t tokens = args.sequences * args.positions;
  if (tokens <= 0 || args.heads <= 0) return;
  with_type(args.dtype, "rotate", [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t pack = 16 / static_cast<std::int64_t>(sizeof(T));
    with_width<T>(args.head_dim / 2 % pack == 0 && args.row_stride % pack == 0 && aligned({args.rows}), [&](auto width) {
      launch("rotate", rotate_kernel<T, width.value>, grid_of(divide_up(tokens * warp_size, pointwise_threads), "rotate"), pointwise_threads, 0, queue, args);
    });
  });
}

}  // namespace shardbook::kernels::cuda
