// device/cuda/check: a call of CUDA that fails ends the rank, and says which call and where.
#pragma once

#include <cuda_runtime_api.h>

#include "engine/base/check.hpp"

namespace shardbook::device::cuda {

// `context` says who called: "rank 3, stream compute".
inline void check(cudaError_t code, const char* expression, const std::string& context) {
  if (code == cudaSuccess) return;
  throw base::Failure(base::text(context, ": ", expression, " failed: ", cudaGetErrorName(code), " (",
                                 cudaGetErrorString(code), ")"));
}

}  // namespace shardbook::device::cuda

// SHARDBOOK_CUDA(cudaEventRecord(event, stream), "rank ", rank, ", stream ", name);
#define SHARDBOOK_CUDA(expression, ...)                                                             \
  do {                                                                                              \
    const cudaError_t code_ = (expression);                                                         \
    if (code_ != cudaSuccess) {                                                                     \
      ::shardbook::device::cuda::check(code_, #expression, ::shardbook::base::text(__VA_ARGS__));   \
    }                                                                                               \
  } while (false)
