#include "engine/device/cuda/delay_kernel.hpp"

namespace shardbook::device::cuda {
namespace {

__device__ unsigned long long now_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void delay_kernel(unsigned long long ns) {
  const unsigned long long end = now_ns() + ns;
  while (now_ns() < end) {
  }
}

}  // namespace

void launch_delay_kernel(cudaStream_t stream, base::Nanoseconds ns) { delay_kernel<<<1, 1, 0, stream>>>(static_cast<unsigned long long>(ns)); }

}  // namespace shardbook::device::cuda
