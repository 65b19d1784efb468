// The twin of nccl.cpp for a build without NCCL.
#include "engine/comm/nccl/nccl.hpp"

namespace shardbook::comm {

std::unique_ptr<Backend> make_nccl_backend(world::World&, device::Device&, NcclOptions) {
  throw base::Failure("this build has no NCCL, so GPUs cannot exchange bytes: install NCCL 2.26 or newer (nccl.h and "
                      "libnccl), set NCCL_HOME, and configure again with -DSHARDBOOK_NCCL=ON");
}

std::string nccl_version() { return ""; }
std::string nccl_windows_problem() { return "this build has no NCCL"; }

}  // namespace shardbook::comm
