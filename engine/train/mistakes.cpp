#include "engine/train/mistakes.hpp"

#include "engine/tensor_parallel/linear.hpp"

namespace shardbook::train {

using model::Call;
using model::Epilogue;
using model::LinearConfig;
using model::LinearWeights;
using tensor::Tensor;
using tensor_parallel::TensorParallelGroup;

namespace {

bool is_row_parallel(const LinearConfig& config) {
  return config.role == model::LinearRole::projection || config.role == model::LinearRole::down;
}

LinearWeights rows_of(LinearConfig config, const TensorParallelGroup& group) {
  config.late_bias = false;   // the matmul adds it
  return {config, tensor_parallel::linear_cut(group, model::LinearCut::Dim::inputs)};
}

class BiasBeforeTheSum final : public model::Linear {
 public:
  BiasBeforeTheSum(device::Device& device, TensorParallelGroup group, const LinearConfig& config)
      : weights_(rows_of(config, group)), reduce_(device, group, config.name + ".reduce_from_region") {}
  std::int64_t inputs() const override { return weights_.inputs(); }
  std::int64_t outputs() const override { return weights_.outputs(); }
  void forward(Call ctx, const Tensor& x_NI, const Tensor& y_NO, const Epilogue& epilogue) override {
    model::refuse(epilogue);
    weights_.forward(ctx.compute, x_NI, y_NO);
    reduce_.forward(ctx, y_NO);
  }
  void input_gradient(Call ctx, const Tensor& dy_NO, const Tensor& dx_NI, const Epilogue& epilogue) override { weights_.input_gradient(ctx.compute, dy_NO, dx_NI, epilogue); }
  void weight_gradient(Call ctx, const Tensor& x_NI, const Tensor& dy_NO) override { weights_.weight_gradient(ctx.compute, x_NI, dy_NO, ctx.scratch); }
  std::vector<model::Parameter*> parameters() override { return weights_.parameters(); }

 private:
  LinearWeights weights_;
  tensor_parallel::ReduceFromRegion reduce_;
};

class SummedBothWays final : public model::Linear {
 public:
  SummedBothWays(device::Device& device, TensorParallelGroup group, const LinearConfig& config)
      : right_(device, group, config), sum_(device, group, config.name + ".summed_once_more") {}
  std::int64_t inputs() const override { return right_.inputs(); }
  std::int64_t outputs() const override { return right_.outputs(); }
  void forward(Call ctx, const Tensor& x_NI, const Tensor& y_NO, const Epilogue& epilogue) override { right_.forward(ctx, x_NI, y_NO, epilogue); }
  void input_gradient(Call ctx, const Tensor& dy_NO, const Tensor& dx_NI, const Epilogue& epilogue) override {
    sum_.start(ctx, dy_NO);
    sum_.await(ctx);
    right_.input_gradient(ctx, dy_NO, dx_NI, epilogue);
  }
  void weight_gradient(Call ctx, const Tensor& x_NI, const Tensor& dy_NO) override { right_.weight_gradient(ctx, x_NI, dy_NO); }
  model::Parameter* late_bias() override { return right_.late_bias(); }
  std::vector<model::Parameter*> parameters() override { return right_.parameters(); }

 private:
  tensor_parallel::RowParallelLinear right_;
  tensor_parallel::SumOverRanks sum_;
};

// `parallel` with another piece in the place of its row-parallel linears.
template <class Piece>
model::ModelSpec with_rows(const model::ModelSpec& parallel, device::Device& device, TensorParallelGroup group) {
  model::ModelSpec spec = parallel;
  spec.linear = [make = parallel.linear, &device, group](const LinearConfig& config) -> std::unique_ptr<model::Linear> {
    if (!is_row_parallel(config)) return make(config);
    return std::make_unique<Piece>(device, group, config);
  };
  return spec;
}

}  // namespace

model::ModelSpec with_bias_before_the_sum(const model::ModelSpec& parallel, device::Device& device, TensorParallelGroup group) {
  return with_rows<BiasBeforeTheSum>(parallel, device, group);
}

model::ModelSpec with_sums_both_ways(const model::ModelSpec& parallel, device::Device& device, TensorParallelGroup group) {
  return with_rows<SummedBothWays>(parallel, device, group);
}

plan::Plan updated_before_the_sums(const plan::Plan& plan, const plan::Network&) {
  plan::Plan early, sums;
  for (const plan::Action& action : plan.actions) (action.kind == plan::Kind::reduce ? sums : early).add(action);
  for (const plan::Action& action : sums.actions) early.add(action);
  return early;
}

model::ModelSpec with_one_stream(const model::ModelSpec& dense) {
  model::ModelSpec spec = dense;
  spec.attention = [make = dense.attention](model::AttentionConfig config) {
    config.parts = 1;
    config.part = 0;
    return make(config);
  };
  return spec;
}

void draw_anew(model::Draw& draw, const plan::Action& action, bool of_block) {
  if (of_block && (action.kind == plan::Kind::recompute || action.kind == plan::Kind::backward)) ++draw.seed;
}

void take_summands_for_sums(model::Model& model) {
  for (model::Parameter* parameter : model.parameters()) {
    for (shard::Along& along : parameter->placement) {
      if (along.gradient == shard::Held::summand) along.gradient = shard::Held::same;
    }
  }
}

void forget_places(model::Model& model) {
  for (model::Parameter* parameter : model.parameters()) {
    std::int64_t rows = 0;
    for (shard::Box& box : parameter->boxes) {
      for (int dim = 0; dim < box.dims; ++dim) {
        shard::Interval& along = box.along[static_cast<std::size_t>(dim)];
        const std::int64_t begin = dim == 0 ? rows : 0;
        along = {begin, begin + along.size()};
      }
      rows = box[0].end;
    }
  }
}

}  // namespace shardbook::train
