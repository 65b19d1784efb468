// No flops, 8 bytes; floor: an empty kernel's launch. Reference: the clock that kernels read themselves (tests/gpu/spans_test.cpp).
#include "engine/device/cuda/mark_kernel.hpp"

#include "engine/device/cuda/check.hpp"
#include "engine/device/cuda/early.cuh"
#include "engine/device/cuda/gpu_time.cuh"

namespace shardbook::device::cuda {
namespace {

__global__ void mark_kernel(unsigned long long* at) {
  let_next_kernel_start();
  wait_for_kernel_before();
  *at = now_ns();
}

}  // namespace

bool marks_start_early() { return starts_early(); }

void launch_mark_kernel(cudaStream_t stream, std::uint64_t* at, bool early, const std::string& context) {
  static_assert(sizeof(std::uint64_t) == sizeof(unsigned long long));
  auto* const to = reinterpret_cast<unsigned long long*>(at);
  if (early) {
    SHARDBOOK_CUDA(launch_early(mark_kernel, dim3(1), dim3(1), 0, stream, to), context);
  } else {
    mark_kernel<<<1, 1, 0, stream>>>(to);
    SHARDBOOK_CUDA(cudaGetLastError(), context);
  }
}

}  // namespace shardbook::device::cuda
