// model/embedding: rows for tokens, rows for positions.
//
// A TableRows is the token table, or the rows [begin, end) of it that a tp rank holds; positions are
// learnt, as in GPT-2, and whole on every rank, or none, as in Llama.
#pragma once

#include "engine/model/spec.hpp"

namespace shardbook::model {

// The rows of the token table that are here, with no communication.
class DenseEmbedding final : public TokenEmbedding {
 public:
  DenseEmbedding(const std::string& name, std::int64_t vocabulary, std::int64_t width, shard::Interval rows);
  shard::Interval vocabulary() const override { return rows_; }
  // Rows of tokens that are not here become 0.
  void forward(Call ctx, const Batch& batch, const Tensor& x_ND) override;
  void weight_gradient(Call ctx, const Batch& batch, const Tensor& dx_ND) override;
  Parameter* weight() override { return &weight_; }

 private:
  shard::Interval rows_;
  Parameter weight_;
};

class PositionEmbedding final : public Positions {
 public:
  PositionEmbedding(const std::string& name, std::int64_t positions, std::int64_t width);
  void forward(Context& ctx, const Tensor& x_ND) override;  // x += rows of the positions
  void weight_gradient(Context& ctx, const Tensor& dx_ND) override;
  std::vector<Parameter*> parameters() override { return {&weight_}; }

 private:
  Parameter weight_;
};

// Where positions are told elsewhere.
class NoPositions final : public Positions {
 public:
  void forward(Context&, const Tensor&) override {}
  void weight_gradient(Context&, const Tensor&) override {}
  std::vector<Parameter*> parameters() override { return {}; }
};

}  // namespace shardbook::model
