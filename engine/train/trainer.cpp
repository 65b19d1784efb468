#include "engine/train/trainer.hpp"

#include "engine/tensor_parallel/spec.hpp"

namespace shardbook::train {

using program::MemoryKind;
using program::Phase;
using program::Scope;

model::Sizes sizes_of(const config::ModelConfig& config) {
  model::Sizes sizes{config.layers, config.width, config.heads, config.kv_heads(), config.head_dim, config.ffn_width, config.vocab, config.sequence, config.tied};
  sizes.biases = config.architecture == config::Architecture::gpt;
  return sizes;
}

model::ModelSpec spec_of(const config::RunConfig& config) {
  model::ModelSpec spec = model::dense_spec();
  if (config.attention == config::AttentionKind::flash) spec = model::with_flash_attention(spec);
  if (config.model.architecture == config::Architecture::llama) spec = model::with_llama_pieces(spec, static_cast<float>(config.model.rope_theta));
  return spec;
}

std::vector<Action> one_after_the_other(int micro_batches) {
  std::vector<Action> actions;
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    actions.push_back({ActionKind::forward, micro_batch});
    actions.push_back({ActionKind::backward, micro_batch});
  }
  actions.push_back({ActionKind::reduce});
  actions.push_back({ActionKind::update});
  return actions;
}

Trainer::Trainer(const config::RunConfig& config, device::Device& device, comm::Backend& backend, const mesh::Mesh& mesh,
                 base::Rank rank, const data::TokenSource* source)
    : config_(config), device_(device), rank_(rank),
      compute_(device.create_stream("compute")),
      fsdp_stream_(config.fsdp > 1 ? device.create_stream("fsdp", device::Priority::high) : compute_),
      tp_stream_(config.tp > 1 ? device.create_stream("tp", device::Priority::high) : compute_),
      actions_(one_after_the_other(config.micro_batches)) {
  const base::DType activation = config.precision == config::Precision::bf16 ? base::DType::bf16 : base::DType::f32;

  // Groups: who cuts each matmul with me, and who shards each unit with me.
  tp_group_ = backend.communicator_or_alone(device, mesh.group(rank, "tp"));
  fsdp_group_ = backend.communicator_or_alone(device, mesh.group(rank, "dp_shard"));

  // The model, its pieces cut over tp.
  const model::Sizes sizes = sizes_of(config.model);
  const model::ModelSpec spec = tensor_parallel::parallel_spec(spec_of(config), device, {*tp_group_, tp_stream_});
  model_ = std::make_unique<model::Model>(spec, sizes, model::Stage{0, sizes.layers, true, true});

  // Its parameters, sharded over fsdp.
  const fsdp::ScheduleConfig schedule{config.prefetch, config.reshard, config.micro_batches, activation};
  sharded_ = std::make_unique<fsdp::FullyShardedModel>(*model_, device, compute_, fsdp_stream_, *fsdp_group_, schedule, config.seed);

  // Optimizer, input, activations.
  scalars_ = tensor::allocate(device, {4}, base::DType::f32, MemoryKind::workspace, "scalars");
  const optimizer::AdamWConfig adamw{static_cast<float>(config.beta1), static_cast<float>(config.beta2), static_cast<float>(config.eps),
                                     static_cast<float>(config.weight_decay), static_cast<float>(config.clip)};
  optimizer_ = std::make_unique<optimizer::AdamW>(device, adamw, sharded_->shards(), scalars_.slice(0, {3}));
  learning_rate_ = {static_cast<float>(config.lr), static_cast<float>(config.min_lr), config.warmup_steps, config.steps};
  batches_ = std::make_unique<Batches>(device, config, source, fsdp_group_->index(), model_->vocabulary());
  const model::BatchShape batch{config.sequences_per_micro_batch(), config.model.sequence};
  const tensor::Tensor scratch = tensor::allocate(device, {model_->scratch_elements(batch)}, base::DType::f32, MemoryKind::workspace, "scratch");
  ctx_ = std::make_unique<model::Context>(model::Context{device, compute_, batch, activation, scratch});
  model_->allocate(*ctx_, 1);

  summed_locally_ = device.create_event("scalars.summed_locally");
  summed_over_fsdp_ = device.create_event("scalars.summed_over_fsdp");
  summed_ = device.create_event("scalars.summed");
  for (int parity = 0; parity < 2; ++parity) {
    read_[static_cast<std::size_t>(parity)] = device.pinned(scalars_.storage_bytes());
    done_[static_cast<std::size_t>(parity)] = device.create_event("step.done." + std::to_string(parity));
  }
  device.seal();
  device.synchronize();
}

