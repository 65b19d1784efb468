// No flops, 16 bytes; floor: the time that it is told. Reference: none; a host has no such clock.
#include "engine/device/cuda/clock_kernel.hpp"

#include "engine/device/cuda/check.hpp"
#include "engine/device/cuda/gpu_time.cuh"

namespace shardbook::device::cuda {
namespace {

// Some GPUs' nanoseconds go in steps, so it begins with one.
__global__ void clock_kernel(unsigned long long ns, unsigned long long* said) {
  const unsigned long long before = now_ns();
  unsigned long long begin = before;
  while (begin == before) begin = now_ns();
  const long long first = clock64();
  unsigned long long now = begin;
  while (now - begin < ns) now = now_ns();
  said[1] = static_cast<unsigned long long>(clock64() - first);
  said[0] = now - begin;
}

}  // namespace

void launch_clock_kernel(cudaStream_t stream, base::Nanoseconds ns, std::uint64_t* said) {
  static_assert(sizeof(std::uint64_t) == sizeof(unsigned long long));
  clock_kernel<<<1, 1, 0, stream>>>(static_cast<unsigned long long>(ns), reinterpret_cast<unsigned long long*>(said));
  SHARDBOOK_CUDA(cudaGetLastError(), "clock_kernel");
}

}  // namespace shardbook::device::cuda
