#include "engine/device/copy.hpp"

#include <cuda_runtime_api.h>

#include "engine/base/check.hpp"
#include "engine/device/cuda/copy_kernel.hpp"

namespace shardbook::device::cuda {
namespace {

constexpr base::Bytes most_by_kernel = 64 * 1024;

bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusActive;
}

}  // namespace

void copy(const CopyArgs& args, const CudaQueue& queue) {
  const auto stream = static_cast<cudaStream_t>(queue.stream);
  if (args.bytes <= most_by_kernel && is_captured(stream) && kernel_can_copy(args.from, args.to)) return launch_copy_kernel(stream, args.from, args.to, args.bytes);
  const cudaError_t code = cudaMemcpyAsync(args.to, args.from, static_cast<std::size_t>(args.bytes), cudaMemcpyDefault, stream);
  SHARDBOOK_CHECK(code == cudaSuccess, "cudaMemcpyAsync of ", args.bytes, " bytes: ", cudaGetErrorName(code));
}

}  // namespace shardbook::device::cuda
