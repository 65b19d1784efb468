// comm/nccl/ends: which calls of a communicator have ended?
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "engine/comm/flight.hpp"
#include "engine/device/cuda/owners.hpp"

namespace shardbook::comm {

// When the calls of a communicator have ended, its log is told by events: one behind each call, in a ring as the log's.
// Calls of one communicator end in their order.
struct Ends {
  FlightLog& log;
  std::vector<device::cuda::OwnedEvent> events;

  cudaEvent_t behind(std::uint64_t ticket) const { return events[ticket % events.size()].get(); }
  // On the rank's own thread, behind the call. What is captured into a graph does not run now: it is not waited for, and
  // what runs when the graph does is not seen.
  void mark(std::uint64_t ticket, cudaStream_t stream, const std::string& who) const {
    cudaStreamCaptureStatus captures = cudaStreamCaptureStatusNone;
    SHARDBOOK_CUDA(cudaStreamIsCapturing(stream, &captures), who);
    if (captures != cudaStreamCaptureStatusNone) return log.ended(ticket);
    SHARDBOOK_CUDA(cudaEventRecord(behind(ticket), stream), who);
  }
  // On any thread. An event that a later call has taken meanwhile says at worst too little.
  void look() const {
    const auto [first, last] = log.under_way();
    std::uint64_t ended = first, open = last;   // all below `ended` have; `open` is the first that is known not to have
    while (ended < open) {
      const std::uint64_t middle = ended + (open - ended) / 2;
      if (cudaEventQuery(behind(middle)) == cudaSuccess) ended = middle + 1;
      else open = middle;
    }
    if (ended > first) log.ended_through(ended - 1);
  }
};

}  // namespace shardbook::comm
