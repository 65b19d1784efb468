// device/host_function: a function of the CPU, as one op of a GPU's stream.
#pragma once

#include <functional>

#include "engine/device/cuda_queue.hpp"

namespace shardbook::device::cuda {

// Runs when what the stream holds before it has run, on a thread of CUDA's own; the stream goes on when it returns. It may
// call nothing of CUDA, and must not throw. The twin without CUDA throws.
void call_on_host(std::function<void()> work, const CudaQueue& queue);

}  // namespace shardbook::device::cuda
