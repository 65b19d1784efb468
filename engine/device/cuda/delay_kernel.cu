// No flops, no bytes but the 8 that say how long it took; floor: the time that it is told. Reference: none; the host's device sleeps.
#include "engine/device/cuda/delay_kernel.hpp"

#include "engine/base/check.hpp"
#include "engine/device/cuda/check.hpp"
#include "engine/device/cuda/early.cuh"
#include "engine/device/cuda/gpu_time.cuh"

namespace shardbook::device::cuda {
namespace {

__global__ void delay_kernel(unsigned long long ns) {
  let_pass(ns);
}

__global__ void timed_kernel(std::uint64_t* before_ended, unsigned long long ns, unsigned long long* took) {
  wait_for_kernel_before();
  if (before_ended != nullptr) *before_ended = now_ns();
  const unsigned long long begin = now_ns();
  while (now_ns() - begin < ns) {
  }
  *took = now_ns() - begin;
}

}  // namespace

void launch_timed_kernel(cudaStream_t stream, base::Nanoseconds ns, std::uint64_t* took, bool early, std::uint64_t* before_ended) {
  static_assert(sizeof(std::uint64_t) == sizeof(unsigned long long));
  SHARDBOOK_CHECK(early || before_ended == nullptr, "only a kernel that is let in early knows when the one before it ended");
  const auto length = static_cast<unsigned long long>(ns);
  auto* const to = reinterpret_cast<unsigned long long*>(took);
  if (early) {
    SHARDBOOK_CUDA(launch_early(timed_kernel, 1, 1, 0, stream, before_ended, length, to), "timed_kernel");
  } else {
    timed_kernel<<<1, 1, 0, stream>>>(nullptr, length, to);
    SHARDBOOK_CUDA(cudaGetLastError(), "timed_kernel");
  }
}

void launch_delay_kernel(cudaStream_t stream, base::Nanoseconds ns) { delay_kernel<<<1, 1, 0, stream>>>(static_cast<unsigned long long>(ns)); }

}  // namespace shardbook::device::cuda
