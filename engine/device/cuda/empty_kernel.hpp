// device/cuda/empty_kernel: the shortest op, to measure what surrounds it.
#pragma once

#include <cuda_runtime_api.h>

namespace shardbook::device::cuda {

void launch_empty_kernel(cudaStream_t stream);

}  // namespace shardbook::device::cuda
