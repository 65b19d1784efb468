#include "engine/model/model.hpp"

#include <algorithm>

#include "engine/kernels/layer_norm.hpp"
#include "engine/kernels/residual.hpp"

namespace shardbook::model {

Tensor allocate_activation(Context& ctx, base::Shape shape, const std::string& name) {
  if (ctx.lot != nullptr) return ctx.lot->take(shape);
  return tensor::allocate(ctx.device, shape, ctx.activation, program::MemoryKind::activation, name);
}

Tensor allocate_statistic(Context& ctx, base::Shape shape, const std::string& name) {
  if (ctx.lot != nullptr && ctx.lot->only_counts()) return {};
  return tensor::allocate(ctx.device, shape, base::DType::f32, program::MemoryKind::activation, name);
}

Model::Model(const ModelSpec& spec, const Sizes& sizes, const Stage& stage, const UnitSize& unit) : sizes_(sizes), stage_(stage), cut_(spec.cut) {
  SHARDBOOK_CHECK(!sizes.tied || stage.embedding == stage.head, "a tied head must be on the rank of its embedding");
  token_embedding_ = spec.embedding("embedding.token", sizes.vocabulary, sizes.width);
  positions_ = spec.positions("embedding.position", sizes.positions, sizes.width);
  embedded_ = spec.embedded("embedding");
  for (int layer = stage.first_layer; layer < stage.end_layer; ++layer) {
    blocks_.push_back(std::make_unique<Block>(spec, sizes, layer));
  }
  final_norm_ = spec.norm("head.norm", sizes.width, sizes.norm_epsilon);
  LinearConfig head{"head", LinearRole::head, sizes.width, {sizes.vocabulary}, false};
  if (sizes.tied) head.tied_weight = token_embedding_->weight();
  head_ = spec.linear(head);
  loss_ = spec.loss(sizes.vocabulary);

  // Units: what is used together is gathered together. A tied weight is used first and last.
  embedding_unit_.name = sizes.tied ? "root" : "embedding";
  head_unit_.name = "head";
  embedding_unit_.parameters = {token_embedding_->weight()};
  for (Parameter* parameter : positions_->parameters()) embedding_unit_.parameters.push_back(parameter);
  std::vector<Parameter*>& with_head = (sizes.tied ? embedding_unit_ : head_unit_).parameters;
  for (Parameter* parameter : final_norm_->parameters()) with_head.push_back(parameter);
  for (Parameter* parameter : head_->parameters()) with_head.push_back(parameter);
  join_blocks(unit);
  if (stage.embedding) units_.push_back(&embedding_unit_);
  for (Unit& unit : block_units_) units_.push_back(&unit);
  if (stage.head && !sizes.tied) units_.push_back(&head_unit_);
}

namespace {

std::int64_t numbers_of(const Unit& unit) {
  std::int64_t numbers = 0;
  for (const Parameter* parameter : unit.parameters) numbers += parameter->shape.elements();
  return numbers;
}

}  // namespace

//@ model.units: Which blocks are gathered together: each by itself, or so many in a row as make a unit large enough.
void Model::join_blocks(const UnitSize& least) {
  for (const auto& of : blocks_) {
    const Unit& block = of->unit();
    if (block_units_.empty() || (block_units_.back().blocks >= least.blocks && numbers_of(block_units_.back()) >= least.numbers)) {
      block_units_.push_back(block);
    } else {
      Unit& unit = block_units_.back();
      ++unit.blocks;
      unit.name = base::text("blocks.", unit.layer, "-", block.layer);
      unit.parameters.insert(unit.parameters.end(), block.parameters.begin(), block.parameters.end());
    }
    unit_of_block_.push_back(block_units_.size() - 1);
  }
}
//@end

std::vector<Parameter*> Model::parameters() {
  std::vector<Parameter*> all;
  for (Unit* unit : units_) all.insert(all.end(), unit->parameters.begin(), unit->parameters.end());
  return all;
}

std::int64_t Model::scratch_elements(const BatchShape& batch) const {
  const std::int64_t widest = std::max({3 * sizes_.heads * sizes_.head_dim, 2 * sizes_.ffn_width, sizes_.width});
  return std::max(kernels::layer_norm_weight_gradient_scratch(batch.tokens(), sizes_.width),
                  kernels::bias_gradient_scratch(batch.tokens(), widest));
}

void Model::keep_apart(Context& ctx, Slot& slot, Keep keep) {
  for (std::size_t block = 0; block <= blocks_.size(); ++block) {
    slot.x_ND.push_back(allocate_activation(ctx, {ctx.rows().size(), sizes_.width}, "x." + std::to_string(block)));
  }
  // Blocks that are computed again keep their inputs only: what backward needs stands in one place for all of them.
  for (auto& block : blocks_) {
    if (keep == Keep::inputs && !kept_once_.empty()) slot.blocks.push_back(kept_once_.front());
    else slot.blocks.push_back(block->keep(ctx, keep));
    if (keep == Keep::inputs && kept_once_.empty()) kept_once_.push_back(slot.blocks.back());
  }
}

//@ model.lots: What a unit's blocks keep lies side by side, in memory that is large enough for what comes after.
void Model::keep_in_lots(Context& ctx, Slot& slot, Keep keep, const std::vector<base::Bytes>& lots) {
  const base::Shape input{ctx.rows().size(), sizes_.width};
  slot.x_ND.resize(blocks_.size());
  slot.x_ND.push_back(allocate_activation(ctx, input, "x." + std::to_string(blocks_.size())));
  Context within = ctx;
  const auto take = [&](std::size_t first, std::size_t end) {
    std::vector<BlockKept> kept;
    for (std::size_t block = first; block < end; ++block) {
      slot.x_ND[block] = allocate_activation(within, input, "x." + std::to_string(block));
      kept.push_back(blocks_[block]->keep(within, keep));
    }
    return kept;
  };
  std::size_t first = 0;
  for (std::size_t unit = 0; unit < block_units_.size(); ++unit) {
    const std::size_t end = first + static_cast<std::size_t>(block_units_[unit].blocks);
    tensor::Lot needed;
    within.lot = &needed;
    take(first, end);
    const std::int64_t least = lots[unit] / base::size_of(ctx.activation);
    lots_.push_back(allocate_activation(ctx, {std::max(needed.taken(), least)}, block_units_[unit].name + ".kept"));
    tensor::Lot lot(lots_.back());
    within.lot = &lot;
    for (BlockKept& kept : take(first, end)) slot.blocks.push_back(std::move(kept));
    first = end;
  }
}
//@end

void Model::allocate(Context& ctx, int slots, const Memory& memory) {
  const auto& [keep, lots, loss_chunks] = memory;
  SHARDBOOK_CHECK(lots.empty() || (slots == 1 && keep != Keep::inputs && lots.size() == block_units_.size()), "lots are for one micro-batch in flight, whose blocks keep something each");
  const std::int64_t N = ctx.batch.tokens(), R = ctx.rows().size();
  const std::int64_t D = sizes_.width, scored = (N + loss_chunks - 1) / loss_chunks;   // tokens whose logits are there at once
  SHARDBOOK_CHECK(loss_chunks == 1 || R == N, "the loss of rows that are cut over ranks is taken at once");
  for (int number = 0; number < slots; ++number) {
    Slot& slot = slots_.emplace_back();
    if (lots.empty()) keep_apart(ctx, slot, keep);
    else keep_in_lots(ctx, slot, keep, lots);
    if (!stage_.head) continue;
    slot.final_norm_ND = allocate_activation(ctx, {R, D}, "head.norm");
    slot.final_norm = final_norm_->keep(ctx, "head.norm");
    // Of chunks one is there at a time, whoever's it is
    slot.logit_NV = number > 0 && loss_chunks > 1 ? slots_.front().logit_NV : allocate_activation(ctx, {scored, head_->outputs()}, "logits");
  }
  loss_chunks_ = loss_chunks;
  if (stage_.head) {
    loss_->allocate(ctx, scored);
    head_->allocate(ctx);
    dfinal_ND_ = allocate_activation(ctx, {R, D}, "workspace.dfinal_norm");
  }
  dx_ND_ = allocate_activation(ctx, {R, D}, "workspace.dx");
  if (keep == Keep::inputs) recomputed_ND_ = allocate_activation(ctx, {R, D}, "workspace.recomputed");
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    if (block == 0) blocks_[0]->allocate_workspace(ctx, workspace_, keep);
    else blocks_[block]->share_workspace(*blocks_[0]);
    for (Slot& slot : slots_) {
      if (keep == Keep::what_is_dear) blocks_[block]->lend(workspace_, slot.blocks[block]);
    }
  }
}

