// device/cuda/clock_kernel: how fast does the GPU's clock go?
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "engine/base/types.hpp"

namespace shardbook::device::cuda {

// One thread counts the cycles of its multiprocessor until `ns` have passed, and writes down both: said[0] the nanoseconds, said[1] the
// cycles, in page-locked memory. Throws Failure where the launch is refused.
void launch_clock_kernel(cudaStream_t stream, base::Nanoseconds ns, std::uint64_t* said);

}  // namespace shardbook::device::cuda
