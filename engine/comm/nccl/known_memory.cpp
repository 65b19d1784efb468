#include "engine/comm/nccl/known_memory.hpp"

#include <algorithm>

namespace shardbook::comm {

bool KnownMemory::knows(const void* place) const {
  if (how_ == Buffers::plain || place == nullptr) return true;
  const char* at = static_cast<const char*>(place);
  return std::any_of(pieces_.begin(), pieces_.end(), [at](const device::CudaPiece& piece) {
    const char* begin = static_cast<const char*>(piece.begin);
    return begin <= at && at < begin + piece.bytes;
  });
}

ncclResult_t KnownMemory::learn(const void* place, ncclComm_t nccl) {
  const device::CudaPiece piece = device::cuda_piece_of(place);
  pieces_.push_back(piece);
  if (how_ == Buffers::windows) return make_window(nccl, piece.begin, piece.bytes);
  void* handle = nullptr;   // NCCL's own, until the communicator goes
  return ncclCommRegister(nccl, piece.begin, piece.bytes, &handle);
}

}  // namespace shardbook::comm
