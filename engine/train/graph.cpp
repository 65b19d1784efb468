// A step as a graph: captured once, launched by one call from then on.
#include "engine/kernels/dropout.hpp"
#include "engine/train/trainer.hpp"

namespace shardbook::train {

bool Trainer::becomes_graph(const Choices& choices, const comm::Backend& backend) const {
  if (!choices.graph || !device_.captures()) return false;
  const bool alone = config_.ranks == 1;
  if (!alone && !backend.captures() && device_.kind() == device::Kind::cuda) {
    throw base::Failure(base::text("--set host.graph=on needs collectives that a graph can hold, and this backend (", backend.version(), ") was not made for that: leave it out"));
  }
  return alone || backend.captures();
}

void Trainer::fill_values() {
  values_->fill(step_, optimizer_->factors(step_, learning_rate_.at(step_)), kernels::dropout_step_key(config_.seed, step_));
}

//@ train.graph: A step that nobody traces is captured once, and is one call from then on: the host writes what is new, and launches.
program::StepTimes& Trainer::issue_graph() {
  device::Graph& graph = graphs_[static_cast<std::size_t>(step_ % 2)];
  int& calls = calls_[static_cast<std::size_t>(step_ % 2)];
  const base::Nanoseconds begin = program::host_now();
  if (graph.exists()) {
    fill_values();
    how_ = How::replayed;
  } else {
    device_.begin_capture(compute_);
    in_graphs_.clear();
    for (const auto* group : {&fsdp_group_, &tp_group_, &dp_group_, &near_group_}) {
      if (*group != nullptr) in_graphs_.push_back(group->get());
    }
    for (comm::Communicator* group : in_graphs_) group->capture_begins();
    const std::uint32_t captured = issue_ops(false).program;
    SHARDBOOK_CHECK_EQ(captured, *program_, "the program of step ", step_, ", of which a graph is made, is another than the first step's");
    for (comm::Communicator* group : in_graphs_) calls = group->capture_ends();   // all count alike
    graph = device_.end_capture();
    how_ = How::captured;
  }
  for (comm::Communicator* group : in_graphs_) group->launches(calls, step_);
  device_.replay(graph);
  for (comm::Communicator* group : in_graphs_) group->launched(calls);
  graph_times_.step = step_;
  graph_times_.program = *program_;
  graph_times_.window = {begin, program::host_now()};
  return graph_times_;
}
//@end

}  // namespace shardbook::train