std::vector<Model::Layer> Model::layers() const {
  std::vector<Layer> all;
  if (stage_.embedding) all.push_back({"embedding", 0, -1});
  const std::size_t before = all.size();
  for (std::size_t at = 0; at < blocks_.size(); ++at) {
    const Unit& block = blocks_[at]->unit();
    all.push_back({block.name, static_cast<int>(before + unit_of_block_[at]), block.layer});
  }
  if (stage_.head) all.push_back({"head", sizes_.tied ? 0 : static_cast<int>(units_.size()) - 1, -1});
  return all;
}

Model::What Model::what(int layer) const {
  if (stage_.embedding && layer == 0) return What::embedding;
  return block(layer) < blocks_.size() ? What::block : What::head;
}

//@ model.forward: Forward of one layer of one micro-batch.
void Model::forward(Context& ctx, int layer, const Batch& batch, int slot_number, const Score& score) {
  Slot& slot = slots_[static_cast<std::size_t>(slot_number)];
  switch (what(layer)) {
    case What::embedding:
      token_embedding_->forward(ctx, batch, slot.x_ND[0]);
      positions_->forward(ctx, slot.x_ND[0]);
      embedded_->forward(ctx, slot.x_ND[0]);
      break;
    case What::block: {
      const std::size_t at = block(layer);
      blocks_[at]->forward(ctx, slot.x_ND[at], slot.blocks[at], workspace_, slot.x_ND[at + 1]);
      break;
    }
    case What::head:
      final_norm_->forward(ctx, slot.x_ND.back(), slot.final_norm_ND, slot.final_norm);
      if (loss_chunks_ > 1) break;
      head_->forward(ctx, slot.final_norm_ND, slot.logit_NV);
      loss_->forward_backward(ctx, slot.logit_NV, batch, score.scale, score.loss, score.accumulate);
      break;
  }
}
//@end

