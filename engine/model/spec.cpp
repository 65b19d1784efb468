#include "engine/model/spec.hpp"

#include "engine/model/activation.hpp"
#include "engine/model/attention.hpp"
#include "engine/model/dropout.hpp"
#include "engine/model/embedding.hpp"
#include "engine/model/linear.hpp"
#include "engine/model/loss.hpp"
#include "engine/model/norm.hpp"
#include "engine/model/rotary.hpp"

namespace shardbook::model {

ModelSpec dense_spec() {
  ModelSpec spec;
  spec.norm = [](const std::string& name, std::int64_t width, float epsilon) {
    return std::make_unique<LayerNorm>(name, width, epsilon);
  };
  spec.linear = [](const LinearConfig& config) { return std::make_unique<DenseLinear>(config); };
  spec.attention = [](const AttentionConfig& config) { return std::make_unique<CausalAttention>(config); };
  spec.activation = [] { return std::make_unique<Gelu>(); };
  spec.residual = [](const std::string&) { return std::make_unique<WholeResidual>(); };
  spec.embedded = [](const std::string&) { return std::make_unique<NoDropout>(); };
  spec.positions = [](const std::string& name, std::int64_t positions, std::int64_t width) {
    return std::make_unique<PositionEmbedding>(name, positions, width);
  };
  spec.embedding = [](const std::string& name, std::int64_t vocabulary, std::int64_t width) {
    return std::make_unique<DenseEmbedding>(name, vocabulary, width, shard::Interval{0, vocabulary});
  };
  spec.loss = [](std::int64_t vocabulary) { return std::make_unique<CrossEntropy>(vocabulary); };
  return spec;
}

ModelSpec with_loss_in_one(ModelSpec spec) {
  spec.loss = [](std::int64_t) { return std::make_unique<CrossEntropyInOne>(); };
  return spec;
}

ModelSpec with_recomputed_attention(ModelSpec spec) {
  spec.attention = [](const AttentionConfig& config) { return std::make_unique<RecomputedAttention>(config); };
  return spec;
}

ModelSpec with_flash_attention(ModelSpec spec) {
  spec.attention = [](const AttentionConfig& config) { return std::make_unique<FlashAttention>(config); };
  return spec;
}

ModelSpec with_cudnn_attention(ModelSpec spec) {
  spec.attention = [](const AttentionConfig& config) { return std::make_unique<CudnnAttention>(config); };
  return spec;
}

ModelSpec with_gelu_in_matmuls(ModelSpec spec) {
  spec.activation = [] { return std::make_unique<GeluInMatmuls>(); };
  return spec;
}

//@ model.llama: Llama is the same model with other pieces in the same places.
ModelSpec with_llama_pieces(ModelSpec spec, float theta) {
  spec.norm = [](const std::string& name, std::int64_t width, float epsilon) {
    return std::make_unique<RmsNorm>(name, width, epsilon);
  };
  spec.attention = [make = spec.attention, theta](const AttentionConfig& config) {
    return std::make_unique<RotaryAttention>(make(config), config, theta);
  };
  spec.activation = [] { return std::make_unique<SwiGlu>(); };
  spec.positions = [](const std::string&, std::int64_t, std::int64_t) { return std::make_unique<NoPositions>(); };
  return spec;
}
//@end

}  // namespace shardbook::model
