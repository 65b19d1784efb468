#include "engine/device/cuda/empty_kernel.hpp"

namespace shardbook::device::cuda {
namespace {
__global__ void empty_kernel() {}
}  // namespace

void launch_empty_kernel(cudaStream_t stream) { empty_kernel<<<1, 32, 0, stream>>>(); }

}  // namespace shardbook::device::cuda
