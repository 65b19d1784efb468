// device/cuda_queue: what the launcher of a cuda kernel is given.
//
// Opaque pointers, so that neither callers nor the pure rooms need CUDA's headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace shardbook::device {

class Crew;

// Asked of an op whose kernels are launched early (cuda/early.cuh): when did the kernel before it on its stream end? Its first kernel
// writes that down, or a mark in front of it (cuda/mark_kernel.hpp); who launches the one or the other takes the place.
struct BeforeEnded {
  std::uint64_t* at = nullptr;   // memory of the device; null: nobody asks, or it is taken
  bool by_mark = false;

  std::uint64_t* take() { return std::exchange(at, nullptr); }
};

struct CudaQueue {
  void* stream = nullptr;              // cudaStream_t
  void* blas = nullptr;                // cublasLtHandle_t
  void* blas_workspace = nullptr;      // of this stream alone
  std::size_t blas_workspace_bytes = 0;
  int multiprocessors = 0;
  int left_to_others = 0;              // of them, to what starts beside this op (Device::leave_room); it is planned for the rest
  Crew* crew = nullptr;                // the processors that ops of the host share; null: none were set up
  BeforeEnded* before_ended = nullptr; // null: nobody asks
};

}  // namespace shardbook::device
