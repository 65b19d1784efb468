#include "engine/model/rotary.hpp"

#include "engine/kernels/rotary.hpp"
#include "engine/model/attention.hpp"

namespace shardbook::model {

void RotaryAttention::share_workspace(const Attention& other) {
  attention_->share_workspace(*of_same_kind<RotaryAttention>(other).attention_);
}

void RotaryAttention::turn(Context& ctx, const Tensor& rows_NE, bool back) const {
  program::Part part(ctx.device.recorder(), "rotary");
  kernels::rotate(ctx.compute, rows_NE, ctx.batch.positions, turned_, head_dim_, theta_, back);
}

void RotaryAttention::forward(Context& ctx, const Tensor& qkv_NE, const Tensor& out_NI, Kept& kept) {
  turn(ctx, qkv_NE, false);
  attention_->forward(ctx, qkv_NE, out_NI, kept);
}

void RotaryAttention::backward(Context& ctx, const Tensor& dout_NI, const Tensor& out_NI, const Tensor& dqkv_NE, Kept& kept) {
  attention_->backward(ctx, dout_NI, out_NI, dqkv_NE, kept);
  turn(ctx, dqkv_NE, true);
}

}  // namespace shardbook::model