//@ model.loss.chunks: Logits of some tokens, their loss, and all that becomes of their gradient, before those of the next.
void Model::head_in_chunks(Context& ctx, Slot& slot, const Batch& batch, const Score& score) {
  for (int chunk = 0; chunk < loss_chunks_; ++chunk) {
    const auto [begin, end] = shard::part_of(ctx.batch.tokens(), loss_chunks_, chunk);
    if (begin == end) continue;
    const Tensor x_nD = slot.final_norm_ND.rows(begin, end), logit_nV = slot.logit_NV.rows(0, end - begin);
    const Batch tokens{batch.token_N.rows(begin, end), batch.target_N.rows(begin, end), {}};
    head_->forward(ctx, x_nD, logit_nV);
    loss_->forward_backward(ctx, logit_nV, tokens, score.scale, score.loss, score.accumulate || begin > 0);
    head_->input_gradient(ctx, logit_nV, dfinal_ND_.rows(begin, end));
    head_->weight_gradient(ctx, x_nD, logit_nV);
    head_->await_input_gradient(ctx);
  }
}
//@end

//@ model.backward: Backward of one layer; the gradient goes from layer to layer in one tensor.
void Model::backward(Context& ctx, int layer, const Batch& batch, int slot_number, const Score& score) {
  Slot& slot = slots_[static_cast<std::size_t>(slot_number)];
  switch (what(layer)) {
    case What::head:
      if (loss_chunks_ > 1) {
        head_in_chunks(ctx, slot, batch, score);
      } else {
        head_->begin_backward(ctx, slot.final_norm_ND);
        head_->input_gradient(ctx, slot.logit_NV, dfinal_ND_);
        head_->weight_gradient(ctx, slot.final_norm_ND, slot.logit_NV);
        head_->await_input_gradient(ctx);
      }
      final_norm_->weight_gradient(ctx, dfinal_ND_, slot.x_ND.back(), slot.final_norm);
      final_norm_->input_gradient(ctx, dfinal_ND_, slot.x_ND.back(), Tensor{}, dx_ND_, slot.final_norm);
      break;
    case What::block: {
      const std::size_t at = block(layer);
      blocks_[at]->backward(ctx, slot.x_ND[at], slot.blocks[at], workspace_, dx_ND_, dx_ND_);
      break;
    }
    case What::embedding:
      embedded_->backward(ctx, dx_ND_);
      token_embedding_->weight_gradient(ctx, batch, dx_ND_);
      positions_->weight_gradient(ctx, dx_ND_);
      break;
  }
}
//@end

//@ model.recompute: What a block's forward did not keep is made again from its input.
void Model::recompute(Context& ctx, int layer, int slot_number) {
  SHARDBOOK_CHECK(what(layer) == What::block, "only blocks are computed again, not layer ", layer);
  Slot& slot = slots_[static_cast<std::size_t>(slot_number)];
  const std::size_t at = block(layer);
  blocks_[at]->forward(ctx, slot.x_ND[at], slot.blocks[at], workspace_, recomputed_ND_);
}

void Model::remake(Context& ctx, int layer, int slot_number) {
  SHARDBOOK_CHECK(what(layer) == What::block, "only blocks are made again, not layer ", layer);
  Slot& slot = slots_[static_cast<std::size_t>(slot_number)];
  const std::size_t at = block(layer);
  blocks_[at]->remake(ctx, slot.x_ND[at], slot.blocks[at]);
}
//@end

}  // namespace shardbook::model
