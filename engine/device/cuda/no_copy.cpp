// The twin of cuda/copy.cpp for a build without CUDA.
#include "engine/base/check.hpp"
#include "engine/device/copy.hpp"

namespace shardbook::device::cuda {

void copy(const CopyArgs&, const CudaQueue&) {
  throw base::Failure("this build has no CUDA: configure with SHARDBOOK_CUDA=ON where nvcc is installed");
}

}  // namespace shardbook::device::cuda
