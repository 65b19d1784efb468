// device/cuda/step_graphs: how do a step's calls become one?
//
// Idea: CUDA captures what is put on a stream, and on all streams that come to wait for it, as a graph, which one call
// launches. So at the begin of a capture all other streams of the device wait for an event of the origin, and at its end the
// origin waits for them: what is issued in between, to any of them, is in the graph, and nothing of it runs.
//
// Events. One that is recorded in a capture is a place in the graph; outside it nothing can wait for it any more. So captures
// have events of their own, one for each of the device's. A wait for an event that was recorded before the capture needs no
// edge: a launch is put behind all that was issued before it, on every stream, and in front of all that comes later.
//
// Invariants
//   - The mode is thread-local: ranks that are threads of one process do not disturb each other's captures.
//   - Nodes keep the priorities of the streams that they were captured on.
//   - An edge of a graph orders what no others do (graph_edges.hpp).
//   - A graph is launched on the stream that its capture began on; launches of a device run one after the other.
//
// Sources: CUDA programming guide, "CUDA Graphs", "Cross-stream Dependencies and Events"; pytorch/pytorch@00cbb1f8,
// aten/src/ATen/cuda/CUDAGraph.cpp (capture_begin: thread-local or global mode; replay: cudaGraphLaunch); NCCL user guide,
// "Using NCCL with CUDA Graphs" (collectives are captured as kernels are; whether one is captured must be the same on all ranks).
#pragma once

#include <string>
#include <vector>

#include "engine/device/cuda/owners.hpp"
#include "engine/device/device.hpp"

namespace shardbook::device::cuda {

using OwnedGraph = Owner<cudaGraph_t, &cudaGraphDestroy>;
using OwnedGraphExec = Owner<cudaGraphExec_t, &cudaGraphExecDestroy>;

class StepGraphs {
 public:
  explicit StepGraphs(std::string context) : context_(std::move(context)) {}

  // REQUIRES: no other capture of this thread is under way; `others` are all other streams that will be used. Throws Failure
  // where a call fails, like all that follows.
  void begin(cudaStream_t origin, std::vector<cudaStream_t> others, std::size_t events);
  bool capturing() const { return capturing_; }
  // An event of the device, while a capture is under way.
  void record(program::EventId event, cudaStream_t stream);
  void wait(program::EventId event, cudaStream_t stream);
  // The graph, ready to be launched.
  Graph end();
  void launch(Graph graph);
  // NCCL's communicators wait for the graphs that hold their calls.
  void drop() { made_.clear(); }
  GraphInfo info(Graph graph) const { return made_[static_cast<std::size_t>(graph.id)].info; }

 private:
  struct Made {
    OwnedGraphExec exec;
    GraphInfo info;
  };
  // What is put on `behind` from here on runs after what is on `first`.
  void order(cudaStream_t first, const OwnedEvent& event, cudaStream_t behind);

  std::string context_;
  bool capturing_ = false;
  cudaStream_t origin_ = nullptr;
  std::vector<cudaStream_t> others_;
  std::vector<OwnedEvent> events_;      // by event of the device: its twin in captures
  std::vector<char> recorded_;          // in this capture
  std::vector<OwnedEvent> joins_;       // by other stream: its end in a capture, or before a launch
  OwnedEvent forked_, launched_;
  std::vector<Made> made_;
};

}  // namespace shardbook::device::cuda
