// comm/nccl/ends: which calls of a communicator have ended?
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <string>
#include <vector>

#include "engine/comm/flight_log.hpp"
#include "engine/device/cuda/owners.hpp"

namespace shardbook::comm {

// When the calls of a communicator have ended, its log is told by events: one behind each call, in a ring as the log's.
// Calls of one communicator end in their order. Where NCCL has two for it (NcclOptions::ctas_beside_nothing), that is so because
// all of its calls are on one stream.
//
// A call in a graph has an event of its own, which is part of the graph: each launch records it anew, from that moment on
// (CUDA runtime API, cudaEventRecordExternal; so NCCL orders what is in graphs and what is not: NVIDIA/nccl @5067397c,
// src/misc/strongstream.cc, serialEvent). PyTorch watches no call of a graph (pytorch/pytorch @0007e752,
// ProcessGroupNCCL.cpp: while capturing, work is not enqueued for the watchdog).
class Ends {
 public:
  Ends(FlightLog& log, const std::string& who) : log_(log), behind_(FlightLog::kept) {
    for (std::size_t i = 0; i < FlightLog::kept; ++i) own_.push_back(device::cuda::make_order_event(who));
  }

  // On the rank's own thread, behind the call.
  void mark(std::uint64_t ticket, cudaStream_t stream, const std::string& who) {
    const cudaEvent_t event = own_[ticket % own_.size()].get();
    SHARDBOOK_CUDA(cudaEventRecord(event, stream), who);
    behind_[ticket % behind_.size()].store(event, std::memory_order_release);
  }
  // The same behind a call that is captured. It says nothing until a launch has taken it for a ticket's.
  void mark_captured(cudaStream_t stream, const std::string& who) {
    captured_.push_back(device::cuda::make_order_event(who));
    SHARDBOOK_CUDA(cudaEventRecordWithFlags(captured_.back().get(), stream, cudaEventRecordExternal), who);
  }
  // Before a launch. The log hears of these tickets as issued after it, so nobody looks before the launch has recorded them.
  void launches(std::uint64_t ticket, std::size_t first, std::size_t count) {
    for (std::size_t at = 0; at < count; ++at) behind_[(ticket + at) % behind_.size()].store(captured_[first + at].get(), std::memory_order_release);
  }
  // On any thread. An event that a later call has taken meanwhile says at worst too little.
  void look() const {
    const auto [first, last] = log_.under_way();
    std::uint64_t ended = first, open = last;   // all below `ended` have; `open` is the first that is known not to have
    while (ended < open) {
      const std::uint64_t middle = ended + (open - ended) / 2;
      if (cudaEventQuery(behind_[middle % behind_.size()].load(std::memory_order_acquire)) == cudaSuccess) ended = middle + 1;
      else open = middle;
    }
    if (ended > first) log_.ended_through(ended - 1);
  }

 private:
  FlightLog& log_;
  std::vector<device::cuda::OwnedEvent> own_;         // by ticket
  std::vector<device::cuda::OwnedEvent> captured_;    // of all calls of graphs, in the order of their capture
  std::vector<std::atomic<cudaEvent_t>> behind_;      // by ticket: the one that tells of it
};

}  // namespace shardbook::comm
