#include "engine/train/trainer.hpp"

#include <algorithm>
#include <string_view>

#include "engine/mesh/near.hpp"
#include "engine/model/accumulate.hpp"
#include "engine/model/dropout.hpp"
#include "engine/plan/verify.hpp"
#include "engine/tensor_parallel/spec.hpp"

namespace shardbook::train {

using plan::Kind;
using program::MemoryKind;
using program::Phase;
using program::Scope;

model::Sizes sizes_of(const config::ModelConfig& config) {
  model::Sizes sizes{config.layers, config.width, config.heads, config.kv_heads(), config.head_dim, config.ffn_width, config.vocab, config.sequence, config.tied};
  sizes.biases = config.architecture == config::Architecture::gpt;
  return sizes;
}

model::ModelSpec spec_of(const config::RunConfig& config, const Choices& choices) {
  model::ModelSpec spec = model::dense_spec();
  if (choices.recompute_attention) spec = model::with_recomputed_attention(spec);
  if (choices.flash_attention) spec = model::with_flash_attention(spec);
  if (choices.cudnn_attention) spec = model::with_cudnn_attention(spec);
  if (choices.loss_in_one) spec = model::with_loss_in_one(spec);
  if (choices.gelu_in_matmuls) spec = model::with_gelu_in_matmuls(spec);
  spec = model::with_dropout(spec, {config.hidden_dropout, config.attention_dropout});
  if (choices.mistakes.uncut) spec = choices.mistakes.uncut(spec);
  if (config.model.architecture == config::Architecture::llama) spec = model::with_llama_pieces(spec, static_cast<float>(config.model.rope_theta));
  return spec;
}

//@ train.computes: What layers compute.
struct Trainer::Computes final : plan::Executor {
  explicit Computes(Trainer& trainer) : trainer(trainer) {}
  void run(const plan::Action& action) override {
    Trainer& t = trainer;
    const model::Batch& batch = t.batches_->batch(action.micro_batch);
    const model::Model::Score score{1.0f / static_cast<float>(t.divisor_), t.scalars_.slice(3, {1}), action.micro_batch != t.first_};
    const int slot = t.places_[static_cast<std::size_t>(action.micro_batch)];
    t.ctx_->draw = {t.config_.seed, t.step_, t.batches_->first_sequence(action.micro_batch), t.values_ == nullptr ? nullptr : t.values_->step_key()};
    if (t.draw_otherwise_) t.draw_otherwise_(t.ctx_->draw, action, t.network_.layers[static_cast<std::size_t>(action.layer)].is_block());
    switch (action.kind) {
      case Kind::forward:
        return t.model_->forward(*t.ctx_, action.layer, batch, slot, score);
      case Kind::recompute: return t.model_->recompute(*t.ctx_, action.layer, slot);
      case Kind::remake: return t.model_->remake(*t.ctx_, action.layer, slot);
      case Kind::backward: return t.model_->backward(*t.ctx_, action.layer, batch, slot, score);
      default: SHARDBOOK_CHECK(false, "the model cannot ", plan::name_of(action.kind));
    }
  }
  Trainer& trainer;
};
//@end

//@ train.ends: The two ends of a step: its tokens, and its update.
struct Trainer::Ends final : plan::Executor {
  explicit Ends(Trainer& trainer) : trainer(trainer) {}
  void run(const plan::Action& action) override {
    Trainer& t = trainer;
    switch (action.kind) {
      case Kind::load: return t.batches_->upload(t.compute_, t.step_, action.micro_batch);
      case Kind::states: return t.optimizer_->send_for_states();
      case Kind::synchronize:
        t.device_.record(t.compute_, t.all_issued_);
        return t.device_.host_wait(t.all_issued_);
      case Kind::norm:
        t.optimizer_->sum_squares(t.compute_, t.parameters_->in_order_of_sums(), [&t](std::size_t shard) { t.parameters_->await_sum(shard); });
        return t.reduce_scalars();
      case Kind::update:
        if (!t.update_) return;
        if (t.saves()) t.state_->await(t.compute_);
        return t.optimizer_->step(t.compute_, t.step_, t.learning_rate_.at(t.step_), [&t](std::size_t shard) { t.parameters_->updated(shard); });
      default: SHARDBOOK_CHECK(false, "train cannot ", plan::name_of(action.kind));
    }
  }
  Trainer& trainer;
};
//@end

namespace {

bool all_on_host(const Choices& choices) { return choices.store.on_host == optimizer::OnHost::everything; }

}  // namespace

Trainer::Trainer(const config::RunConfig& config, device::Device& device, comm::Backend& backend, const mesh::Mesh& mesh,
                 base::Rank rank, const data::TokenSource* source, const PlanMaker& make_plan, const Instead& instead)
    : config_(config), device_(device), rank_(rank),
      compute_(device.create_stream("compute")),
      fsdp_stream_(config.fsdp > 1 || all_on_host(choices_of(config)) ? device.create_stream("fsdp", device::Priority::high) : compute_),
      tp_stream_(config.tp > 1 ? device.create_stream("tp", device::Priority::high) : compute_),
      dp_stream_(config.dp > 1 ? device.create_stream("dp", device::Priority::high) : compute_) {
  const Choices choices = choices_of(config);
  const Mistakes& mistakes = choices.mistakes;
  const base::DType activation = config.precision == config::Precision::bf16 ? base::DType::bf16 : base::DType::f32;

  // Groups: who cuts each matmul with me, who shards each unit with me, who holds the same shard.
  tp_group_ = backend.communicator_or_alone(device, mesh.group(rank, "tp"));
  fsdp_group_ = backend.communicator_or_alone(device, mesh.group(rank, "dp_shard"));
  dp_group_ = backend.communicator_or_alone(device, mesh.group(rank, "dp_replicate"));
  if (choices.store.near > 0 && config.fsdp > 1) near_group_ = backend.communicator(device, mesh::near_group(mesh.group(rank, "dp_shard"), choices.store.near));
  take_machine(choices.machine);
  if (config.check_finite) device.check_finite();
  device.leave_out_waits(mistakes.unawaited);

  // The model, its pieces cut over tp, and its units, sharded over fsdp; nothing is allocated yet.
  const model::Sizes sizes = sizes_of(config.model);
  model::ModelSpec spec = tensor_parallel::parallel_spec(spec_of(config, choices), device, {*tp_group_, tp_stream_}, choices.pieces);
  if (choices.gradients_apart) spec = model::with_gradients_apart(spec);
  if (mistakes.pieces) spec = mistakes.pieces(spec, device, {*tp_group_, tp_stream_});
  if (instead.pieces && config.tp > 1) spec = instead.pieces(spec, device, {*tp_group_, tp_stream_});
  model_ = std::make_unique<model::Model>(spec, sizes, model::Stage{0, sizes.layers, true, true}, choices.unit);
  for (const auto& mistake : mistakes.model) mistake(*model_);
  draw_otherwise_ = mistakes.draw;
  if (all_on_host(choices)) host_streams_ = {&device.create_stream("to_device"), &device.create_stream("to_host"), &device.create_stream("cpu")};
  parameters_ = std::make_unique<fsdp::ShardedParameters>(*model_, device, compute_, fsdp_stream_, *fsdp_group_, choices.store, near_group_.get(), host_streams_);

  // The order of a step, and the memory that it needs.
  network_ = network_of(*model_, parameters_->units(), config.micro_batches);
  network_.states_on_host = choices.store.on_host == optimizer::OnHost::states;
  if (make_plan) {
    const plan::Plan made = make_plan(network_);
    if (const auto problem = plan::misnamed(made, network_, rank)) throw base::Failure(problem->sentence);
    order_ = finished(through_host_memory(made, network_), network_);
  } else {
    order_ = order_of(choices, network_);
  }
  if (const auto problem = plan::problem_of(order_.plan, network_, rank)) throw base::Failure(problem->sentence);
  parameters_->set_up(order_.plan, order_.slots, config.seed);
  if (config.dp > 1) {
    const bool each_parameter = choices.sums.sums == data_parallel::Sums::naive;
    if (instead.replicas) replicas_ = instead.replicas({device, compute_, dp_stream_, *dp_group_, *parameters_});
    else replicas_ = std::make_unique<data_parallel::Replicas>(device, compute_, dp_stream_, *dp_group_, *parameters_, each_parameter);
  }
  const bool summands_over_tp = std::any_of(network_.units.begin(), network_.units.end(), [](const plan::Unit& unit) {
    return std::find(unit.sums.begin(), unit.sums.end(), "tp") != unit.sums.end();
  });
  if (summands_over_tp) {
    partial_gradients_ = std::make_unique<tensor_parallel::PartialGradients>(
        device, compute_, tensor_parallel::TensorParallelGroup{*tp_group_, tp_stream_}, *parameters_,
        tensor_parallel::PartialGradients::Next{fsdp_stream_, dp_stream_});
  }
  choose_executors();

  // Optimizer, input, activations.
  scalars_ = tensor::allocate(device, {4}, base::DType::f32, MemoryKind::workspace, "scalars");
  optimizer::AdamWConfig adamw{static_cast<float>(config.beta1), static_cast<float>(config.beta2), static_cast<float>(config.eps),
                               static_cast<float>(config.weight_decay), static_cast<float>(config.clip), {}};
  place_in_norm();
  optimizer_ = std::make_unique<optimizer::AdamW>(device, adamw, parameters_->shards(), scalars_.slice(0, {3}), norm_place_, host_streams_.cpu);
  parameters_->set_complete([this](device::Lane lane, std::size_t shard, const tensor::Tensor& gradient) { optimizer_->square(lane, shard, gradient); });
  keep_state(choices.store.on_host != optimizer::OnHost::nothing);
  divisor_ = config.global_tokens() / (mistakes.own_tokens ? config.data_ranks() : 1);
  learning_rate_ = {static_cast<float>(config.lr), static_cast<float>(config.min_lr), config.warmup_steps, config.steps};
  batches_ = std::make_unique<Batches>(device, config, source, dp_group_->index() * config.fsdp + fsdp_group_->index(), model_->vocabulary());
  allocate_activations(activation, choices.loss_chunks);
  make_scalars();
  if (choices.graph) {
    values_ = std::make_unique<StepValues>(device);
    optimizer_->read_factors(values_->update());
    graphs_wanted_ = becomes_graph(choices, backend);
  }
  device.seal();
  device.synchronize();
}

Trainer::~Trainer() { device_.drop_graphs(); }

//@ train.norm: Squares are summed over the axes over which some parameter is kept in parts; over another, each rank has them all.
void Trainer::place_in_norm() {
  std::vector<shard::Placement> placements;
  for (const optimizer::ShardState& shard : parameters_->shards()) {
    for (const shard::FlatParameter& parameter : shard.layout->parameters()) placements.push_back(parameter.placement);
  }
  for (std::string_view axis : shard::parted_axes(placements)) {
    SHARDBOOK_CHECK(axis == "tp" || axis == "dp_shard", "replicas hold alike, and parts are kept over ", axis);
    const comm::Communicator& group = axis == "tp" ? *tp_group_ : *fsdp_group_;
    norm_place_.push_back({axis, group.index()});
  }
}
//@end

bool Trainer::squares_sum_over(std::string_view axis) const {
  return std::any_of(norm_place_.begin(), norm_place_.end(), [axis](const shard::Coordinate& on) { return on.axis == axis; });
}

// A lab's machine. Under a modelled clock nobody need wait for what is slower: the model adds it.
void Trainer::take_machine(const LabMachine& machine) {
  for (const auto* group : {&tp_group_, &fsdp_group_, &dp_group_, &near_group_}) {
    if (machine.ideal_network && *group != nullptr) (*group)->move_nothing();
  }
  constexpr base::Nanoseconds us = 1000;
  if (config_.clock != config::Clock::modelled) device_.make_slower({us * machine.call_us, machine.slow_rank == rank_ ? us * machine.kernel_us : 0});
}

// Host memory for a checkpoint of what this rank keeps.
void Trainer::keep_state(bool on_host) {
  if (!saves() && config_.resume.empty()) return;
  const shard::Place place{{"tp", tp_group_->index()}, {"dp_shard", fsdp_group_->index()}, {"dp_replicate", dp_group_->index()}};
  state_ = std::make_unique<checkpoint::State>(device_, compute_, parameters_->shards(), model_->parameters(), place,
                                               checkpoint::State::Use{saves(), !config_.resume.empty(), on_host});
}

void Trainer::choose_executors() {
  own_.push_back(std::make_unique<Computes>(*this));
  own_.push_back(std::make_unique<Ends>(*this));
  rooms_ = {parameters_.get(), own_[0].get(), own_[1].get()};
  if (replicas_ != nullptr) rooms_.push_back(replicas_.get());
  if (partial_gradients_ != nullptr) rooms_.push_back(partial_gradients_.get());
  // The block that a unit belongs to, or the first of its blocks
  numbers_.assign(network_.units.size(), plan::Layer::no_block);
  for (const plan::Layer& layer : network_.layers) {
    int& number = numbers_[static_cast<std::size_t>(layer.unit)];
    if (number == plan::Layer::no_block) number = layer.number;
  }
  auto does = [this](plan::Executor* room, std::initializer_list<Kind> of) {
    for (Kind kind : of) room_of_[static_cast<std::size_t>(kind)] = room;
  };
  does(parameters_.get(), {Kind::to_device, Kind::gather, Kind::keep, Kind::release, Kind::limit, Kind::reduce, Kind::to_host});
  does(own_[0].get(), {Kind::forward, Kind::recompute, Kind::remake, Kind::backward});
  does(own_[1].get(), {Kind::load, Kind::states, Kind::synchronize, Kind::norm, Kind::update});
}

void Trainer::allocate_activations(base::DType activation, int loss_chunks) {
  const model::BatchShape batch{config_.sequences_per_micro_batch(), config_.model.sequence};
  const tensor::Tensor scratch = tensor::allocate(device_, {model_->scratch_elements(batch)}, base::DType::f32, MemoryKind::workspace, "scratch");
  ctx_ = std::make_unique<model::Context>(model::Context{device_, compute_, batch, activation, scratch, model_->cut()});
  // As many micro-batches as the plan has in flight; of blocks that it computes again, the inputs only, or what is dear.
  places_ = plan::places_of(order_.plan, network_);
  const auto& actions = order_.plan.actions;
  const int head = static_cast<int>(network_.layers.size()) - 1;
  const Kind scores = loss_chunks > 1 ? Kind::backward : Kind::forward;   // of the head
  first_ = std::find_if(actions.begin(), actions.end(), [&](const plan::Action& action) { return action.kind == scores && action.layer == head; })->micro_batch;
  const auto has = [&](Kind kind) { return std::any_of(actions.begin(), actions.end(), [kind](const plan::Action& action) { return action.kind == kind; }); };
  const model::Keep keep = has(Kind::recompute) ? model::Keep::inputs : has(Kind::remake) ? model::Keep::what_is_dear : model::Keep::everything;
  const std::vector<base::Bytes> lots = parameters_->wants_lots();
  if (!lots.empty() && keep == model::Keep::inputs) {
    throw base::Failure("this order computes blocks again from their inputs, so they keep nothing whose memory gradients could be lent: leave out --set fsdp.gradient_memory=lent, or the recomputation");
  }
  model_->allocate(*ctx_, 1 + *std::max_element(places_.begin(), places_.end()), {keep, lots, loss_chunks});
  parameters_->lend(model_->lots());
}

void Trainer::make_scalars() {
  summed_locally_ = device_.create_event("scalars.summed_locally");
  summed_over_fsdp_ = device_.create_event("scalars.summed_over_fsdp");
  summed_ = device_.create_event("scalars.summed");
  if (replicas_ != nullptr) summed_over_dp_ = device_.create_event("scalars.summed_over_dp");
  all_issued_ = device_.create_event("host.all_issued");
  for (int parity = 0; parity < 2; ++parity) {
    read_[static_cast<std::size_t>(parity)] = device_.pinned(scalars_.storage_bytes());
    done_[static_cast<std::size_t>(parity)] = device_.create_event("step.done." + std::to_string(parity));
  }
}

//@ train.step: A step is its plan, carried out without waiting for the device.
program::StepTimes& Trainer::issue(std::int64_t step, bool timed) {
  step_ = step;
  // The first step comes one by one: it chooses what matmuls run by, and shows what a graph will be of
  const bool as_graph = graphs_wanted_ && !timed && program_.has_value();
  batches_->fill(step);
  if (!begun_) parameters_->gather_for_the_first_step();
  begun_ = true;
  program::StepTimes& times = as_graph ? issue_graph() : issue_ops(timed);
  // Two events in turn, outside of the recorded step: each step's program is the same.
  device_.record(compute_, done_[static_cast<std::size_t>(step % 2)]);
  return times;
}

program::StepTimes& Trainer::issue_ops(bool timed) {
  device_.begin_step(step_, timed);
  how_ = How::one_by_one;
  program::Recorder& recorder = device_.recorder();
  for (plan::Executor* room : rooms_) room->begin_step();
  if (values_ != nullptr) {
    fill_values();
    const Scope scope(recorder, Phase::forward);
    values_->upload(compute_, step_);
  }
  for (const plan::Action& action : order_.plan.actions) {
    const program::Planned planned(recorder, action.where, plan::moves(action.kind));
    const Scope scope(recorder, action.phase, number_of(action), action.micro_batch);
    for (plan::Executor* room : rooms_) room->await(action);
    executor_of(action).run(action);
  }

  // Leave loss and norm where the host will find them
  device_.download(compute_, "download_scalars", tensor::memory_of(scalars_), read_[static_cast<std::size_t>(step_ % 2)]);
  program::StepTimes& times = device_.end_step();
  if (!program_) program_ = times.program;
  return times;
}
//@end

// Sums over replicas, and over tp, are other rooms' than sums over shards.
plan::Executor& Trainer::executor_of(const plan::Action& action) {
  if (partial_gradients_ != nullptr && action.kind == Kind::reduce && std::string_view(action.axis) == "tp") return *partial_gradients_;
  if (replicas_ != nullptr && action.kind == Kind::reduce && std::string_view(action.axis) == "dp_replicate") return *replicas_;
  return *room_of_[static_cast<std::size_t>(action.kind)];
}

// The block that an action's ops are counted to.
int Trainer::number_of(const plan::Action& action) const {
  if (action.layer >= 0) return network_.layers[static_cast<std::size_t>(action.layer)].number;
  return action.unit >= 0 && action.units == 1 ? numbers_[static_cast<std::size_t>(action.unit)] : -1;
}

//@ train.scalars: Squares are summed where parameters are kept in parts (fsdp, tp), the loss where tokens are (fsdp, replicas).
void Trainer::reduce_scalars() {
  const tensor::Tensor squares = scalars_.slice(0, {1});
  const tensor::Tensor loss = scalars_.slice(3, {1});
  if (fsdp_group_->size() > 1) {
    device_.record(compute_, summed_locally_);
    device_.wait(fsdp_stream_, summed_locally_);
    if (squares_sum_over("dp_shard")) fsdp_group_->all_reduce(fsdp_stream_, squares, squares);
    fsdp_group_->all_reduce(fsdp_stream_, loss, loss);
    device_.record(fsdp_stream_, summed_over_fsdp_);
    device_.wait(compute_, summed_over_fsdp_);
  }
  if (tp_group_->size() > 1 && squares_sum_over("tp")) {
    device_.record(compute_, summed_locally_);
    device_.wait(tp_stream_, summed_locally_);
    if (fsdp_group_->size() > 1) device_.wait(tp_stream_, summed_over_fsdp_);
    tp_group_->all_reduce(tp_stream_, squares, squares);
    device_.record(tp_stream_, summed_);
    device_.wait(compute_, summed_);
  }
  if (dp_group_->size() > 1) {
    device_.record(compute_, summed_locally_);
    device_.wait(dp_stream_, summed_locally_);
    dp_group_->all_reduce(dp_stream_, loss, loss);
    device_.record(dp_stream_, summed_over_dp_);
    device_.wait(compute_, summed_over_dp_);
  }
}
//@end

StepResult Trainer::await(std::int64_t step) {
  const std::size_t parity = static_cast<std::size_t>(step % 2);
  device_.host_wait(done_[parity]);
  StepResult result{step, 0, 0, learning_rate_.at(step)};
  auto read = [&](int index) {
    if (read_[parity] == nullptr) return 0.0;
    return scalars_.storage == base::DType::f64 ? static_cast<const double*>(read_[parity])[index]
                                                : static_cast<double>(static_cast<const float*>(read_[parity])[index]);
  };
  result.gradient_norm = read(2);
  result.loss = read(3);
  return result;
}

}  // namespace shardbook::train
