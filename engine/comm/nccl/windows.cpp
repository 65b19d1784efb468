#include "engine/comm/nccl/known_memory.hpp"

namespace shardbook::comm {

const char* windows_problem(int version_of_library, bool in_graphs, bool behind_kernels) {
  if (version_of_library < 22800) return "nccl.buffers=windows needs NCCL 2.28 or newer, and the library that was found is older: use registered, or install a newer one";
  if (version_of_library >= 23007) return nullptr;
  if (behind_kernels) return "nccl.buffers=windows with fsdp.reduce_dtype=bf16 needs NCCL 2.30.7 or newer, for older ones may sum what is not rounded yet: use plain or registered, or leave out fsdp.reduce_dtype";
  if (!in_graphs) return nullptr;
  return "nccl.buffers=windows with host.graph=on needs NCCL 2.30.7 or newer, for in a graph older ones may sum what is not there yet: use plain or registered, or leave out host.graph";
}

void use_copy_engines(ncclConfig_t& config) { config.CTAPolicy = NCCL_CTA_POLICY_ZERO; }

// The window itself is not needed: calls find it by their addresses.
ncclResult_t make_window(ncclComm_t nccl, void* begin, std::size_t bytes) {
  ncclWindow_t window = nullptr;
  return ncclCommWindowRegister(nccl, begin, bytes, &window, NCCL_WIN_COLL_SYMMETRIC);
}

}  // namespace shardbook::comm
