#include "engine/kernels/embedding.hpp"

#include <algorithm>

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/expect.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels {

using program::OpDesc;
using program::OpKind;

void embedding_forward(Lane lane, const Tensor& token_N, const Tensor& weight_VD, std::int64_t vocab_begin,
                       const Tensor& x_ND) {
  static constexpr const char* op = "embedding_forward";
  expect_matrix(op, "x_ND", x_ND);
  expect_matrix(op, "weight_VD", weight_VD);
  const std::int64_t tokens = x_ND.shape[0], width = x_ND.shape[1], vocab = weight_VD.shape[0];
  expect_index(op, "token_N", token_N, tokens);
  expect_shape(op, "weight_VD", weight_VD, {vocab, width});
  expect_same_type(op, "weight_VD", weight_VD, x_ND);

  // Of the table only the rows of the tokens are read.
  OpDesc desc(op, OpKind::lookup, x_ND.nominal);
  desc.reads(token_N.use()).reads(weight_VD.use(), x_ND.nominal_bytes()).writes(x_ND.use());
  const EmbeddingForwardArgs args{static_cast<const std::int32_t*>(token_N.data), weight_VD.data, x_ND.data, tokens,
                                  width, static_cast<std::int32_t>(vocab_begin),
                                  static_cast<std::int32_t>(vocab_begin + vocab), x_ND.storage};
  lane.device().launch(lane, desc, args, &host::embedding_forward, &cuda::embedding_forward);
}

void embedding_backward(Lane lane, const Tensor& dx_ND, const TokenSegments& segments, std::int64_t vocab_begin,
                        const Tensor& dweight_VD, bool accumulate) {
  static constexpr const char* op = "embedding_backward";
  expect_matrix(op, "dx_ND", dx_ND);
  expect_matrix(op, "dweight_VD", dweight_VD);
  const std::int64_t tokens = dx_ND.shape[0], width = dx_ND.shape[1], vocab = dweight_VD.shape[0];
  expect_shape(op, "dweight_VD", dweight_VD, {vocab, width});
  expect_nominal(op, "dweight_VD", dweight_VD, base::DType::f32);
  for (const Tensor& index : {segments.order_N, segments.segment_token_N, segments.segment_begin_N, segments.segments}) {
    expect_nominal(op, "each of the segments' tensors", index, base::DType::i32);
  }
  const std::int64_t most_segments = std::min(tokens, vocab);
  expect_at_least(op, "order_N", segments.order_N, tokens);
  expect_at_least(op, "segment_token_N", segments.segment_token_N, most_segments);
  expect_at_least(op, "segment_begin_N", segments.segment_begin_N, most_segments + 1);
  expect_at_least(op, "segments", segments.segments, 1);

  // Rows that are touched: one a token at most. Without accumulate the whole table is written.
  const base::Bytes rows_touched = most_segments * width * base::size_of(dweight_VD.nominal);
  OpDesc desc(op, OpKind::lookup, dx_ND.nominal);
  desc.flops(dx_ND.elements())
      .reads(dx_ND.use())
      .reads(segments.order_N.use(), tokens * base::size_of(base::DType::i32))
      .reads(segments.segment_token_N.use(), most_segments * base::size_of(base::DType::i32))
      .reads(segments.segment_begin_N.use(), (most_segments + 1) * base::size_of(base::DType::i32))
      .reads(segments.segments.use());
  if (accumulate) desc.reads(dweight_VD.use(), rows_touched).writes(dweight_VD.use(), rows_touched);
  else desc.writes(dweight_VD.use());
  const EmbeddingBackwardArgs args{dx_ND.data,
                                   static_cast<const std::int32_t*>(segments.order_N.data),
                                   static_cast<const std::int32_t*>(segments.segment_token_N.data),
                                   static_cast<const std::int32_t*>(segments.segment_begin_N.data),
                                   static_cast<const std::int32_t*>(segments.segments.data),
                                   dweight_VD.data,
                                   tokens,
                                   width,
                                   static_cast<std::int32_t>(vocab_begin),
                                   static_cast<std::int32_t>(vocab_begin + vocab),
                                   accumulate,
                                   dx_ND.storage};
  lane.device().launch(lane, desc, args, &host::embedding_backward, &cuda::embedding_backward);
}

void position_forward(Lane lane, const Tensor& weight_SD, const Tensor& x_ND, std::int64_t first) {
  static constexpr const char* op = "position_forward";
  expect_matrix(op, "x_ND", x_ND);
  expect_matrix(op, "weight_SD", weight_SD);
  const std::int64_t positions = weight_SD.shape[0], rows = x_ND.shape[0], width = x_ND.shape[1];
  expect_shape(op, "weight_SD", weight_SD, {positions, width});
  expect_same_type(op, "weight_SD", weight_SD, x_ND);
  OpDesc desc(op, OpKind::pointwise, x_ND.nominal);
  desc.flops(x_ND.elements()).reads(weight_SD.use()).updates(x_ND.use());
  const PositionForwardArgs args{weight_SD.data, x_ND.data, rows, positions, width, x_ND.storage, first};
  lane.device().launch(lane, desc, args, &host::position_forward, &cuda::position_forward);
}

void position_backward(Lane lane, const Tensor& dx_ND, const Tensor& dweight_SD, bool accumulate, std::int64_t first) {
  static constexpr const char* op = "position_backward";
  expect_matrix(op, "dx_ND", dx_ND);
  expect_matrix(op, "dweight_SD", dweight_SD);
  const std::int64_t positions = dweight_SD.shape[0], rows = dx_ND.shape[0], width = dx_ND.shape[1];
  expect_shape(op, "dweight_SD", dweight_SD, {positions, width});
  expect_nominal(op, "dweight_SD", dweight_SD, base::DType::f32);
  OpDesc desc(op, OpKind::reduction, dx_ND.nominal);
  desc.flops(dx_ND.elements()).reads(dx_ND.use());
  if (accumulate) desc.updates(dweight_SD.use());
  else desc.writes(dweight_SD.use());
  const PositionBackwardArgs args{dx_ND.data, dweight_SD.data, rows, positions, width, accumulate, dx_ND.storage, first};
  lane.device().launch(lane, desc, args, &host::position_backward, &cuda::position_backward);
}

}  // namespace shardbook::kernels