Trainer::~Trainer() = default;

//@ train.step: A step is a list of actions, issued without waiting for the device.
program::StepTimes& Trainer::issue(std::int64_t step, bool timed) {
  device_.begin_step(step, timed);
  sharded_->begin_step();
  for (const Action& action : actions_) act(action, step);

  // Leave loss and norm where the host will find them
  const std::size_t parity = static_cast<std::size_t>(step % 2);
  device_.download(compute_, "download_scalars", tensor::memory_of(scalars_), read_[parity]);
  program::StepTimes& times = device_.end_step();
  // Two events in turn, outside of the recorded step: each step's program is the same.
  device_.record(compute_, done_[parity]);
  return times;
}

void Trainer::act(const Action& action, std::int64_t step) {
  program::Recorder& recorder = device_.recorder();
  const float scale = 1.0f / static_cast<float>(config_.global_tokens());
  switch (action.kind) {
    case ActionKind::forward: {
      Scope scope(recorder, Phase::forward, -1, action.micro_batch);
      sharded_->begin_micro_batch(action.micro_batch);
      batches_->upload(compute_, step, action.micro_batch);
      model_->forward(*ctx_, *sharded_, batches_->batch(action.micro_batch), 0, scale, scalars_.slice(3, {1}), action.micro_batch > 0);
      break;
    }
    case ActionKind::backward: {
      Scope scope(recorder, Phase::backward, -1, action.micro_batch);
      model_->backward(*ctx_, *sharded_, batches_->batch(action.micro_batch), 0);
      break;
    }
    case ActionKind::reduce: {
      Scope scope(recorder, Phase::reduce, -1, -1);
      sharded_->finish_backward();
      optimizer_->sum_squares(compute_, tp_group_->index() == 0);
      reduce_scalars();
      break;
    }
    case ActionKind::update: {
      if (!update_) break;
      Scope scope(recorder, Phase::update, -1, -1);
      optimizer_->step(compute_, step, learning_rate_.at(step));
      sharded_->updated();
      break;
    }
  }
}
//@end

//@ train.scalars: The squares are summed over fsdp and tp, the loss over fsdp alone: tp ranks hold it alike.
void Trainer::reduce_scalars() {
  const tensor::Tensor squares = scalars_.slice(0, {1});
  const tensor::Tensor loss = scalars_.slice(3, {1});
  if (fsdp_group_->size() > 1) {
    device_.record(compute_, summed_locally_);
    device_.wait(fsdp_stream_, summed_locally_);
    fsdp_group_->all_reduce(fsdp_stream_, squares, squares);
    fsdp_group_->all_reduce(fsdp_stream_, loss, loss);
    device_.record(fsdp_stream_, summed_over_fsdp_);
    device_.wait(compute_, summed_over_fsdp_);
  }
  if (tp_group_->size() > 1) {
    device_.record(compute_, summed_locally_);
    device_.wait(tp_stream_, summed_locally_);
    if (fsdp_group_->size() > 1) device_.wait(tp_stream_, summed_over_fsdp_);
    tp_group_->all_reduce(tp_stream_, squares, squares);
    device_.record(tp_stream_, summed_);
    device_.wait(compute_, summed_);
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
