// train: who does each action of a step?
//
// The Trainer is one rank: it builds the model from the config, cut over tp and sharded over fsdp, has the plan of a
// step made (order.hpp) and verified, gives each room the memory that the plan needs, and issues steps: for each
// action in turn, every room makes its streams wait for what the action needs, then the room whose kind it is does it.
// A step is issued without waiting for the device; its loss is read when the caller awaits it, one step
// later in the ordinary run, so that the device never stands still for the host.
//
// The loss of a micro-batch is Σ over its tokens / tokens of the global batch, so that every later sum, over
// micro-batches and over ranks, is a plain sum.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "engine/checkpoint/state.hpp"
#include "engine/comm/comm.hpp"
#include "engine/config/config.hpp"
#include "engine/data_parallel/replicas.hpp"
#include "engine/model/model.hpp"
#include "engine/optimizer/adamw.hpp"
#include "engine/plan/executor.hpp"
#include "engine/tensor_parallel/partial_gradients.hpp"
#include "engine/train/batches.hpp"
#include "engine/train/order.hpp"
#include "engine/train/step_values.hpp"

namespace shardbook::train {

// What a step leaves for the host.
struct StepResult {
  std::int64_t step = 0;
  double loss = 0;           // mean over the tokens of the global batch, before the update
  double gradient_norm = 0;  // global, before clipping
  double learning_rate = 0;
};

// Writes another order than the config's: a lab's, or a test's. Unfinished; the trainer finishes and verifies it.
using PlanMaker = std::function<plan::Plan(const plan::Network&)>;

// What sums gradients over replicas is made of. All of it outlives the executor.
struct ReplicaGroup {
  device::Device& device;
  device::Stream& compute;
  device::Stream& stream;
  comm::Communicator& group;
  optimizer::Store& store;
};

// What a lab's exercise, or a test, puts in the place of the engine's own. Empty functions: the engine's.
struct Instead {
  // Pieces, given those of one rank and the tp group: what cuts them. Called where there is a group.
  std::function<model::ModelSpec(const model::ModelSpec& parallel, device::Device&, tensor_parallel::TensorParallelGroup)> pieces;
  // Who carries out reductions over "dp_replicate".
  std::function<std::unique_ptr<plan::Executor>(const ReplicaGroup&)> replicas;
};

class Trainer {
 public:
  // Set-up, all ranks alike: allocates everything, draws the weights, seals the device. `config` is validated and
  // outlives the trainer, as do device, backend and source (null on meta). `make_plan`: null for the config's order.
  // `instead`: another's pieces and executors. Throws base::Failure with the verifier's sentence for a plan that cannot be
  // carried out.
  Trainer(const config::RunConfig& config, device::Device& device, comm::Backend& backend, const mesh::Mesh& mesh,
          base::Rank rank, const data::TokenSource* source, const PlanMaker& make_plan = nullptr, const Instead& instead = {});
  ~Trainer();

  // Issues step `step` (from any one on, each one more than the last). A timed step ends when the device has run it, and its times are returned;
  // an untimed one ends at once. At most one step may be un-awaited when the next is issued.
  program::StepTimes& issue(std::int64_t step, bool timed);
  // How a step was issued: its ops one by one; as it became a graph; or by one launch of that. With host.graph=on untraced steps
  // become two graphs (of even and odd steps) once the first step has run, where the device has graphs and, of several ranks,
  // the backend's calls can be in one.
  enum class How : std::uint8_t { one_by_one, captured, replayed };
  How how() const { return how_; }   // the step that was issued last
  device::GraphInfo graph() const { return graphs_[0].exists() ? device_.info(graphs_[0]) : device::GraphInfo{}; }
  // The result of an issued step; waits until it is there. REQUIRES: `step` is one of the last two issued.
  StepResult await(std::int64_t step);

  model::Model& model() { return *model_; }
  // What they hold in host memory is of the last step once the device has been synchronized.
  std::vector<optimizer::ShardState>& shards() { return parameters_->shards(); }
  // What goes into a checkpoint, and comes out of one; null where the config names neither.
  checkpoint::State* state() { return state_.get(); }
  const plan::Plan& plan() const { return order_.plan; }
  const plan::Network& network() const { return network_; }
  // Stops before the update, for tests that look at the gradients of a step.
  void set_update(bool update) { update_ = update; }

