// device/cuda/copy_kernel: a few bytes between page-locked host memory and the device, moved by a kernel.
//
// A copy engine is another part of the GPU than the multiprocessors: in a graph its copy begins 6 to 9 µs after what it waits
// for, where a kernel begins in one, and what waits for it as late again (experiments/speed, "tutor-graph"). Threads reach
// page-locked memory over the bus themselves. A step of the tutor copies 26 kB at most; of how many bytes on the engine is faster
// was not measured (copy.cpp leaves it what is above 64 KiB).
#pragma once

#include <cuda_runtime_api.h>

#include "engine/base/types.hpp"

namespace shardbook::device::cuda {

// Whether a kernel may: both ends are on multiples of 16 bytes, and threads reach them at these very addresses.
bool kernel_can_copy(const void* from, const void* to);

// REQUIRES: kernel_can_copy(from, to). Throws Failure where the launch is refused.
void launch_copy_kernel(cudaStream_t stream, const void* from, void* to, base::Bytes bytes);

}  // namespace shardbook::device::cuda
