#include "engine/model/block.hpp"

#include <cmath>

namespace shardbook::model {

Block::Block(const ModelSpec& spec, const Sizes& sizes, int layer)
    : name_("blocks." + std::to_string(layer)), width_(sizes.width) {
  // Deviations as GPT-2: 0.02, and less for what is added to the residual once a layer.
  const float plain = 0.02f;
  const float into_residual = plain / std::sqrt(2.0f * static_cast<float>(sizes.layers));
  const std::int64_t query_rows = sizes.heads * sizes.head_dim;
  const std::int64_t key_rows = sizes.key_value_heads * sizes.head_dim;

  norm_1_ = spec.norm(name_ + ".norm_1", width_, sizes.norm_epsilon);
  qkv_ = spec.linear({name_ + ".attention.qkv", LinearRole::qkv, width_, {query_rows, key_rows, key_rows}, sizes.biases, false, plain});
  attention_ = spec.attention({sizes.heads, sizes.key_value_heads, sizes.head_dim, name_ + ".attention"});
  projection_ = spec.linear({name_ + ".attention.projection", LinearRole::projection, query_rows, {width_}, sizes.biases, true, into_residual});
  residual_1_ = spec.residual(name_ + ".attention.residual");
  norm_2_ = spec.norm(name_ + ".norm_2", width_, sizes.norm_epsilon);
  activation_ = spec.activation();
  const std::vector<std::int64_t> up_sections(static_cast<std::size_t>(activation_->sections()), sizes.ffn_width);
  up_ = spec.linear({name_ + ".mlp.up", LinearRole::up, width_, up_sections, sizes.biases, false, plain});
  down_ = spec.linear({name_ + ".mlp.down", LinearRole::down, sizes.ffn_width, {width_}, sizes.biases, true, into_residual});
  residual_2_ = spec.residual(name_ + ".mlp.residual");

  unit_.name = name_;
  unit_.layer = layer;
  unit_.alike = true;
  auto adopt = [this](std::vector<Parameter*> parameters) {
    unit_.parameters.insert(unit_.parameters.end(), parameters.begin(), parameters.end());
  };
  adopt(norm_1_->parameters());
  adopt(qkv_->parameters());
  adopt(projection_->parameters());
  adopt(norm_2_->parameters());
  adopt(up_->parameters());
  adopt(down_->parameters());
}

BlockKept Block::keep(Context& ctx, Keep what) {
  const std::int64_t N = ctx.batch.tokens(), R = ctx.rows().size();
  const bool all = what != Keep::what_is_dear;
  BlockKept kept;
  if (all) kept.norm_1_ND = allocate_activation(ctx, {R, width_}, name_ + ".norm_1");
  kept.norm_1 = norm_1_->keep(ctx, name_ + ".norm_1");
  kept.attention = attention_->keep(ctx, name_ + ".attention");
  kept.attended_NI = allocate_activation(ctx, {N, projection_->inputs()}, name_ + ".attended");
  kept.residual_ND = allocate_activation(ctx, {R, width_}, name_ + ".residual");
  if (all) kept.norm_2_ND = allocate_activation(ctx, {R, width_}, name_ + ".norm_2");
  kept.norm_2 = norm_2_->keep(ctx, name_ + ".norm_2");
  kept.up_NE = allocate_activation(ctx, {N, up_->outputs()}, name_ + ".up");
  if (all) kept.activated_NF = allocate_activation(ctx, {N, down_->inputs()}, name_ + ".activated");
  return kept;
}

//@ model.block.lend: What is made again lies where, later in the same backward, a gradient will: nothing reads both.
void Block::lend(const BlockWorkspace& workspace, BlockKept& kept) const {
  kept.norm_1_ND = workspace.norm_1_ND;
  kept.norm_2_ND = workspace.dresidual_ND;
  kept.activated_NF = workspace.dup_NE.slice(0, workspace.dactivated_NF.shape);
}
//@end

void Block::allocate_workspace(Context& ctx, BlockWorkspace& workspace, Keep what) {
  const std::int64_t N = ctx.batch.tokens(), R = ctx.rows().size();
  attention_->allocate_workspace(ctx);
  for (Linear* linear : {qkv_.get(), projection_.get(), up_.get(), down_.get()}) linear->allocate(ctx);
  workspace.qkv_NE = allocate_activation(ctx, {N, qkv_->outputs()}, "workspace.qkv");
  workspace.branch_ND = allocate_activation(ctx, {R, width_}, "workspace.branch");
  workspace.dactivated_NF = allocate_activation(ctx, {N, down_->inputs()}, "workspace.dactivated");
  // What is made again lies there, too (lend)
  const bool has_dup = !activation_->in_place() || what == Keep::what_is_dear;
  if (has_dup) workspace.dup_NE = allocate_activation(ctx, {N, up_->outputs()}, "workspace.dup");
  workspace.dnorm_ND = allocate_activation(ctx, {R, width_}, "workspace.dnorm");
  workspace.dresidual_ND = allocate_activation(ctx, {R, width_}, "workspace.dresidual");
  workspace.dattended_NI = allocate_activation(ctx, {N, projection_->inputs()}, "workspace.dattended");
  if (what == Keep::what_is_dear) workspace.norm_1_ND = allocate_activation(ctx, {R, width_}, "workspace.norm_1");
}

namespace {

// The bias that a linear left to us, if it did.
Tensor late_bias(Linear& linear) {
  Parameter* bias = linear.late_bias();
  return bias == nullptr ? Tensor{} : bias->value;
}

}  // namespace

//@ model.block.forward: A block's forward: two halves, each added to the residual.
void Block::forward(Context& ctx, const Tensor& x_ND, BlockKept& kept, BlockWorkspace& work, const Tensor& y_ND) {
  // Attention half
  norm_1_->forward(ctx, x_ND, kept.norm_1_ND, kept.norm_1);
  const Tensor qkv_NE = attention_->qkv_NE(kept.attention, work.qkv_NE);
  qkv_->forward(ctx, kept.norm_1_ND, qkv_NE);
  attention_->forward(ctx, qkv_NE, kept.attended_NI, kept.attention);
  projection_->forward(ctx, kept.attended_NI, work.branch_ND);
  residual_1_->forward(ctx, x_ND, work.branch_ND, late_bias(*projection_), kept.residual_ND);

  // MLP half
  norm_2_->forward(ctx, kept.residual_ND, kept.norm_2_ND, kept.norm_2);
  up_->forward(ctx, kept.norm_2_ND, kept.up_NE, activation_->in_up(kept.activated_NF));
  activation_->forward(ctx, kept.up_NE, kept.activated_NF);
  down_->forward(ctx, kept.activated_NF, work.branch_ND);
  residual_2_->forward(ctx, kept.residual_ND, work.branch_ND, late_bias(*down_), y_ND);
}
//@end

//@ model.block.remake: What costs a pass over memory and no matmul: outputs of both norms and of the activation.
void Block::remake(Context& ctx, const Tensor& x_ND, BlockKept& kept) {
  norm_1_->forward(ctx, x_ND, kept.norm_1_ND, kept.norm_1);
  norm_2_->forward(ctx, kept.residual_ND, kept.norm_2_ND, kept.norm_2);
  activation_->remake(ctx, kept.up_NE, kept.activated_NF);
}
//@end

//@ model.block.backward: Each linear starts its input gradient, then hides the sum over ranks behind its weight gradient.
void Block::backward(Context& ctx, const Tensor& x_ND, BlockKept& kept, BlockWorkspace& work, const Tensor& dy_ND,
                     const Tensor& dx_ND) {
  // MLP half
  const Tensor dmlp_ND = residual_2_->backward(ctx, dy_ND, work.branch_ND);
  down_->input_gradient(ctx, dmlp_ND, work.dactivated_NF, activation_->in_down(kept.up_NE));
  up_->begin_backward(ctx, kept.norm_2_ND);
  down_->weight_gradient(ctx, kept.activated_NF, dmlp_ND);
  down_->await_input_gradient(ctx);
  const Tensor dup_NE = activation_->backward(ctx, kept.up_NE, work.dactivated_NF, work.dup_NE);
  up_->input_gradient(ctx, dup_NE, work.dnorm_ND);
  up_->weight_gradient(ctx, kept.norm_2_ND, dup_NE);
  up_->await_input_gradient(ctx);
  norm_2_->weight_gradient(ctx, work.dnorm_ND, kept.residual_ND, kept.norm_2);
  norm_2_->input_gradient(ctx, work.dnorm_ND, kept.residual_ND, dy_ND, work.dresidual_ND, kept.norm_2);

  // Attention half
  const Tensor dattention_ND = residual_1_->backward(ctx, work.dresidual_ND, work.branch_ND);
  projection_->input_gradient(ctx, dattention_ND, work.dattended_NI);
  qkv_->begin_backward(ctx, kept.norm_1_ND);
  projection_->weight_gradient(ctx, kept.attended_NI, dattention_ND);
  projection_->await_input_gradient(ctx);
  attention_->backward(ctx, work.dattended_NI, kept.attended_NI, work.qkv_NE, kept.attention);
  qkv_->input_gradient(ctx, work.qkv_NE, work.dnorm_ND);
  qkv_->weight_gradient(ctx, kept.norm_1_ND, work.qkv_NE);
  qkv_->await_input_gradient(ctx);
  norm_1_->weight_gradient(ctx, work.dnorm_ND, x_ND, kept.norm_1);
  norm_1_->input_gradient(ctx, work.dnorm_ND, x_ND, work.dresidual_ND, dx_ND, kept.norm_1);
}
//@end

}  // namespace shardbook::model
