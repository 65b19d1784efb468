// The twin of cuda/host_function.cpp for a build without CUDA.
#include "engine/base/check.hpp"
#include "engine/device/host_function.hpp"

namespace shardbook::device::cuda {

void call_on_host(std::function<void()>, const CudaQueue&) {
  throw base::Failure("this build has no CUDA: configure with SHARDBOOK_CUDA=ON where nvcc is installed");
}

}  // namespace shardbook::device::cuda
