// device/cuda/early: may a kernel be on its multiprocessors before the one ahead of it has ended?
//
// Between two kernels of a stream the device stands still: the first ends, what it wrote is made visible, the second is let in.
// A kernel that is launched with launch_early() is let in before that, and says wait_for_kernel_before() ahead of the first thing
// that it reads or writes; that returns when the kernel before has ended and all that it wrote can be seen. It is let in when
// each block of the kernel before has ended or has said let_next_kernel_start(). Saves 1.2 to 2 us a kernel. Below compute
// capability 9.0 both run as any two kernels of a stream do.
//
// So who waits is the first to know when the kernel before it ended, and can write that down (span_timer.hpp).
// ("Programmatic Dependent Launch", CUDA C++ Programming Guide.)
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <initializer_list>

#include "engine/base/check.hpp"
#include "engine/device/cuda/gpu_time.cuh"

namespace shardbook::device::cuda {

__device__ inline void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

__device__ inline void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// What a kernel is told of the one before it, where it can say when that one ended: nothing, or where to write that down. Two types
// and so two kernels, since asking costs a kernel 20 to 50 ns, in each step, timed or not (experiments/cupti, "next-kernel").
struct KernelBefore {
  __device__ void wait() const { wait_for_kernel_before(); }
};
struct TimedKernelBefore {
  std::uint64_t* ended;   // of the device; one thread writes down the GPU's clock (%globaltimer, ns)

  __device__ void wait() const {
    wait_for_kernel_before();
    if (blockIdx.x == 0 && (threadIdx.x | threadIdx.y | threadIdx.z | blockIdx.y | blockIdx.z) == 0) *ended = now_ns();
  }
};

// Whether this thread's device can do so, and this program has kernels for it that wait; a device belongs to a thread.
inline bool starts_early() {
  thread_local int capability = 0;  // 900 of an H200
  if (capability == 0) {
    int device = 0, major = 0, minor = 0;
    const bool known = cudaGetDevice(&device) == cudaSuccess && cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
                       cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess;
    SHARDBOOK_CHECK(known, "a kernel is launched, and there is no device");
    capability = 100 * major + 10 * minor;
  }
  for (const int compiled_for : {__CUDA_ARCH_LIST__}) {
    if (compiled_for >= 900 && compiled_for <= capability) return true;
  }
  return false;
}

template <class... Parameters, class... Args>
cudaError_t launch_early(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream, Args... args) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = starts_early() ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(args)...);
}

}  // namespace shardbook::device::cuda
