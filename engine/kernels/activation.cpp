#include "engine/kernels/activation.hpp"

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/expect.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels {

using program::OpDesc;
using program::OpKind;

void gelu_forward(Lane lane, const Tensor& x, const Tensor& y) {
  static constexpr const char* op = "gelu_forward";
  expect_elements(op, "y", y, x.elements());
  expect_same_type(op, "y", y, x);
  OpDesc desc(op, OpKind::pointwise, x.nominal);
  desc.flops(9 * x.elements()).reads(x.use()).writes(y.use());  // the tanh counted as one
  const GeluForwardArgs args{x.data, y.data, x.elements(), x.storage};
  lane.device().launch(lane, desc, args, &host::gelu_forward, &cuda::gelu_forward);
}

void gelu_backward(Lane lane, const Tensor& x, const Tensor& dy, const Tensor& dx) {
  static constexpr const char* op = "gelu_backward";
  expect_elements(op, "dy", dy, x.elements());
  expect_elements(op, "dx", dx, x.elements());
  expect_same_type(op, "dy", dy, x);
  expect_same_type(op, "dx", dx, x);
  OpDesc desc(op, OpKind::pointwise, x.nominal);
  desc.flops(18 * x.elements()).reads(x.use()).reads(dy.use()).writes(dx.use());
  const GeluBackwardArgs args{x.data, dy.data, dx.data, x.elements(), x.storage};
  lane.device().launch(lane, desc, args, &host::gelu_backward, &cuda::gelu_backward);
}

}  // namespace shardbook::kernels
