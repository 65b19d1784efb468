#include "engine/model/spec.hpp"

#include "engine/model/activation.hpp"
#include "engine/model/attention.hpp"
#include "engine/model/embedding.hpp"
#include "engine/model/linear.hpp"
#include "engine/model/loss.hpp"
#include "engine/model/norm.hpp"

namespace shardbook::model {

ModelSpec dense_spec() {
  ModelSpec spec;
  spec.norm = [](const std::string& name, std::int64_t width, float epsilon) {
    return std::make_unique<LayerNorm>(name, width, epsilon);
  };
  spec.linear = [](const LinearConfig& config) { return std::make_unique<DenseLinear>(config); };
  spec.attention = [](const AttentionConfig& config) { return std::make_unique<CausalAttention>(config); };
  spec.activation = [] { return std::make_unique<Gelu>(); };
  spec.embedding = [](const std::string& name, std::int64_t vocabulary, std::int64_t width) {
    return std::make_unique<DenseEmbedding>(name, vocabulary, width, shard::Interval{0, vocabulary});
  };
  spec.loss = [](std::int64_t vocabulary) { return std::make_unique<CrossEntropy>(vocabulary); };
  return spec;
}

}  // namespace shardbook::model
