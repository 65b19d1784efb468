// One comparison a number, no other flops; bytes: each number once; floor: reading them. Reference: device/finite.cpp.
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <algorithm>

#include "engine/base/check.hpp"
#include "engine/device/cuda/mark_kernel.hpp"
#include "engine/device/finite.hpp"

namespace shardbook::device::cuda {

namespace {

constexpr int threads = 256;

__device__ float as_float(float number) { return number; }
__device__ float as_float(__nv_bfloat16 number) { return __bfloat162float(number); }

template <class T>
__global__ void check_kernel(const T* numbers, long long elements, unsigned long long ticket, unsigned long long* least) {
  bool found = false;
  const long long all = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; at < elements; at += all) {
    found = found || !isfinite(as_float(numbers[at]));
  }
  // Hardly ever: one write a block, over the bus.
  if (__syncthreads_or(found) != 0 && threadIdx.x == 0) atomicMin(least, ticket);
}

}  // namespace

void check_finite(const FiniteArgs& args, const CudaQueue& queue) {
  if (args.elements == 0) return;
  const long long blocks = std::min<long long>((args.elements + threads - 1) / threads, 8LL * std::max(1, queue.multiprocessors));
  const dim3 grid(static_cast<unsigned>(blocks));
  const auto stream = static_cast<cudaStream_t>(queue.stream);
  mark_if_asked(queue, "check_finite");
  unsigned long long* least = reinterpret_cast<unsigned long long*>(args.least);
  switch (args.dtype) {
    case base::DType::bf16: check_kernel<<<grid, threads, 0, stream>>>(static_cast<const __nv_bfloat16*>(args.data), args.elements, args.ticket, least); break;
    case base::DType::f32: check_kernel<<<grid, threads, 0, stream>>>(static_cast<const float*>(args.data), args.elements, args.ticket, least); break;
    default: SHARDBOOK_CHECK(false, "on a GPU no number is stored as ", base::name_of(args.dtype));
  }
  const cudaError_t code = cudaGetLastError();
  SHARDBOOK_CHECK(code == cudaSuccess, "check_finite of ", args.elements, " elements: ", cudaGetErrorName(code));
}

}  // namespace shardbook::device::cuda
