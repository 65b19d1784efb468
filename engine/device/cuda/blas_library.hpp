// device/cuda/blas_library: is cuBLASLt there?
//
// The library has half a gigabyte, and 350 000 addresses in it are corrected when it is opened: 50 ms of a processor. So it
// is never linked but opened when a device on a GPU is made, and what multiplies nothing there does not wait for it. Its
// functions are called by the names that they have in cublasLt.h; those that end in _internal are what the header's own
// inline functions of the same name call.
#pragma once

#include <cublasLt.h>

#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::device::cuda {

// The part of cuBLASLt that is used here.
struct BlasLibrary {
  decltype(&::cublasLtGetVersion) cublasLtGetVersion;
  decltype(&::cublasLtGetStatusName) cublasLtGetStatusName;
  decltype(&::cublasLtCreate) cublasLtCreate;
  decltype(&::cublasLtDestroy) cublasLtDestroy;
  decltype(&::cublasLtMatrixLayoutInit_internal) cublasLtMatrixLayoutInit_internal;
  decltype(&::cublasLtMatrixLayoutSetAttribute) cublasLtMatrixLayoutSetAttribute;
  decltype(&::cublasLtMatmulDescInit_internal) cublasLtMatmulDescInit_internal;
  decltype(&::cublasLtMatmulDescSetAttribute) cublasLtMatmulDescSetAttribute;
  decltype(&::cublasLtMatmulPreferenceInit_internal) cublasLtMatmulPreferenceInit_internal;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) cublasLtMatmulPreferenceSetAttribute;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) cublasLtMatmulAlgoGetHeuristic;
  decltype(&::cublasLtMatmulAlgoCheck) cublasLtMatmulAlgoCheck;
  decltype(&::cublasLtMatmul) cublasLtMatmul;
};

// Where it is looked for, in this order: by the name that the headers of this build give it, where the loader looks; then
// the file that this build found.
std::vector<std::string> blas_library_names();

// The first of these that opens; it stays open. Errors: none opens, it is older than CUDA 12.4's, it lacks a function.
base::Result<BlasLibrary> open_blas_library(const std::vector<std::string>& names);

// The one of this process, opened by whoever asks first; any thread. Throws Failure where there is none.
const BlasLibrary& blas_library();

}  // namespace shardbook::device::cuda
