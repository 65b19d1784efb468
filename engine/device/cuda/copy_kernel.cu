// No flops; bytes: each over the bus once, 16 a thread; floor: the bus. Reference: the copy engine's (copy.cpp).
#include "engine/device/cuda/copy_kernel.hpp"

#include <cstdint>

#include "engine/device/cuda/check.hpp"
#include "engine/device/cuda/early.cuh"

namespace shardbook::device::cuda {
namespace {

constexpr int copy_threads = 128, pack_bytes = 16;   // of a block; of a thread

__global__ void copy_kernel(const unsigned char* from, unsigned char* to, base::Bytes bytes) {
  const base::Bytes at = (static_cast<base::Bytes>(blockIdx.x) * copy_threads + threadIdx.x) * pack_bytes;
  let_next_kernel_start();
  wait_for_kernel_before();
  if (at + pack_bytes <= bytes) {
    *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<const uint4*>(from + at);
  } else {
    for (base::Bytes byte = at; byte < bytes; ++byte) to[byte] = from[byte];
  }
}

bool reaches(const void* memory) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  return attributes.type != cudaMemoryTypeUnregistered && attributes.devicePointer == memory;
}

}  // namespace

bool kernel_can_copy(const void* from, const void* to) {
  const bool even = (reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to)) % pack_bytes == 0;
  return even && reaches(from) && reaches(to);
}

void launch_copy_kernel(cudaStream_t stream, const void* from, void* to, base::Bytes bytes) {
  if (bytes <= 0) return;
  const auto blocks = static_cast<unsigned>((bytes + copy_threads * pack_bytes - 1) / (copy_threads * pack_bytes));
  SHARDBOOK_CUDA(launch_early(copy_kernel, blocks, copy_threads, 0, stream, static_cast<const unsigned char*>(from), static_cast<unsigned char*>(to), bytes), "copy_kernel");
}

}  // namespace shardbook::device::cuda
