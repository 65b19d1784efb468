// tensor_parallel/sequence: what if no rank does again what another one does?
//
// Between the cut linears all tp ranks do the same: norms, residuals, positions, on the same N rows. With tokens cut each
// rank does this for N / t of the rows and keeps only those. A linear that reads rows gathers them first; one that makes
// summands leaves each rank its rows of the sum. Inside, nothing changes.
//
//   rows ──f: all-gather──► ColumnParallelFromRows ──► … ──► RowParallelToRows ──g: reduce-scatter──► rows
//
// Kept for backward are the rows, so the input of a column-parallel linear is gathered once more, beside what backward does
// before it. What each rank holds whole but sees few rows of (norms, row biases, positions) has a gradient that is
// a summand: partial_gradients.hpp.
//
// Sources: Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", arXiv:2205.05198,
// §4.2.2; NVIDIA/Megatron-LM @d98e8a64, megatron/core/tensor_parallel/layers.py
// (LinearWithGradAccumulationAndAsyncCommunication, where sequence_parallel).
#pragma once

#include "engine/model/embedding.hpp"
#include "engine/model/linear.hpp"
#include "engine/tensor_parallel/regions.hpp"
#include "engine/tensor_parallel/spec.hpp"

namespace shardbook::tensor_parallel {

// Where rows of all tokens are for a while. All linears of a rank use it in turn: one runs at a time.
struct AllRows {
  Tensor x_ND;   // what a column-parallel linear reads; gathered for backward while the linear above still runs
  Tensor y_ND;   // summands over ranks, or a gradient that both of a row-parallel linear's read
  Tensor summands_TRD;   // of my rows, by the rank that made them; there where they cross in turns (overlap.hpp)
  Tensor summands_of(int rank) const { return summands_TRD.slice(summands_TRD.shape[1] * summands_TRD.shape[2] * rank, {summands_TRD.shape[1], summands_TRD.shape[2]}); }
  // Set-up; the first caller allocates. All must be of one width. `turns`: ranks whose summands have places of their own; 0: none.
  void allocate(Context& ctx, std::int64_t width, int turns = 0);
};

class ColumnParallelFromRows : public model::Linear {
 public:
  ColumnParallelFromRows(device::Device& device, TensorParallelGroup group, std::shared_ptr<AllRows> all, const model::LinearConfig& config,
                         Start begin_sum = Start::as_it_comes);
  std::int64_t inputs() const override { return weights_.inputs(); }
  std::int64_t outputs() const override { return weights_.outputs(); }
  void allocate(Context& ctx) override { all_->allocate(ctx, inputs()); }
  void forward(Call ctx, const Tensor& x_RI, const Tensor& y_NO, const Epilogue& epilogue) override;
  // x is gathered once more, for the weight gradient; dx is summed beside that. REQUIRES: of the linear above the gradient
  // was gathered since the last weight gradient (or, of the head, the loss was summed), and with it came the order of both.
  void begin_backward(Call ctx, const Tensor& x_RI) override;
  void input_gradient(Call ctx, const Tensor& dy_NO, const Tensor& dx_RI, const Epilogue& epilogue) override;
  void await_input_gradient(Context& ctx) override;
  void weight_gradient(Call ctx, const Tensor& x_RI, const Tensor& dy_NO) override;
  std::vector<model::Parameter*> parameters() override { return weights_.parameters(); }

 protected:
  model::LinearWeights weights_;
  const char* role_;
  std::shared_ptr<AllRows> all_;

 private:
  GatherToRegion f_;
};

class RowParallelToRows : public model::Linear {
 public:
  // REQUIRES: a bias is late.
  RowParallelToRows(device::Device& device, TensorParallelGroup group, std::shared_ptr<AllRows> all, const model::LinearConfig& config);
  std::int64_t inputs() const override { return weights_.inputs(); }
  std::int64_t outputs() const override { return weights_.outputs(); }
  void allocate(Context& ctx) override { all_->allocate(ctx, outputs()); }
  void forward(Call ctx, const Tensor& x_NI, const Tensor& y_RO, const Epilogue& epilogue) override;
  void input_gradient(Call ctx, const Tensor& dy_RO, const Tensor& dx_NI, const Epilogue& epilogue) override;
  void weight_gradient(Call ctx, const Tensor& x_NI, const Tensor& dy_RO) override;
  model::Parameter* late_bias() override { return weights_.late_bias() ? weights_.bias() : nullptr; }
  std::vector<model::Parameter*> parameters() override { return weights_.parameters(); }

 protected:
  model::LinearWeights weights_;
  const char* role_;
  std::shared_ptr<AllRows> all_;

 private:
  ScatterFromRegion g_;
};

// A cut vocabulary whose look-up leaves each rank its rows, and whose gradient wants those of all tokens.
class VocabParallelEmbeddingToRows final : public model::TokenEmbedding {
 public:
  // The linears of the model allocate `all`.
  VocabParallelEmbeddingToRows(device::Device& device, TensorParallelGroup group, std::shared_ptr<AllRows> all, const std::string& name,
                               std::int64_t vocabulary, std::int64_t width);
  shard::Interval vocabulary() const override { return table_.vocabulary(); }
  void forward(Call ctx, const model::Batch& batch, const Tensor& x_RD) override;
  void weight_gradient(Call ctx, const model::Batch& batch, const Tensor& dx_RD) override;
  model::Parameter* weight() override { return table_.weight(); }

 private:
  model::DenseEmbedding table_;
  std::shared_ptr<AllRows> all_;
  ScatterFromRegion g_;
};

// `spec`, already cut over the group, with these in the places of its linears and its embedding.
model::ModelSpec with_tokens_cut(model::ModelSpec spec, device::Device& device, TensorParallelGroup group, const Pieces& pieces);

}  // namespace shardbook::tensor_parallel
