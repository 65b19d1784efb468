#include "engine/kernels/residual.hpp"

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/expect.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels {

using program::OpDesc;
using program::OpKind;

void add_bias_residual(Lane lane, const Tensor& residual_ND, const Tensor& x_ND, const Tensor& bias_D,
                       const Tensor& out_ND) {
  static constexpr const char* op = "add_bias_residual";
  expect_residual(op, residual_ND, x_ND, bias_D, out_ND);
  const std::int64_t tokens = x_ND.shape[0], width = x_ND.shape[1];

  OpDesc desc(op, OpKind::pointwise, x_ND.nominal);
  desc.flops(x_ND.elements()).reads(residual_ND.use()).reads(x_ND.use()).writes(out_ND.use());
  if (bias_D.exists()) {
    desc.flops(2 * x_ND.elements()).reads(bias_D.use());
  }
  const AddBiasResidualArgs args{residual_ND.data, x_ND.data, bias_D.data, out_ND.data, tokens, width, x_ND.storage};
  lane.device().launch(lane, desc, args, &host::add_bias_residual, &cuda::add_bias_residual);
}

void bias_gradient(Lane lane, const Tensor& dy_NO, const Tensor& dbias_O, const Tensor& scratch, bool accumulate) {
  static constexpr const char* op = "bias_gradient";
  expect_matrix(op, "dy_NO", dy_NO);
  const std::int64_t tokens = dy_NO.shape[0], width = dy_NO.shape[1];
  expect_stat(op, "dbias_O", dbias_O, width);
  expect_nominal(op, "scratch", scratch, base::DType::f32);
  const std::int64_t partial_sums = bias_gradient_scratch(tokens, width);
  expect_at_least(op, "scratch", scratch, partial_sums);

  OpDesc desc(op, OpKind::reduction, dy_NO.nominal);
  desc.flops(dy_NO.elements())
      .reads(dy_NO.use())
      .writes(scratch.use(), partial_sums * base::size_of(scratch.nominal));
  if (accumulate) desc.updates(dbias_O.use());
  else desc.writes(dbias_O.use());
  const BiasGradientArgs args{dy_NO.data, dbias_O.data, scratch.data, tokens, width, accumulate, dy_NO.storage};
  lane.device().launch(lane, desc, args, &host::bias_gradient, &cuda::bias_gradient);
}

std::int64_t bias_gradient_scratch(std::int64_t tokens, std::int64_t width) { return row_blocks(tokens) * width; }

void accumulate(Lane lane, const Tensor& from, const Tensor& into) {
  static constexpr const char* op = "accumulate";
  expect_nominal(op, "from", from, base::DType::f32);
  expect_stat(op, "into", into, from.elements());
  OpDesc desc(op, OpKind::pointwise, into.nominal);
  desc.flops(from.elements()).reads(from.use()).updates(into.use());
  const AccumulateArgs args{from.data, into.data, from.elements(), into.storage};
  lane.device().launch(lane, desc, args, &host::accumulate, &cuda::accumulate);
}

void sum_parts(Lane lane, const Tensor& parts_PRD, const Tensor& out_RD) {
  static constexpr const char* op = "sum_parts";
  const std::int64_t parts = parts_PRD.shape[0], elements = out_RD.elements();
  expect_elements(op, "parts_PRD", parts_PRD, parts * elements);
  expect_same_type(op, "out_RD", out_RD, parts_PRD);
  OpDesc desc(op, OpKind::pointwise, out_RD.nominal);
  desc.flops((parts - 1) * elements).reads(parts_PRD.use()).writes(out_RD.use());
  const SumPartsArgs args{parts_PRD.data, out_RD.data, elements, parts, out_RD.storage};
  lane.device().launch(lane, desc, args, &host::sum_parts, &cuda::sum_parts);
}

void widen(Lane lane, const Tensor& from, const Tensor& into, bool accumulate) {
  static constexpr const char* op = "widen";
  expect_stat(op, "into", into, from.elements());
  OpDesc desc(op, OpKind::pointwise, into.nominal);
  desc.reads(from.use());
  if (accumulate) desc.flops(from.elements()).updates(into.use());
  else desc.writes(into.use());
  const WidenArgs args{from.data, into.data, from.elements(), accumulate, from.storage};
  lane.device().launch(lane, desc, args, &host::widen, &cuda::widen);
}

}  // namespace shardbook::kernels
