// device/cuda/mark_kernel: the GPU writes down what its clock says, between two kernels of a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

namespace shardbook::device::cuda {

// Whether this thread's device lets a mark in while the kernel before it still ends. Where not, an event costs the stream less.
bool marks_start_early();

// One thread writes down the time of the GPU in nanoseconds (%globaltimer, one for all streams) when the kernel before it has
// ended; `at` is memory of the device. Early: it is let in before that (early.cuh). Throws Failure where the launch is refused.
void launch_mark_kernel(cudaStream_t stream, std::uint64_t* at, bool early, const std::string& context);

}  // namespace shardbook::device::cuda
