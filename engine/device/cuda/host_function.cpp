#include "engine/device/host_function.hpp"

#include <cuda_runtime_api.h>

#include <memory>

#include "engine/base/check.hpp"
#include "engine/device/cuda/mark_kernel.hpp"

namespace shardbook::device::cuda {

namespace {

void run_and_drop(void* raw) {
  const std::unique_ptr<std::function<void()>> work(static_cast<std::function<void()>*>(raw));
  (*work)();
}

}  // namespace

void call_on_host(std::function<void()> work, const CudaQueue& queue) {
  mark_if_asked(queue, "cudaLaunchHostFunc");
  auto kept = std::make_unique<std::function<void()>>(std::move(work));
  const cudaError_t code = cudaLaunchHostFunc(static_cast<cudaStream_t>(queue.stream), run_and_drop, kept.get());
  SHARDBOOK_CHECK(code == cudaSuccess, "cudaLaunchHostFunc: ", cudaGetErrorName(code));
  kept.release();   // run_and_drop has it now
}

}  // namespace shardbook::device::cuda
