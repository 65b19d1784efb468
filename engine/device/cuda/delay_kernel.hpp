// device/cuda/delay_kernel: a kernel that takes as long as it is told, for a lab's slower GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "engine/base/types.hpp"

namespace shardbook::device::cuda {

// One thread looks at the GPU's clock until `ns` have passed; the other multiprocessors stay free.
void launch_delay_kernel(cudaStream_t stream, base::Nanoseconds ns);

// The same, and says by the GPU's own clock how long it took, in memory of the device or page-locked memory. Early: it is let in
// before the kernel ahead of it has ended (early.cuh), counts from that one's end, and writes that down where it is told to, in memory
// of the device. Throws Failure where the launch is refused.
void launch_timed_kernel(cudaStream_t stream, base::Nanoseconds ns, std::uint64_t* took, bool early = false, std::uint64_t* before_ended = nullptr);

}  // namespace shardbook::device::cuda
