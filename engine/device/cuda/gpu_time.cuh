// device/cuda/gpu_time: what time is it on the GPU, and how does a kernel let some of it pass?
#pragma once

namespace shardbook::device::cuda {

// ns of the GPU's own clock (%globaltimer), one for all streams and kernels of it.
__device__ inline unsigned long long now_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ inline void let_pass(unsigned long long ns) {
  const unsigned long long begin = now_ns();
  while (now_ns() - begin < ns) {
  }
}

}  // namespace shardbook::device::cuda
