// tests/gpu: several ranks on one GPU.
//
// NCCL refuses two ranks on one GPU, which it knows by the host's name and the GPU's address. Where each rank gives another
// name they are nodes to it, and talk over the loopback's sockets (NVIDIA/nccl, src/init.cc, "Duplicate GPU detected", and
// NCCL_HOSTID in src/misc/utils.cc). All is real but the speed: the GPU changes between the processes every few
// milliseconds, so that a small all-reduce takes ten.
#pragma once

#include <cstdlib>

#include "engine/base/types.hpp"

namespace shardbook::gpu_test {

// Of this process, before its first communicator.
inline void share_one_gpu(base::Rank rank) {
  setenv("NCCL_HOSTID", base::text("rank ", rank).c_str(), 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  setenv("NCCL_IB_DISABLE", "1", 0);
}

// Asked for by SHARDBOOK_TEST_ONE_GPU=1: tests of several ranks then run on the first GPU alone.
inline bool one_gpu_for_all() { return std::getenv("SHARDBOOK_TEST_ONE_GPU") != nullptr; }

}  // namespace shardbook::gpu_test
