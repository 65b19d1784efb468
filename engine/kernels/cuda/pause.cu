// kernels/cuda/pause: one thread that waits by the GPU's clock, and then writes. 0 flops, no bytes to speak of; floor: the pause.
// Reference: kernels/pause.cpp, which has the host write the zeros at once.
#include "engine/device/cuda/gpu_time.cuh"
#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda {
namespace {

template <class T>
__global__ void pause_kernel(T* to, std::int64_t elements, unsigned long long ns) {
  device::cuda::wait_for_kernel_before();   // from here on it counts
  device::cuda::let_pass(ns);
  for (std::int64_t i = 0; i < elements; ++i) to[i] = T(0.0f);
}

}  // namespace

void pause(const FillArgs& args, const device::CudaQueue& queue) {
  SHARDBOOK_CHECK(args.value == 0, "a pause writes zeros");
  with_type(args.dtype, "pause", [&](auto zero) {
    using T = decltype(zero);
    launch("pause", pause_kernel<T>, 1, 1, 0, queue, static_cast<T*>(args.to), args.elements, static_cast<unsigned long long>(program::pause_ns));
  });
}

}  // namespace shardbook::kernels::cuda
