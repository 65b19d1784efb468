#include "engine/device/cuda/step_graphs.hpp"

#include "engine/device/cuda/graph_edges.hpp"
#include "engine/program/recorder.hpp"

namespace shardbook::device::cuda {

void StepGraphs::order(cudaStream_t first, const OwnedEvent& event, cudaStream_t behind) {
  SHARDBOOK_CUDA(cudaEventRecord(event.get(), first), context_);
  SHARDBOOK_CUDA(cudaStreamWaitEvent(behind, event.get(), 0), context_);
}

//@ device.capture: All streams of the device join the capture at its begin.
void StepGraphs::begin(cudaStream_t origin, std::vector<cudaStream_t> others, std::size_t events) {
  origin_ = origin;
  others_ = std::move(others);
  while (events_.size() < events) events_.push_back(make_order_event(context_));
  // Those of a launch are others than those of a capture: outside it nothing may wait for these
  while (joins_.size() < 2 * others_.size()) joins_.push_back(make_order_event(context_));
  if (forked_.get() == nullptr) {
    forked_ = make_order_event(context_);
    launched_ = make_order_event(context_);
  }
  recorded_.assign(events, 0);
  SHARDBOOK_CUDA(cudaStreamBeginCapture(origin_, cudaStreamCaptureModeThreadLocal), context_);
  capturing_ = true;
  SHARDBOOK_CUDA(cudaEventRecord(forked_.get(), origin_), context_);
  for (cudaStream_t other : others_) SHARDBOOK_CUDA(cudaStreamWaitEvent(other, forked_.get(), 0), context_);
}
//@end

void StepGraphs::record(program::EventId event, cudaStream_t stream) {
  SHARDBOOK_CUDA(cudaEventRecord(events_[event].get(), stream), context_);
  recorded_[event] = 1;
}

void StepGraphs::wait(program::EventId event, cudaStream_t stream) {
  if (recorded_[event] != 0) SHARDBOOK_CUDA(cudaStreamWaitEvent(stream, events_[event].get(), 0), context_);
}

Graph StepGraphs::end() {
  capturing_ = false;
  for (std::size_t other = 0; other < others_.size(); ++other) order(others_[other], joins_[other], origin_);
  cudaGraph_t captured = nullptr;
  SHARDBOOK_CUDA(cudaStreamEndCapture(origin_, &captured), context_);
  const OwnedGraph graph(captured);
  const base::Nanoseconds begin = program::host_now();
  Made& made = made_.emplace_back();
  SHARDBOOK_CUDA(cudaGraphGetNodes(graph.get(), nullptr, &made.info.nodes), context_);
  drop_implied_edges(graph.get(), context_);
  cudaGraphExec_t exec = nullptr;
  SHARDBOOK_CUDA(cudaGraphInstantiate(&exec, graph.get(), cudaGraphInstantiateFlagUseNodePriority), context_);
  made.exec = OwnedGraphExec(exec);
  SHARDBOOK_CUDA(cudaGraphUpload(exec, origin_), context_);
  made.info.made_in = program::host_now() - begin;
  return {static_cast<int>(made_.size()) - 1};
}

//@ device.replay: One call for a step; what other streams hold comes before it, or after it, whole.
void StepGraphs::launch(Graph graph) {
  const std::size_t others = others_.size();
  for (std::size_t other = 0; other < others; ++other) order(others_[other], joins_[others + other], origin_);
  SHARDBOOK_CUDA(cudaGraphLaunch(made_[static_cast<std::size_t>(graph.id)].exec.get(), origin_), context_);
  if (others == 0) return;
  SHARDBOOK_CUDA(cudaEventRecord(launched_.get(), origin_), context_);
  for (cudaStream_t other : others_) SHARDBOOK_CUDA(cudaStreamWaitEvent(other, launched_.get(), 0), context_);
}
//@end

}  // namespace shardbook::device::cuda