 private:
  // The kinds that are the trainer's own: what layers compute, and the two ends of a step.
  struct Computes;
  struct Ends;
  void place_in_norm();
  bool squares_sum_over(std::string_view axis) const;
  void take_machine(const LabMachine& machine);
  void choose_executors();
  void allocate_activations(base::DType activation, int loss_chunks);
  void keep_state(bool on_host);
  bool saves() const { return !config_.checkpoint.empty(); }
  void make_scalars();
  int number_of(const plan::Action& action) const;
  plan::Executor& executor_of(const plan::Action& action);
  void reduce_scalars();
  bool becomes_graph(const Choices& choices, const comm::Backend& backend) const;
  void fill_values();
  program::StepTimes& issue_ops(bool timed);
  program::StepTimes& issue_graph();

  const config::RunConfig& config_;
  device::Device& device_;
  base::Rank rank_;
  device::Stream& compute_;
  device::Stream& fsdp_stream_;
  device::Stream& tp_stream_;
  device::Stream& dp_stream_;
  fsdp::HostStreams host_streams_;                      // null where no shards lie in host memory whole
  std::unique_ptr<comm::Communicator> fsdp_group_, tp_group_, dp_group_, near_group_;   // near: null where no part of a unit is kept
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<model::Context> ctx_;
  std::unique_ptr<fsdp::ShardedParameters> parameters_;
  std::unique_ptr<plan::Executor> replicas_;            // null where there is one
  std::unique_ptr<plan::Executor> partial_gradients_;   // null where none has summands over tp
  std::unique_ptr<Batches> batches_;
  std::unique_ptr<optimizer::AdamW> optimizer_;
  std::unique_ptr<checkpoint::State> state_;            // null where there are no checkpoints
  optimizer::LearningRate learning_rate_;
  shard::Place norm_place_;                             // where this rank stands along the axes over which squares are summed
  plan::Network network_;
  Order order_;
  std::vector<std::unique_ptr<plan::Executor>> own_;
  std::vector<plan::Executor*> rooms_;                    // all, in the order in which they are asked to await
  std::array<plan::Executor*, plan::kinds> room_of_{};    // by kind: who does it
  std::vector<int> numbers_;                              // by unit: the block that it is, or its first one, or -1
  std::vector<int> places_;                               // by micro-batch: where its activations are kept
  int first_ = 0;                                         // the micro-batch whose loss is the first of a step
  std::int64_t step_ = 0;
  bool begun_ = false;                                    // a step has been issued
  std::int64_t divisor_ = 1;                              // of a loss summed over tokens: those of the global batch
  bool update_ = true;
  std::function<void(model::Draw&, const plan::Action&, bool)> draw_otherwise_;   // a mistake on purpose; empty: none

  // f32: squares of the gradient, clip factor, norm, loss. Squares and norm are of the whole model after reduce.
  tensor::Tensor scalars_;
  device::Event summed_locally_, summed_over_fsdp_, summed_, summed_over_dp_, all_issued_;
  std::unique_ptr<StepValues> values_;     // null: host.graph is off
  bool graphs_wanted_ = false;
  std::optional<std::uint32_t> program_;   // of the first step
  How how_ = How::one_by_one;
  std::array<device::Graph, 2> graphs_;    // by step mod 2
  std::vector<comm::Communicator*> in_graphs_;   // whose calls they hold
  std::array<int, 2> calls_{};             // their number of each
  program::StepTimes graph_times_;         // of a step that was replayed: no more than its number and its program
  std::array<void*, 2> read_{};            // pinned copies of scalars_, by step mod 2
  std::array<device::Event, 2> done_;
};

// Sizes of the model that a config asks for.
model::Sizes sizes_of(const config::ModelConfig& config);
// The pieces that a config asks for, on one rank.
model::ModelSpec spec_of(const config::RunConfig& config, const Choices& choices);

}  // namespace shardbook::train
