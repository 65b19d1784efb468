#include "engine/comm/nccl/communicator.hpp"

#include <cstddef>

#include "engine/comm/nccl/all_to_all.hpp"

namespace shardbook::comm {

void NcclCommunicator::on_host(const Issued& issued) {
  throw base::Failure(base::text(issued.self->who_, ": NCCL moves memory of GPUs only"));
}

void NcclCommunicator::on_cuda(const Issued& issued, const device::CudaQueue& queue) {
  NcclCommunicator& self = *issued.self;
  const cudaStream_t stream = static_cast<cudaStream_t>(queue.stream);
  auto& [nccl, memory] = issued.call.beside == Beside::nothing && self.beside_nothing_ ? *self.beside_nothing_ : self.others_;
  for (const void* place : {issued.call.in, static_cast<const void*>(issued.call.out)}) {
    if (memory.knows(place)) continue;
    self.backend_.call(nccl, "making memory known to NCCL (nccl.buffers)", self.who_, stream, [&] { return memory.learn(place, nccl); });
  }
  self.backend_.call(nccl, program::name_of(issued.call.kind), self.who_, stream,
                     [&] { return self.enqueue(issued.call, nccl, stream); }, self.capturing());
  if (self.ends_ != nullptr && self.capturing()) self.ends_->mark_captured(stream, self.who_);
  if (self.ends_ != nullptr && !self.capturing()) self.ends_->mark(issued.call.ticket, stream, self.who_);
  if (!self.capturing()) self.log()->issued(issued.call.ticket);
  self.ran(issued.call.ticket);   // NCCL has read the splits
}

ncclResult_t NcclCommunicator::enqueue(const Call& call, ncclComm_t nccl, cudaStream_t stream) {
  const std::size_t count = static_cast<std::size_t>(call.elements);
  const ncclDataType_t type = nccl_type_of(call.dtype);
  const ncclRedOp_t reduction = call.reduction == Reduction::max ? ncclMax : ncclSum;
  switch (call.kind) {
    case program::OpKind::all_reduce: return ncclAllReduce(call.in, call.out, count, type, reduction, nccl, stream);
    case program::OpKind::all_gather: return ncclAllGather(call.in, call.out, count, type, nccl, stream);
    case program::OpKind::reduce_scatter:
      return ncclReduceScatter(call.in, call.out, count, type, reduction, nccl, stream);
    case program::OpKind::broadcast: return ncclBroadcast(call.in, call.out, count, type, call.peer, nccl, stream);
    case program::OpKind::send: return ncclSend(call.in, count, type, call.peer, nccl, stream);
    case program::OpKind::recv: return ncclRecv(call.out, count, type, call.peer, nccl, stream);
    case program::OpKind::shift: return nccl_shift(call.in, call.out, count, type, call.peer, index(), size(), nccl, stream);
    case program::OpKind::all_to_all:
      return nccl_all_to_all(call.in, call.out, call.dtype, call.send_elements, call.receive_elements, size(), nccl, stream);
    default: break;
  }
  SHARDBOOK_CHECK(false, program::name_of(call.kind), " is no collective");
  return ncclInvalidArgument;
}

}  // namespace shardbook::comm
