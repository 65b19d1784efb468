// comm/nccl/known_memory: which memory does NCCL know beforehand?
//
// What NCCL knows only from a call it moves through buffers of its own. A piece of memory that was made known can be mapped
// by the peers: they then read or write it at once, which takes fewer multiprocessors, or none. What is gained where, by
// NVIDIA/nccl @f1308997 (2.28.3), over the NVLink of one node and without multicast:
//   ncclCommRegister        a gather by rings (and 16 blocks for it where 17 to 24 were chosen); no reduce-scatter, and no
//                           all-reduce in place (src/register/coll_reg.cc, ncclRegisterCollBuffers)
//   ncclCommWindowRegister  by copy engines, in which no multiprocessor takes part: gathers and all-to-alls
//                           (src/ce_coll.cc, ncclCeImplemented), where the policy is NCCL_CTA_POLICY_ZERO (src/enqueue.cc,
//                           taskAppend). For sums there are kernels for windows, and NCCL chooses among those and the others.
// Both must come from a piece as the driver has it, from its begin (src/dev_runtime.cc, ncclDevrWindowRegisterInGroup).
//
// Invariants: a piece is made known once, by the call that first uses it, so in the first step; NCCL forgets it with its
// communicator. All ranks must come to the same calls with pieces of the same sizes: they set up alike.
#pragma once

#include <nccl.h>

#include <vector>

#include "engine/comm/comm.hpp"
#include "engine/device/cuda/cuda_device.hpp"

namespace shardbook::comm {

// What one communicator knows.
class KnownMemory {
 public:
  explicit KnownMemory(Buffers how) : how_(how) {}
  // Nothing is to be made known, now or ever, of this place.
  bool knows(const void* place) const;
  // Makes the piece known that holds it; one call of NCCL, which all ranks make where it is a window.
  // Throws Failure where the driver knows no such memory.
  ncclResult_t learn(const void* place, ncclComm_t nccl);

 private:
  Buffers how_;
  std::vector<device::CudaPiece> pieces_;
};

// Of windows.cpp, or of its twin for an NCCL whose header has none (before 2.27; copy engines: 2.28).
// Why they cannot be had, in one sentence, or nothing. `in_graphs`: calls are to be in graphs. `behind_kernels`: a kernel of a call's own
// stream writes what it sums. Either is refused of NCCL 2.28 to 2.30.6, whose kernels that sum from windows are let in early and had lost
// the wait for what was to be there before (NVIDIA/nccl @2948185d). Otherwise nothing is missed: what they sum was made on another
// stream, whose event theirs awaits first, and early is only before the end of the kernel ahead of them in their own. A graph has edges
// instead, of which the needless ones are dropped.
const char* windows_problem(int version_of_library, bool in_graphs, bool behind_kernels);
// Gathers shall take no multiprocessors where that can be.
void use_copy_engines(ncclConfig_t& config);
ncclResult_t make_window(ncclComm_t nccl, void* begin, std::size_t bytes);

}  // namespace shardbook::comm
