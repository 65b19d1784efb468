// device/cuda/mark_kernel: the GPU writes down what its clock says, between two kernels of a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "engine/device/cuda_queue.hpp"

namespace shardbook::device::cuda {

// Whether this thread's device lets a mark in while the kernel before it still ends. Where not, an event costs the stream less.
bool marks_start_early();

// One thread writes down the time of the GPU in nanoseconds (%globaltimer, one for all streams) when the kernel before it has
// ended; `at` is memory of the device. Early: it is let in before that (early.cuh). Throws Failure where the launch is refused.
void launch_mark_kernel(cudaStream_t stream, std::uint64_t* at, bool early, const std::string& context);

// In front of whatever cannot say itself when the kernel before it ended, where that is asked.
inline void mark_if_asked(const CudaQueue& queue, const char* context) {
  if (queue.before_ended == nullptr || queue.before_ended->at == nullptr) return;
  launch_mark_kernel(static_cast<cudaStream_t>(queue.stream), queue.before_ended->take(), true, context);
  queue.before_ended->by_mark = true;
}

}  // namespace shardbook::device::cuda
