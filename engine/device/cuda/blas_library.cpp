#include "engine/device/cuda/blas_library.hpp"

#include <dlfcn.h>

#include <type_traits>

namespace shardbook::device::cuda {

namespace {

// That of CUDA 12.4, as cublasLtGetVersion counts.
constexpr std::size_t oldest = 120400;

constexpr const char* remedy = "install the libraries of the CUDA Toolkit that this was built with, or put their folder in LD_LIBRARY_PATH";

const base::Result<BlasLibrary>& opened() {
  static const base::Result<BlasLibrary> once = open_blas_library(blas_library_names());
  return once;
}

}  // namespace

std::vector<std::string> blas_library_names() {
  std::vector<std::string> names = {base::text("libcublasLt.so.", CUBLAS_VER_MAJOR), SHARDBOOK_BLAS_LIBRARY};
  if (names.back().empty()) names.pop_back();
  return names;
}

base::Result<BlasLibrary> open_blas_library(const std::vector<std::string>& names) {
  void* found = nullptr;
  std::string said, found_as;
  for (const std::string& name : names) {
    found = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    found_as = name;
    if (found != nullptr) break;
    said += base::text(said.empty() ? "" : "; ", dlerror());
  }
  if (found == nullptr) return base::Error{base::text("cuBLASLt, which multiplies on GPUs, does not open (", said, "): ", remedy)};

  BlasLibrary l{};
  std::string lacks;
  const auto take = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(found, name));
    if (function == nullptr && lacks.empty()) lacks = name;
  };
  take(l.cublasLtGetVersion, "cublasLtGetVersion");
  take(l.cublasLtGetStatusName, "cublasLtGetStatusName");
  take(l.cublasLtCreate, "cublasLtCreate");
  take(l.cublasLtDestroy, "cublasLtDestroy");
  take(l.cublasLtMatrixLayoutInit_internal, "cublasLtMatrixLayoutInit_internal");
  take(l.cublasLtMatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute");
  take(l.cublasLtMatmulDescInit_internal, "cublasLtMatmulDescInit_internal");
  take(l.cublasLtMatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute");
  take(l.cublasLtMatmulPreferenceInit_internal, "cublasLtMatmulPreferenceInit_internal");
  take(l.cublasLtMatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute");
  take(l.cublasLtMatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic");
  take(l.cublasLtMatmulAlgoCheck, "cublasLtMatmulAlgoCheck");
  take(l.cublasLtMatmul, "cublasLtMatmul");
  if (!lacks.empty()) return base::Error{base::text("what opens as cuBLASLt (", found_as, ") has no ", lacks, ": ", remedy)};
  if (const std::size_t version = l.cublasLtGetVersion(); version < oldest) {
    return base::Error{base::text("cuBLASLt (", found_as, ") is ", version / 10000, ".", version / 100 % 100, ", and 12.4 is the oldest that is used here: ", remedy)};
  }
  return l;
}

const BlasLibrary& blas_library() {
  if (!opened().ok()) throw base::Failure(opened().error());
  return opened().value();
}

}  // namespace shardbook::device::cuda
