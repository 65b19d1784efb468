#include "engine/tensor_parallel/spec.hpp"

#include "engine/tensor_parallel/linear.hpp"
#include "engine/tensor_parallel/sequence.hpp"
#include "engine/tensor_parallel/vocabulary.hpp"

namespace shardbook::tensor_parallel {

namespace {

// Makes what `make` makes, and says where the ranks of the group have its parameters.
template <class Make>
Make placed(const Make& make, const shard::Along& over_tp) {
  return [make, over_tp](const auto&... arguments) {
    auto piece = make(arguments...);
    for (model::Parameter* parameter : piece->parameters()) parameter->placement = {over_tp};
    return piece;
  };
}

}  // namespace

Start begin_of(const Pieces& pieces) { return pieces.input_gradient_sum == InputGradientSum::first ? Start::ahead : Start::as_it_comes; }

bool cuts_inputs(model::LinearRole role) { return role == model::LinearRole::projection || role == model::LinearRole::down; }

//@ tensor_parallel.spec: The whole of tensor parallelism, seen from the model: other pieces in the same places.
model::ModelSpec parallel_spec(const model::ModelSpec& dense, device::Device& device, TensorParallelGroup group, const Pieces& pieces) {
  const int ranks = group.communicator.size();
  if (ranks == 1) return dense;
  model::ModelSpec spec = dense;

  spec.linear = [&device, group, pieces](const model::LinearConfig& config) -> std::unique_ptr<model::Linear> {
    if (cuts_inputs(config.role)) return std::make_unique<RowParallelLinear>(device, group, config);
    if (pieces.input_gradient_sum == InputGradientSum::awaited) return std::make_unique<Awaited<ColumnParallelLinear>>(device, group, config);
    return std::make_unique<ColumnParallelLinear>(device, group, config, begin_of(pieces));
  };
  spec.attention = [make = dense.attention, ranks, rank = group.communicator.index()](model::AttentionConfig config) {
    SHARDBOOK_CHECK_EQ(config.heads % ranks, 0, "heads of a layer over tp ranks");
    config.heads /= ranks;
    config.key_value_heads /= ranks;
    config.parts = ranks;
    config.part = rank;
    return make(config);
  };
  spec.embedding = [&device, group](const std::string& name, std::int64_t vocabulary, std::int64_t width) {
    return std::make_unique<VocabParallelEmbedding>(device, group, name, vocabulary, width);
  };
  spec.loss = [&device, group](std::int64_t vocabulary) {
    return std::make_unique<VocabParallelCrossEntropy>(device, group, vocabulary);
  };
  // What each rank has whole: of all tokens, or, where they are cut, of its own, so that gradients are summands
  const shard::Along whole = pieces.cut_tokens ? shard::summed_over(axis) : shard::alike_over(axis);
  spec.norm = placed(dense.norm, whole);
  spec.positions = placed(dense.positions, whole);
  return pieces.cut_tokens ? with_tokens_cut(std::move(spec), device, group, pieces) : spec;
}
//@end

}  // namespace shardbook::tensor_parallel
