// The twin of cuda/finite.cu for a build without CUDA.
#include "engine/base/check.hpp"
#include "engine/device/finite.hpp"

namespace shardbook::device::cuda {

void check_finite(const FiniteArgs&, const CudaQueue&) {
  throw base::Failure("this build has no CUDA: configure with SHARDBOOK_CUDA=ON where nvcc is installed");
}

}  // namespace shardbook::device::cuda
