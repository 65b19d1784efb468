// The twin of windows.cpp for an NCCL whose header has no policy of blocks: before 2.28.
#include "engine/comm/nccl/known_memory.hpp"

namespace shardbook::comm {

const char* windows_problem(int, bool, bool) { return "nccl.buffers=windows needs NCCL 2.28 or newer, and this was built with an older one: use registered, or build again with a newer nccl.h"; }
void use_copy_engines(ncclConfig_t&) {}
ncclResult_t make_window(ncclComm_t, void*, std::size_t) { return ncclInvalidUsage; }

}  // namespace shardbook::comm
