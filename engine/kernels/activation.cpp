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

void swiglu_forward(Lane lane, const Tensor& up_N2F, const Tensor& y_NF) {
  static constexpr const char* op = "swiglu_forward";
  expect_matrix(op, "y_NF", y_NF);
  expect_shape(op, "up_N2F", up_N2F, {y_NF.shape[0], 2 * y_NF.shape[1]});
  expect_same_type(op, "y_NF", y_NF, up_N2F);
  OpDesc desc(op, OpKind::pointwise, up_N2F.nominal);
  desc.flops(5 * y_NF.elements()).reads(up_N2F.use()).writes(y_NF.use());  // the exponential counted as one
  const SwiGluForwardArgs args{up_N2F.data, y_NF.data, y_NF.shape[0], y_NF.shape[1], up_N2F.storage};
  lane.device().launch(lane, desc, args, &host::swiglu_forward, &cuda::swiglu_forward);
}

void swiglu_backward(Lane lane, const Tensor& up_N2F, const Tensor& dy_NF, const Tensor& dup_N2F) {
  static constexpr const char* op = "swiglu_backward";
  expect_matrix(op, "dy_NF", dy_NF);
  expect_shape(op, "up_N2F", up_N2F, {dy_NF.shape[0], 2 * dy_NF.shape[1]});
  expect_shape(op, "dup_N2F", dup_N2F, up_N2F.shape);
  expect_same_type(op, "dy_NF", dy_NF, up_N2F);
  expect_same_type(op, "dup_N2F", dup_N2F, up_N2F);
  OpDesc desc(op, OpKind::pointwise, up_N2F.nominal);
  desc.flops(11 * dy_NF.elements()).reads(up_N2F.use()).reads(dy_NF.use()).writes(dup_N2F.use());
  const SwiGluBackwardArgs args{up_N2F.data, dy_NF.data, dup_N2F.data, dy_NF.shape[0], dy_NF.shape[1], up_N2F.storage};
  lane.device().launch(lane, desc, args, &host::swiglu_backward, &cuda::swiglu_backward);
}

}  // namespace shardbook::kernels
