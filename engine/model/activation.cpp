#include "engine/model/activation.hpp"

#include "engine/kernels/activation.hpp"

namespace shardbook::model {

void Gelu::forward(Context& ctx, const Tensor& up_NE, const Tensor& out_NF) {
  program::Part part(ctx.device.recorder(), "activation");
  kernels::gelu_forward(ctx.compute, up_NE, out_NF);
}

Tensor Gelu::backward(Context& ctx, const Tensor& up_NE, const Tensor& dout_NF, const Tensor& into_NE) {
  program::Part part(ctx.device.recorder(), "activation");
  kernels::gelu_backward(ctx.compute, up_NE, dout_NF, into_NE);
  return into_NE;
}

void SwiGlu::forward(Context& ctx, const Tensor& up_NE, const Tensor& out_NF) {
  program::Part part(ctx.device.recorder(), "activation");
  kernels::swiglu_forward(ctx.compute, up_NE, out_NF);
}

Tensor SwiGlu::backward(Context& ctx, const Tensor& up_NE, const Tensor& dout_NF, const Tensor& into_NE) {
  program::Part part(ctx.device.recorder(), "activation");
  kernels::swiglu_backward(ctx.compute, up_NE, dout_NF, into_NE);
  return into_NE;
}

}  // namespace shardbook::model
