// kernels/cuda/cudnn/library: is cuDNN there?
//
// The library is loaded when it is first asked for, never linked: one program serves machines with cuDNN and without, and
// what is missing is a sentence, not a refusal to start. Its functions are called by the names that they have in cudnn.h.
#pragma once

#include <cudnn.h>

#include <string>

#include "engine/base/check.hpp"

namespace shardbook::kernels::cuda::cudnn {

// The part of libcudnn.so.9 that is used here.
struct Library {
  decltype(&::cudnnGetVersion) cudnnGetVersion;
  decltype(&::cudnnCreate) cudnnCreate;
  decltype(&::cudnnDestroy) cudnnDestroy;
  decltype(&::cudnnSetStream) cudnnSetStream;
  decltype(&::cudnnGetErrorString) cudnnGetErrorString;
  decltype(&::cudnnGetLastErrorString) cudnnGetLastErrorString;
  decltype(&::cudnnBackendCreateDescriptor) cudnnBackendCreateDescriptor;
  decltype(&::cudnnBackendDestroyDescriptor) cudnnBackendDestroyDescriptor;
  decltype(&::cudnnBackendSetAttribute) cudnnBackendSetAttribute;
  decltype(&::cudnnBackendGetAttribute) cudnnBackendGetAttribute;
  decltype(&::cudnnBackendFinalize) cudnnBackendFinalize;
  decltype(&::cudnnBackendExecute) cudnnBackendExecute;
};

// Why there is none, in one sentence; empty where there is one. Loads it; any thread.
const std::string& problem();
// "9.19.0". REQUIRES: there is no problem.
std::string version();
// The functions. Throws Failure with problem() where there is one.
const Library& library();

// Throws Failure with the call, what cuDNN says of it, and what it was for, unless `status` is success.
void check(cudnnStatus_t status, const char* call, const char* what_for);

}  // namespace shardbook::kernels::cuda::cudnn
