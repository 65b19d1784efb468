// kernels/cuda/no_cudnn: what stands for cuDNN's kernels in a build that did not find it?
#include "engine/base/check.hpp"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda {

std::string cudnn_problem() {
  return "this build has no cuDNN: install cuDNN 9.11 or newer (libcudnn9-dev-cuda-13, or CUDNN_HOME for the wheel nvidia-cudnn-cu13) and "
         "./shardbook build again, or use --attention flash";
}
std::string cudnn_version() { return ""; }
std::int64_t cudnn_attention_needs(const FlashAttentionSizes&, std::int64_t) { throw base::Failure(cudnn_problem()); }
void cudnn_attention_forward(const CudnnAttentionForwardArgs&, const device::CudaQueue&) { throw base::Failure(cudnn_problem()); }
void cudnn_attention_backward(const CudnnAttentionBackwardArgs&, const device::CudaQueue&) { throw base::Failure(cudnn_problem()); }

}  // namespace shardbook::kernels::cuda
