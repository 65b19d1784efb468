#include "engine/model/dropout.hpp"

#include "engine/kernels/attention.hpp"
#include "engine/kernels/residual.hpp"

namespace shardbook::model {

namespace {

std::uint64_t key_of(const Context& ctx, std::uint32_t place) { return kernels::dropout_key(ctx.draw.seed, ctx.draw.step, place); }

// Of a step that will be issued again as it is, the kernel looks up which step it is.
kernels::DropoutMask of_the_step(const Context& ctx, std::uint32_t place, const kernels::DropoutMask& mask) {
  return ctx.draw.step_key == nullptr ? mask : kernels::by_step(mask, place, ctx.draw.step_key);
}

//@ model.dropout.rows: The rows that are here, as elements of all tokens of the global batch.
kernels::DropoutMask mask_of_rows(const Context& ctx, std::uint32_t place, double rate, std::int64_t width) {
  const std::int64_t first_token = ctx.draw.first_sequence * ctx.batch.positions + ctx.rows().begin;
  return of_the_step(ctx, place, kernels::dropout_mask(rate, key_of(ctx, place), first_token * width));
}
//@end

}  // namespace

void WholeResidual::forward(Context& ctx, const Tensor& residual_RD, const Tensor& branch_RD, const Tensor& bias_D, const Tensor& out_RD) {
  kernels::add_bias_residual(ctx.compute, residual_RD, branch_RD, bias_D, out_RD);
}

DroppedResidual::DroppedResidual(const std::string& name, double rate) : place_(generator_key(name)), rate_(rate) {}

void DroppedResidual::forward(Context& ctx, const Tensor& residual_RD, const Tensor& branch_RD, const Tensor& bias_D, const Tensor& out_RD) {
  program::Part part(ctx.device.recorder(), "dropout");
  kernels::bias_dropout_residual(ctx.compute, residual_RD, branch_RD, bias_D, mask_of_rows(ctx, place_, rate_, branch_RD.shape[1]), out_RD);
}

Tensor DroppedResidual::backward(Context& ctx, const Tensor& dout_RD, const Tensor& into_RD) {
  program::Part part(ctx.device.recorder(), "dropout");
  kernels::dropout(ctx.compute, "dropout_backward", dout_RD, mask_of_rows(ctx, place_, rate_, dout_RD.shape[1]), into_RD);
  return into_RD;
}

RowDropout::RowDropout(const std::string& name, double rate) : place_(generator_key(name)), rate_(rate) {}

void RowDropout::forward(Context& ctx, const Tensor& x_RD) {
  program::Part part(ctx.device.recorder(), "dropout");
  kernels::dropout(ctx.compute, "dropout_forward", x_RD, mask_of_rows(ctx, place_, rate_, x_RD.shape[1]), x_RD);
}

void RowDropout::backward(Context& ctx, const Tensor& dx_RD) {
  program::Part part(ctx.device.recorder(), "dropout");
  kernels::dropout(ctx.compute, "dropout_backward", dx_RD, mask_of_rows(ctx, place_, rate_, dx_RD.shape[1]), dx_RD);
}

ProbabilityMask::ProbabilityMask(const AttentionConfig& config, double rate)
    : place_(generator_key(config.name + ".probability")), rate_(rate), heads_(config.heads), first_head_(config.part * config.heads),
      all_heads_(config.parts * config.heads) {}

//@ model.dropout.heads: The heads that are here, as elements of the squares of all heads of the layer: a run a sequence.
kernels::DropoutMask ProbabilityMask::operator()(const Context& ctx) const {
  const std::int64_t square = ctx.batch.positions * ctx.batch.positions;
  const std::int64_t first = (ctx.draw.first_sequence * all_heads_ + first_head_) * square;
  return of_the_step(ctx, place_, kernels::dropout_mask(rate_, key_of(ctx, place_), first, heads_ * square, all_heads_ * square));
}
//@end

void DroppedValues::forward(Context& ctx, const Tensor& p_BHSS, const Tensor& v_BHSK, const Tensor& square_BHSS, const Tensor& out_BHSK) {
  kernels::dropout(ctx.compute, "dropout_forward", p_BHSS, mask_(ctx), square_BHSS);
  kernels::attention_context(ctx.compute, square_BHSS, v_BHSK, out_BHSK);
}

//@ model.dropout.probability: The dropped probabilities are made again in the place where their gradient will be.
void DroppedValues::backward(Context& ctx, const Tensor& p_BHSS, const Tensor& v_BHSK, const Tensor& dout_BHSK, const Tensor& dp_BHSS,
                             const Tensor& dv_BHSK) {
  kernels::dropout(ctx.compute, "dropout_forward", p_BHSS, mask_(ctx), dp_BHSS);
  kernels::attention_value_gradient(ctx.compute, dp_BHSS, dout_BHSK, dv_BHSK);
  kernels::attention_probability_gradient(ctx.compute, dout_BHSK, v_BHSK, dp_BHSS);
  kernels::dropout(ctx.compute, "dropout_backward", dp_BHSS, mask_(ctx), dp_BHSS);
}
//@end

ModelSpec with_dropout(ModelSpec spec, const DropoutRates& rates) {
  if (rates.hidden > 0) {
    spec.residual = [rate = rates.hidden](const std::string& name) { return std::make_unique<DroppedResidual>(name, rate); };
    spec.embedded = [rate = rates.hidden](const std::string& name) { return std::make_unique<RowDropout>(name, rate); };
  }
  if (rates.attention > 0) {
    spec.attention = [make = spec.attention, rate = rates.attention](const AttentionConfig& config) {
      std::unique_ptr<Attention> attention = make(config);
      const ProbabilityMask mask(config, rate);
      if (auto* const unfused = dynamic_cast<CausalAttention*>(attention.get())) {
        unfused->weigh_values_by(std::make_unique<DroppedValues>(mask));
      } else {
        auto* const by_tiles = dynamic_cast<FlashAttention*>(attention.get());
        SHARDBOOK_CHECK(by_tiles != nullptr, config.name, " is of a form whose probabilities no dropout finds: it is neither with the square nor by tiles");
        by_tiles->drop_by(mask);
      }
      return attention;
    };
  }
  return spec;
}

}  // namespace shardbook::model
