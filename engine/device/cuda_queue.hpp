// device/cuda_queue: what the launcher of a cuda kernel is given.
//
// Opaque pointers, so that neither callers nor the pure rooms need CUDA's headers.
#pragma once

#include <cstddef>

namespace shardbook::device {

class Crew;

struct CudaQueue {
  void* stream = nullptr;              // cudaStream_t
  void* blas = nullptr;                // cublasLtHandle_t
  void* blas_workspace = nullptr;      // of this stream alone
  std::size_t blas_workspace_bytes = 0;
  int multiprocessors = 0;
  int left_to_others = 0;              // of them, to what starts beside this op (Device::leave_room); it is planned for the rest
  Crew* crew = nullptr;                // the processors that ops of the host share; null: none were set up
};

}  // namespace shardbook::device
