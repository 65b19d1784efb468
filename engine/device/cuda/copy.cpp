#include "engine/device/copy.hpp"

#include <cuda_runtime_api.h>

#include "engine/base/check.hpp"

namespace shardbook::device::cuda {

void copy(const CopyArgs& args, const CudaQueue& queue) {
  const cudaError_t code = cudaMemcpyAsync(args.to, args.from, static_cast<std::size_t>(args.bytes), cudaMemcpyDefault,
                                           static_cast<cudaStream_t>(queue.stream));
  SHARDBOOK_CHECK(code == cudaSuccess, "cudaMemcpyAsync of ", args.bytes, " bytes: ", cudaGetErrorName(code));
}

}  // namespace shardbook::device::cuda
