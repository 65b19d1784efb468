#include "engine/kernels/cross_entropy.hpp"

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/expect.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels {

using program::OpDesc;
using program::OpKind;

void cross_entropy_max(Lane lane, const Tensor& logit_NV, const Tensor& row_max_N) {
  static constexpr const char* op = "cross_entropy_max";
  expect_matrix(op, "logit_NV", logit_NV);
  const std::int64_t tokens = logit_NV.shape[0], vocab = logit_NV.shape[1];
  expect_stat(op, "row_max_N", row_max_N, tokens);
  OpDesc desc(op, OpKind::reduction, logit_NV.nominal);
  desc.flops(logit_NV.elements()).reads(logit_NV.use()).writes(row_max_N.use());
  const CrossEntropyMaxArgs args{logit_NV.data, row_max_N.data, tokens, vocab, logit_NV.storage};
  lane.device().launch(lane, desc, args, &host::cross_entropy_max, &cuda::cross_entropy_max);
}

void cross_entropy_sums(Lane lane, const Tensor& logit_NV, const Tensor& row_max_N, const Tensor& target_N,
                        std::int64_t vocab_begin, const Tensor& sums_2N) {
  static constexpr const char* op = "cross_entropy_sums";
  expect_matrix(op, "logit_NV", logit_NV);
  const std::int64_t tokens = logit_NV.shape[0], vocab = logit_NV.shape[1];
  expect_stat(op, "row_max_N", row_max_N, tokens);
  expect_index(op, "target_N", target_N, tokens);
  expect_stat(op, "sums_2N", sums_2N, 2 * tokens);
  OpDesc desc(op, OpKind::reduction, logit_NV.nominal);
  desc.flops(3 * logit_NV.elements())  // difference, exp, sum
      .reads(logit_NV.use()).reads(row_max_N.use()).reads(target_N.use()).writes(sums_2N.use());
  const CrossEntropySumsArgs args{logit_NV.data, row_max_N.data, static_cast<const std::int32_t*>(target_N.data),
                                  sums_2N.data, tokens, vocab, static_cast<std::int32_t>(vocab_begin),
                                  logit_NV.storage};
  lane.device().launch(lane, desc, args, &host::cross_entropy_sums, &cuda::cross_entropy_sums);
}

void cross_entropy_gradient(Lane lane, const Tensor& logit_NV, const Tensor& row_max_N, const Tensor& sums_2N,
                            const Tensor& target_N, std::int64_t vocab_begin, float scale, const Tensor& loss_N) {
  static constexpr const char* op = "cross_entropy_gradient";
  expect_matrix(op, "logit_NV", logit_NV);
  const std::int64_t tokens = logit_NV.shape[0], vocab = logit_NV.shape[1];
  expect_stat(op, "row_max_N", row_max_N, tokens);
  expect_stat(op, "sums_2N", sums_2N, 2 * tokens);
  expect_index(op, "target_N", target_N, tokens);
  expect_stat(op, "loss_N", loss_N, tokens);
  OpDesc desc(op, OpKind::pointwise, logit_NV.nominal);
  desc.flops(3 * logit_NV.elements())  // difference, exp, product
      .updates(logit_NV.use()).reads(row_max_N.use()).reads(sums_2N.use()).reads(target_N.use())
      .writes(loss_N.use());
  const CrossEntropyGradientArgs args{logit_NV.data, row_max_N.data, sums_2N.data,
                                      static_cast<const std::int32_t*>(target_N.data), loss_N.data, tokens, vocab,
                                      static_cast<std::int32_t>(vocab_begin), scale, logit_NV.storage};
  lane.device().launch(lane, desc, args, &host::cross_entropy_gradient, &cuda::cross_entropy_gradient);
}

void cross_entropy(Lane lane, const Tensor& logit_NV, const Tensor& target_N, float scale, const Tensor& loss_N) {
  static constexpr const char* op = "cross_entropy";
  expect_matrix(op, "logit_NV", logit_NV);
  const std::int64_t tokens = logit_NV.shape[0], vocab = logit_NV.shape[1];
  expect_index(op, "target_N", target_N, tokens);
  expect_stat(op, "loss_N", loss_N, tokens);
  OpDesc desc(op, OpKind::reduction, logit_NV.nominal);
  desc.flops(7 * logit_NV.elements())  // maximum; difference, exp, sum; difference, exp, product
      .updates(logit_NV.use()).reads(target_N.use()).writes(loss_N.use());
  const CrossEntropyArgs args{logit_NV.data, static_cast<const std::int32_t*>(target_N.data), loss_N.data, tokens, vocab, scale,
                              logit_NV.storage};
  lane.device().launch(lane, desc, args, &host::cross_entropy, &cuda::cross_entropy);
}

}  // namespace shardbook::kernels
