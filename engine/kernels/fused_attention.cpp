#include "engine/kernels/fused_attention.hpp"

namespace shardbook::kernels {

using program::OpDesc;
using program::OpKind;

namespace {

void expect_heads(const char* op, const GroupedHeads& heads) {
  SHARDBOOK_CHECK(heads.key_value_heads > 0 && heads.heads % heads.key_value_heads == 0, op, ": ", heads.heads,
                  " query heads do not divide over ", heads.key_value_heads, " key-value heads");
}

void expect_mask(const char* op, const GroupedHeads& heads, const DropoutMask& mask) {
  const std::int64_t run = heads.heads * heads.positions * heads.positions;
  SHARDBOOK_CHECK(mask.threshold == 0 || mask.run == run, op, ": a mask of runs of ", mask.run, ", not of ", run, ": the squares of all heads");
}

// Pairs of query and key that a causal mask leaves, over all sequences and heads.
std::int64_t pairs(const GroupedHeads& heads) {
  return heads.sequences * heads.heads * (heads.positions * (heads.positions + 1) / 2);
}

// Of all heads, q times the transposed k.
program::GemmSize scores(const GroupedHeads& heads) { return {heads.positions, heads.positions, heads.head_dim, heads.sequences * heads.heads}; }

// Column where q, k or v begins in a row of qkv, as an address.
struct Sections {
  Sections(const GroupedHeads& heads, const Tensor& qkv_NE) {
    if (qkv_NE.data == nullptr) return;
    char* const begin = static_cast<char*>(qkv_NE.data);
    const std::int64_t element = base::size_of(qkv_NE.storage);
    q = begin;
    k = begin + heads.query_width() * element;
    v = begin + (heads.query_width() + heads.key_value_heads * heads.head_dim) * element;
  }
  void* q = nullptr;
  void* k = nullptr;
  void* v = nullptr;
};

}  // namespace

FlashAttentionSizes sizes_of(const GroupedHeads& heads) {
  return {heads.sequences, heads.heads, heads.key_value_heads, heads.positions, heads.head_dim, heads.width()};
}

FlashAttentionForwardArgs FusedForward::args(const char* op) const {
  expect_heads(op, heads);
  expect_mask(op, heads, mask);
  expect_shape(op, "qkv_NE", qkv_NE, {heads.tokens(), heads.width()});
  expect_shape(op, "out_NI", out_NI, {heads.tokens(), heads.query_width()});
  expect_same_type(op, "out_NI", out_NI, qkv_NE);
  expect_stat(op, "logsumexp_BHS", logsumexp_BHS, heads.tokens() * heads.heads);
  const Sections at(heads, qkv_NE);
  return {at.q, at.k, at.v, out_NI.data, logsumexp_BHS.data, sizes_of(heads), scale, qkv_NE.storage, mask};
}

OpDesc FusedForward::desc(const char* op) const {
  OpDesc desc(op, OpKind::attention, qkv_NE.nominal);
  desc.flops(2 * 2 * pairs(heads) * heads.head_dim)  // scores and context
      .scores(scores(heads)).reads(qkv_NE.use()).writes(out_NI.use()).writes(logsumexp_BHS.use());
  return desc;
}

FlashAttentionBackwardArgs FusedBackward::args(const char* op) const {
  expect_heads(op, heads);
  expect_mask(op, heads, mask);
  expect_shape(op, "qkv_NE", qkv_NE, {heads.tokens(), heads.width()});
  expect_shape(op, "dqkv_NE", dqkv_NE, qkv_NE.shape);
  expect_shape(op, "out_NI", out_NI, {heads.tokens(), heads.query_width()});
  expect_shape(op, "dout_NI", dout_NI, out_NI.shape);
  for (const Tensor& tensor : {dqkv_NE, out_NI, dout_NI}) expect_same_type(op, "a tensor", tensor, qkv_NE);
  expect_stat(op, "logsumexp_BHS", logsumexp_BHS, heads.tokens() * heads.heads);
  expect_stat(op, "delta_BHS", delta_BHS, heads.tokens() * heads.heads);
  SHARDBOOK_CHECK(dqkv_NE.buffer != qkv_NE.buffer || dqkv_NE.offset != qkv_NE.offset, op, ": dqkv is qkv, which is read to the end");
  const Sections at(heads, qkv_NE), to(heads, dqkv_NE);
  return {at.q, at.k, at.v, out_NI.data, dout_NI.data, logsumexp_BHS.data, delta_BHS.data, to.q, to.k, to.v, sizes_of(heads), scale, qkv_NE.storage, mask};
}

OpDesc FusedBackward::desc(const char* op) const {
  OpDesc desc(op, OpKind::attention, qkv_NE.nominal);
  desc.flops(5 * 2 * pairs(heads) * heads.head_dim)  // scores again, dp, dv, dk, dq
      .scores(scores(heads)).reads(qkv_NE.use()).reads(out_NI.use()).reads(dout_NI.use()).reads(logsumexp_BHS.use())
      .writes(delta_BHS.use()).writes(dqkv_NE.use());
  return desc;
}

}  // namespace shardbook::kernels
