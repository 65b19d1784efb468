// model/attention: causal softmax attention, in four forms behind one contract.
//
// CausalAttention, the plain form: one matmul for all heads of all sequences. The projection makes tokens-first
// rows (q of all heads, then k, then v); heads-first copies let each product be one batched matmul. The
// probabilities are kept whole, [B, H, S, S].
// RecomputedAttention: the plain form without that square. It keeps q, k and v, and backward makes the probabilities again
// (Korthikanti et al. 2022, arXiv:2205.05198, §5; Megatron-LM's selective recompute of the core attention).
// FlashAttention: one op each way, which reads the projection's rows as they are and keeps one number a query and
// head (kernels/flash_attention.hpp). Memory linear in S.
// CudnnAttention: the same by cuDNN's kernels (kernels/cudnn_attention.hpp), with a workspace for all layers.
// With positions as rotations, any of them stands in a RotaryAttention (rotary.hpp).
//
// Query heads may share key-value heads (grouped-query): H / G neighbours look at one. In the plain form their
// queries stand below each other, [B·G, (H/G)·S, K], so that they share a matmul, and its gradient is their sum.
// Heads do not speak to each other, so a tp rank does its own heads and nothing is exchanged.
#pragma once

#include <functional>

#include "engine/kernels/attention.hpp"
#include "engine/kernels/cudnn_attention.hpp"
#include "engine/kernels/flash_attention.hpp"
#include "engine/model/spec.hpp"

namespace shardbook::model {

// The attention of another layer, where all must be of one kind: they share what is needed while one runs.
template <class Kind>
const Kind& of_same_kind(const Attention& other) {
  const auto* const same = dynamic_cast<const Kind*>(&other);
  SHARDBOOK_CHECK(same != nullptr, "two layers cannot share a workspace: their attention is of different kinds");
  return *same;
}

// p · v as it is.
class WholeValues final : public WeightedValues {
 public:
  void forward(Context& ctx, const Tensor& p_BHSS, const Tensor& v_BHSK, const Tensor&, const Tensor& out_BHSK) override;
  void backward(Context& ctx, const Tensor& p_BHSS, const Tensor& v_BHSK, const Tensor& dout_BHSK, const Tensor& dp_BHSS,
                const Tensor& dv_BHSK) override;
};

class CausalAttention : public Attention {
 public:
  // `config` has the heads of this rank.
  explicit CausalAttention(const AttentionConfig& config);
  // What is done with the probabilities, other than p · v.
  void weigh_values_by(std::unique_ptr<WeightedValues> values) { values_ = std::move(values); }
  Kept keep(Context& ctx, const std::string& name) override;  // qkv_PBHSK, probability_BHSS
  void allocate_workspace(Context& ctx) override;
  void share_workspace(const Attention& other) override;
  void forward(Context& ctx, const Tensor& qkv_NE, const Tensor& out_NI, Kept& kept) override;
  void backward(Context& ctx, const Tensor& dout_NI, const Tensor& out_NI, const Tensor& dqkv_NE, Kept& kept) override;

 protected:
  Tensor allocate_qkv(Context& ctx, const std::string& name) const;          // q, k and v of all heads, heads first
  Tensor allocate_square(Context& ctx, const std::string& name) const;       // a number of each query, key and head
  // Where the probabilities stand that forward makes and backward reads.
  virtual const Tensor& probability_BHSS(const Kept& kept) const { return kept.tensors[1]; }
  void make_probabilities(Context& ctx, const Kept& kept) const;             // from q and k, as they are kept

 private:
  // Columns of the projection's rows that lie heads first after one another: all three parts, or, where k and v have
  // fewer heads, q alone and then k and v.
  struct Columns {
    std::int64_t parts, heads, first;
  };
  struct Heads {
    Tensor q, k, v;
  };
  kernels::HeadSizes sizes(const Context& ctx, const Columns& columns) const;
  Tensor heads_first(const Context& ctx, const Tensor& qkv, const Columns& columns) const;
  Heads heads_of(const Context& ctx, const Tensor& qkv) const;

  AttentionConfig config_;
  std::vector<Columns> columns_;
  float scale_;
  std::unique_ptr<WeightedValues> values_;
  // Between kernels of one call, shared by all layers.
  Tensor context_BHSK_;        // p · v and, in backward, its gradient
  Tensor dqkv_PBHSK_;
  Tensor dprobability_BHSS_;
};

// All layers make their probabilities in one place: forward, and backward once more, just before it needs them. What
// comes before q and k is kept, so that no matmul of a weight and no sum over ranks is repeated.
class RecomputedAttention final : public CausalAttention {
 public:
  using CausalAttention::CausalAttention;
  Kept keep(Context& ctx, const std::string& name) override;  // qkv_PBHSK
  void allocate_workspace(Context& ctx) override;
  void share_workspace(const Attention& other) override;
  void backward(Context& ctx, const Tensor& dout_NI, const Tensor& out_NI, const Tensor& dqkv_NE, Kept& kept) override;

 private:
  const Tensor& probability_BHSS(const Kept&) const override { return shared_probability_BHSS_; }

  Tensor shared_probability_BHSS_;
};

// One op each way, whichever kernels run it: what is kept is the rows as they came, and a number a query and head.
class FusedAttention : public Attention {
 public:
  explicit FusedAttention(const AttentionConfig& config);
  Kept keep(Context& ctx, const std::string& name) override;  // qkv_NE, logsumexp_BHS
  void allocate_workspace(Context& ctx) override;
  Tensor qkv_NE(const Kept& kept, const Tensor&) const override { return kept.tensors[0]; }

 protected:
  AttentionConfig config_;
  float scale_;
  Tensor delta_BHS_;  // scratch of backward, shared by all layers
};

class FlashAttention final : public FusedAttention {
 public:
  using FusedAttention::FusedAttention;
  // Which probabilities are dropped, drawn at each call; none, unless it is said.
  void drop_by(std::function<kernels::DropoutMask(const Context&)> mask) { mask_ = std::move(mask); }
  void share_workspace(const Attention& other) override;
  void forward(Context& ctx, const Tensor& qkv_NE, const Tensor& out_NI, Kept& kept) override;
  void backward(Context& ctx, const Tensor& dout_NI, const Tensor& out_NI, const Tensor& dqkv_NE, Kept& kept) override;

 private:
  std::function<kernels::DropoutMask(const Context&)> mask_ = [](const Context&) { return kernels::no_dropout; };
};

class CudnnAttention final : public FusedAttention {
 public:
  using FusedAttention::FusedAttention;
  void allocate_workspace(Context& ctx) override;
  void share_workspace(const Attention& other) override;
  void forward(Context& ctx, const Tensor& qkv_NE, const Tensor& out_NI, Kept& kept) override;
  void backward(Context& ctx, const Tensor& dout_NI, const Tensor& out_NI, const Tensor& dqkv_NE, Kept& kept) override;

 private:
  Tensor workspace_;  // shared by all layers
};

}  // namespace shardbook::model
