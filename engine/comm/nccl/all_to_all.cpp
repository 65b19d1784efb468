#include "engine/comm/nccl/all_to_all.hpp"

#include <cstddef>

namespace shardbook::comm {

ncclDataType_t nccl_type_of(base::DType dtype) {
  switch (dtype) {
    case base::DType::bf16: return ncclBfloat16;
    case base::DType::f32: return ncclFloat32;
    case base::DType::f64: return ncclFloat64;
    case base::DType::i32: return ncclInt32;
  }
  return ncclFloat32;
}

ncclResult_t nccl_all_to_all(const void* in, void* out, base::DType dtype, const std::int64_t* send, const std::int64_t* receive, int size, ncclComm_t nccl, cudaStream_t stream) {
  const ncclDataType_t type = nccl_type_of(dtype);
  const std::byte* from = static_cast<const std::byte*>(in);
  std::byte* to = static_cast<std::byte*>(out);
  ncclResult_t first = ncclGroupStart();
  const auto note = [&](ncclResult_t code) {
    if (first == ncclSuccess) first = code;
  };
  for (int peer = 0; peer < size; ++peer) {
    if (send[peer] > 0) note(ncclSend(from, static_cast<std::size_t>(send[peer]), type, peer, nccl, stream));
    if (receive[peer] > 0) note(ncclRecv(to, static_cast<std::size_t>(receive[peer]), type, peer, nccl, stream));
    from += send[peer] * base::size_of(dtype);
    to += receive[peer] * base::size_of(dtype);
  }
  const ncclResult_t end = ncclGroupEnd();
  return first == ncclSuccess || first == ncclInProgress ? end : first;
}

ncclResult_t nccl_shift(const void* in, void* out, std::size_t count, ncclDataType_t type, int by, int me, int size, ncclComm_t nccl, cudaStream_t stream) {
  const ncclResult_t begin = ncclGroupStart();
  const ncclResult_t sends = ncclSend(in, count, type, (me + by) % size, nccl, stream);
  const ncclResult_t receives = ncclRecv(out, count, type, (me + size - by) % size, nccl, stream);
  const ncclResult_t end = ncclGroupEnd();
  for (const ncclResult_t one : {begin, sends, receives}) {
    if (one != ncclSuccess && one != ncclInProgress) return one;
  }
  return end;
}

}  // namespace shardbook::comm
