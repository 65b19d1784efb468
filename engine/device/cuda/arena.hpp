// device/cuda/arena: one range of addresses for all memory of a rank.
//
// Idea: addresses are cheap and memory is not. The arena reserves as many addresses as the GPU has memory
// and maps memory behind them in large pieces as set-up asks for it, so all buffers of a rank lie in one
// range: it can be registered with NCCL or shared with another process later, piece by piece. That is
// CUDA's virtual-memory API (CUDA driver API, "Virtual Memory Management"). Nothing is freed before the end.
// A range that lies across two pieces cannot be shared as one (NVIDIA/nccl @f1308997, src/transport/p2p.cc, ipcRegisterBuffer, asks for
// the one allocation that holds it); where that matters, keep_whole() gives up the end of a piece instead.
//
// Invariants: places are multiples of 256 bytes; memory is zeroed; the arena outlives what points into it.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "engine/base/types.hpp"

namespace shardbook::device::cuda {

// The driver's functions, found when first asked for: a program that is linked with them
// would not start where there is no driver.
struct Driver {
  decltype(&cuGetErrorName) get_error_name;
  decltype(&cuMemGetAllocationGranularity) get_granularity;
  decltype(&cuMemAddressReserve) address_reserve;
  decltype(&cuMemAddressFree) address_free;
  decltype(&cuMemCreate) create;
  decltype(&cuMemRelease) release;
  decltype(&cuMemMap) map;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemSetAccess) set_access;
  decltype(&cuMemGetAddressRange) get_address_range;
};
// Throws Failure where the driver is missing or too old.
const Driver& driver();

class Arena {
 public:
  // REQUIRES: `gpu` is the thread's current device. `context` begins messages: "rank 3".
  Arena(int gpu, std::string context);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Throws Failure that says what is left where memory does not suffice. May wait for the device.
  void* allocate(base::Bytes bytes);
  base::Bytes mapped_bytes() const { return mapped_; }
  // From now on none lies across two pieces, so that whoever shares pieces has it whole; large ones have a piece each. Set-up
  // of one that has given nothing yet.
  void keep_whole();

 private:
  struct Piece {
    CUmemGenericAllocationHandle handle;
    base::Bytes begin, bytes;
  };
  // Maps at least `bytes` more, and so many where there is room.
  void grow(base::Bytes bytes, base::Bytes at_least);
  void* allocate_whole(base::Bytes bytes);
  CUresult create(base::Bytes bytes, CUmemGenericAllocationHandle& handle) const;

  int gpu_;
  std::string context_;
  base::Bytes granularity_ = 0;
  base::Bytes reserved_ = 0, mapped_ = 0, used_ = 0;
  bool whole_ = false;
  base::Bytes shared_end_ = 0;   // where each is whole: of the piece that small ones share
  CUdeviceptr base_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace shardbook::device::cuda
