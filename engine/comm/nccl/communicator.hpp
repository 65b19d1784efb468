// comm/nccl/communicator: a group's calls, each handed to NCCL on its stream.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "engine/comm/nccl/backend.hpp"
#include "engine/comm/nccl/ends.hpp"
#include "engine/comm/nccl/known_memory.hpp"

namespace shardbook::comm {

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const mesh::Group& group, program::GroupId id, NcclBackend& backend, ncclComm_t nccl, std::string who)
      : Communicator(group, id), backend_(backend), others_(nccl, KnownMemory(backend.buffers())), who_(std::move(who)) {}
  // Calls are marked there as they end. It outlives this.
  void mark(Ends& ends) { ends_ = &ends; }
  // A second communicator takes what nothing runs beside. Calls of both are on the caller's streams, in the order of the caller.
  void prepare_beside_nothing() override {
    if (const ncclComm_t nccl = backend_.split_beside_nothing(group(), who_)) beside_nothing_.emplace(nccl, KnownMemory(backend_.buffers()));
  }

 protected:
  void issue(Lane lane, const program::OpDesc& desc, const Call& call) override {
    lane.device().launch(lane, desc, Issued{this, call}, &on_host, &on_cuda);
  }

 private:
  struct Issued {
    NcclCommunicator* self;
    Call call;
  };
  static void on_host(const Issued& issued);
  static void on_cuda(const Issued& issued, const device::CudaQueue& queue);
  void launch_calls(std::uint64_t ticket, std::size_t first, std::size_t count) override {
    backend_.capture_is_over();
    if (ends_ != nullptr) ends_->launches(ticket, first, count);
  }
  ncclResult_t enqueue(const Call& call, ncclComm_t nccl, cudaStream_t stream);

  NcclBackend& backend_;
  // Each with the memory that it knows: one for all calls, but for those that nothing runs beside where there is a second
  std::pair<ncclComm_t, KnownMemory> others_;
  std::optional<std::pair<ncclComm_t, KnownMemory>> beside_nothing_;
  std::string who_;
  Ends* ends_ = nullptr;
};

}  // namespace shardbook::comm
