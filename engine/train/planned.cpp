#include "engine/train/planned.hpp"

#include <algorithm>

#include "engine/comm/meta/meta.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "engine/program/host_memory.hpp"

namespace shardbook::train {

using plan::Held;
using program::MemoryKind;

plan::Shapes shapes_of(const config::RunConfig& config) {
  const Choices choices = choices_of(config);
  const model::Sizes sizes = sizes_of(config.model);
  plan::Shapes shapes;
  shapes.layers = sizes.layers;
  shapes.width = sizes.width;
  shapes.heads = sizes.heads;
  shapes.key_value_heads = sizes.key_value_heads;
  shapes.head_dim = sizes.head_dim;
  shapes.ffn_width = sizes.ffn_width;
  shapes.vocabulary = sizes.vocabulary;
  shapes.positions = sizes.positions;
  shapes.tied = sizes.tied;
  shapes.llama = config.model.architecture == config::Architecture::llama;
  shapes.flash = choices.flash_attention || choices.cudnn_attention;
  shapes.cudnn = choices.cudnn_attention;
  shapes.sequences = config.sequences_per_micro_batch();
  shapes.micro_batches = config.micro_batches;
  shapes.rows_divided_by = choices.pieces.cut_tokens ? config.tp : 1;
  shapes.rows_in_turns = choices.pieces.in_turns;
  shapes.parameter = shapes.activation = base::size_of(choices.store.parameter);
  shapes.reduce = base::size_of(choices.store.reduce);
  shapes.keeps_copy = choices.store.keeps_copy;
  shapes.lends = choices.store.lends;
  shapes.tp = config.tp;
  shapes.fsdp = config.fsdp;
  shapes.dp = config.dp;
  shapes.blocks_a_unit = choices.unit.blocks;
  shapes.numbers_a_unit = choices.unit.numbers;
  shapes.each_parameter = choices.store.each_parameter;
  shapes.reshard = choices.store.reshard;
  shapes.near = choices.store.near;
  shapes.ahead = std::max({choices.gathers.forward.at_begin, choices.gathers.backward.at_begin, choices.gathers.backward.at_end - 1});
  shapes.reduce_each = choices.reduce == plan::Reduce::every_micro_batch;
  shapes.recompute = choices.recompute;
  shapes.remake = choices.remake;
  shapes.loss_chunks = choices.loss_chunks;
  shapes.loss_in_one = choices.loss_in_one && config.tp == 1;   // of a vocabulary that is cut there is another piece
  shapes.gelu_in_matmuls = choices.gelu_in_matmuls;
  shapes.recompute_attention = choices.recompute_attention;
  shapes.fused = !choices.gradients_apart;
  shapes.states_on_host = choices.store.on_host >= optimizer::OnHost::states;
  shapes.shards_on_host = choices.store.on_host == optimizer::OnHost::everything;
  shapes.piece = optimizer::OffloadConfig{}.piece;
  shapes.slots = optimizer::OffloadConfig{}.slots;
  return shapes;
}

namespace {

// Buffers are told apart by kind and by what their names begin and end with, as the rooms that make them call them.
Held held_as(const program::BufferInfo& buffer) {
  const std::string_view name = buffer.name;
  auto begins = [name](std::string_view with) { return name.starts_with(with); };
  auto ends = [name](std::string_view with) { return name.ends_with(with); };
  const bool of_block = begins("blocks."), on_host = program::in_host_memory(buffer);
  switch (buffer.kind) {
    case MemoryKind::parameter: return on_host ? Held::host_shards : begins("fsdp.shard.") ? Held::shards_to_device : Held::parameter_shards;
    case MemoryKind::gathered:
      if (ends(".kept")) return Held::kept_parts;
      return begins("fsdp.gathered.") || of_block ? Held::whole_blocks : Held::whole_ends;
    case MemoryKind::gradient:
      if (on_host) return begins("fsdp.landing.") ? Held::host_landings : Held::host_sums;
      if (begins("fsdp.sum.")) return Held::sums_to_host;
      if (name == "gradients" || ends(".gradient_shard")) return Held::gradient_sums;
      if (name == "gradient_apart") return Held::gradient_apart;
      if (name == "fsdp.gradient_rounded") return Held::rounded_gradient;
      if (name == "fsdp.gradient_staging") return Held::staged_gradient;
      return begins("fsdp.gradient.") ? Held::block_gradients : Held::end_gradients;
    case MemoryKind::optimizer:
      if (on_host) return begins("optimizer.factor") ? Held::host_factor : ends(std::string(".master").append(program::host_memory_mark)) ? Held::host_masters : Held::host_moments;
      if (begins("optimizer.slot.")) return Held::state_slots;
      return ends(".master") ? Held::masters : Held::moments;
    case MemoryKind::activation:
      if (begins("x.")) return Held::layer_inputs;
      if (of_block && ends(".kept")) return Held::lent;
      if (of_block) return name.find(".attention.") != name.npos ? Held::attention_kept : Held::block_kept;
      if (begins("loss.")) return Held::loss;
      if (name == "workspace.dx" || name == "workspace.dfinal_norm" || name == "workspace.recomputed") return Held::between_layers;
      if (name == "workspace.context" || name == "workspace.dqkv_heads" || name == "workspace.dprobability" || name == "workspace.probability" || name == "workspace.delta" || name == "workspace.cudnn") return Held::attention_workspace;
      return begins("workspace.") ? Held::block_workspace : Held::head_kept;
    case MemoryKind::workspace: return name == "scratch" ? Held::partial_sums : Held::optimizer_scratch;
    case MemoryKind::input: return Held::tokens;
  }
  return Held::tokens;
}

}  // namespace

std::map<Held, base::Bytes> held_in(const program::Catalogue& catalogue) {
  std::map<Held, base::Bytes> held;
  for (const program::BufferInfo& buffer : catalogue.buffers) held[held_as(buffer)] += buffer.bytes;
  return held;
}

namespace {

std::vector<PlannedParameter> parameters_of(Trainer& trainer, const mesh::Mesh& mesh) {
  std::map<std::string, std::pair<int, const model::Parameter*>> known;   // by name: its unit, and it
  const std::vector<model::Unit*>& units = trainer.model().units();
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const model::Parameter* parameter : units[unit]->parameters) known[parameter->name] = {static_cast<int>(unit), parameter};
  }
  std::vector<PlannedParameter> all;
  for (const optimizer::ShardState& state : trainer.shards()) {
    const std::vector<shard::FlatParameter>& flat = state.layout->parameters();
    for (std::size_t at = 0; at < flat.size(); ++at) {
      const auto& [unit, parameter] = known.at(flat[at].name);
      const shard::Interval lies = state.layout->range(static_cast<int>(at));
      all.push_back({flat[at].name, unit, flat[at].weight_decay, parameter->global_shape, parameter->boxes, flat[at].placement, lies.size(),
                     shard::intersect(lies, state.flat).size()});
      std::erase_if(all.back().placement, [&](const shard::Along& one) { return mesh.size(one.axis) == 1; });
    }
  }
  return all;
}

}  // namespace

base::Result<PlannedRank> planned(const config::RunConfig& config, const mesh::Mesh& mesh, base::Rank rank, const PlanMaker& make_plan) {
  device::MetaDevice device(rank);
  const std::unique_ptr<comm::Backend> backend = comm::make_meta_backend();
  try {
    Trainer trainer(config, device, *backend, mesh, rank, nullptr, make_plan);
    PlannedRank planned{trainer.network(), trainer.plan(), plan::needs_of(trainer.plan(), trainer.network()), {},
                        0, plan::holding_of(shapes_of(config)), held_in(device.recorder().catalogue()), parameters_of(trainer, mesh)};
    for (const program::BufferInfo& buffer : device.recorder().catalogue().buffers) {
      (program::in_host_memory(buffer) ? planned.on_host : planned.buffers[buffer.kind]) += buffer.bytes;
    }
    return planned;
  } catch (const base::Failure& failure) {
    return base::Error{failure.what()};
  }
}

}  // namespace shardbook::train
