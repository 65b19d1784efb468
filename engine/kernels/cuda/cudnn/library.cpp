#include "engine/kernels/cuda/cudnn/library.hpp"

#include <dlfcn.h>

#include <array>

namespace shardbook::kernels::cuda::cudnn {

namespace {

// 9.10.0 and 9.10.1 have a known fault in fused attention (NVIDIA/cudnn-frontend @3929da2e,
// include/cudnn_frontend/node/sdpa_support_surface.h), and older ones want another value behind the mask.
constexpr std::size_t oldest = 91100;

struct Loaded {
  Library library{};
  std::string problem;
};

std::string version_text(std::size_t version) {
  return base::text(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

Loaded load() {
  Loaded made;
  void* found = nullptr;
  // Where the loader looks, and where it was when this program was built
  for (const char* name : {"libcudnn.so.9", SHARDBOOK_CUDNN_LIBRARY}) {
    if (found == nullptr && name[0] != '\0') found = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (found == nullptr) {
    made.problem = "cuDNN's library libcudnn.so.9 is not found: install cuDNN 9 (libcudnn9-cuda-13, or the wheel nvidia-cudnn-cu13 "
                   "with its lib folder in LD_LIBRARY_PATH), or use --attention flash";
    return made;
  }
  const auto take = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(found, name));
    if (function == nullptr) made.problem = base::text("cuDNN's library has no ", name, ": install cuDNN ", version_text(oldest), " or newer, or use --attention flash");
  };
  Library& l = made.library;
  take(l.cudnnGetVersion, "cudnnGetVersion");
  take(l.cudnnCreate, "cudnnCreate");
  take(l.cudnnDestroy, "cudnnDestroy");
  take(l.cudnnSetStream, "cudnnSetStream");
  take(l.cudnnGetErrorString, "cudnnGetErrorString");
  take(l.cudnnGetLastErrorString, "cudnnGetLastErrorString");
  take(l.cudnnBackendCreateDescriptor, "cudnnBackendCreateDescriptor");
  take(l.cudnnBackendDestroyDescriptor, "cudnnBackendDestroyDescriptor");
  take(l.cudnnBackendSetAttribute, "cudnnBackendSetAttribute");
  take(l.cudnnBackendGetAttribute, "cudnnBackendGetAttribute");
  take(l.cudnnBackendFinalize, "cudnnBackendFinalize");
  take(l.cudnnBackendExecute, "cudnnBackendExecute");
  if (made.problem.empty() && l.cudnnGetVersion() < oldest) {
    made.problem = base::text("cuDNN is ", version_text(l.cudnnGetVersion()), ", and its attention is used from ", version_text(oldest),
                              " on: install a newer one, or use --attention flash");
  }
  return made;
}

const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

}  // namespace

const std::string& problem() { return loaded().problem; }

std::string version() { return version_text(library().cudnnGetVersion()); }

const Library& library() {
  if (!loaded().problem.empty()) throw base::Failure(loaded().problem);
  return loaded().library;
}

void check(cudnnStatus_t status, const char* call, const char* what_for) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> said{};
  library().cudnnGetLastErrorString(said.data(), said.size());
  throw base::Failure(base::text("cuDNN's ", call, " failed for ", what_for, ": ", library().cudnnGetErrorString(status), " ", said.data()));
}

}  // namespace shardbook::kernels::cuda::cudnn
