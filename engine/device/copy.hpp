// device/copy: bytes between host memory and a device, as one op of a stream.
#pragma once

#include "engine/base/types.hpp"
#include "engine/device/cuda_queue.hpp"

namespace shardbook::device {

struct CopyArgs {
  const void* from;
  void* to;
  base::Bytes bytes;
};

namespace host {
void copy(const CopyArgs& args);
}
namespace cuda {
// cudaMemcpyAsync in whichever direction the pointers say; of a few bytes that are captured into a graph, a kernel
// (cuda/copy_kernel.hpp). The twin without CUDA throws.
void copy(const CopyArgs& args, const CudaQueue& queue);
}

}  // namespace shardbook::device
