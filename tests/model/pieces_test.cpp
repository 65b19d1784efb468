// Pieces that do not go together are refused in words, before anything runs.
#include "engine/model/attention.hpp"

#include <gtest/gtest.h>

#include "engine/model/dropout.hpp"
#include "engine/model/linear.hpp"
#include "engine/model/rotary.hpp"

namespace shardbook::model {
namespace {

const AttentionConfig config{2, 2, 8, "blocks.0.attention"};

std::string refused(const std::function<void()>& what) {
  try {
    what();
  } catch (const base::Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(Attention, OfTwoKindsSharesNoWorkspace) {
  CausalAttention with_square(config);
  RecomputedAttention recomputed(config);
  FlashAttention by_tiles(config);
  CudnnAttention by_cudnn(config);
  RotaryAttention turned(std::make_unique<FlashAttention>(config), config, 1e4f);
  const std::vector<std::pair<Attention*, Attention*>> alike = {{&with_square, &with_square}, {&recomputed, &recomputed}, {&by_tiles, &by_tiles}, {&by_cudnn, &by_cudnn}, {&turned, &turned}};
  for (const auto& [one, other] : alike) EXPECT_EQ(refused([&] { one->share_workspace(*other); }), "");
  const std::vector<std::pair<Attention*, Attention*>> different = {{&with_square, &by_tiles}, {&recomputed, &with_square}, {&by_tiles, &with_square}, {&by_cudnn, &by_tiles}, {&by_tiles, &by_cudnn}, {&turned, &by_tiles}};
  for (const auto& [one, other] : different) {
    EXPECT_NE(refused([&] { one->share_workspace(*other); }).find("their attention is of different kinds"), std::string::npos);
  }
}

TEST(Dropout, OfProbabilitiesKnowsTheSquareAndTilesAndRefusesAnotherForm) {
  for (const bool flash : {false, true}) {
    ModelSpec spec = dense_spec();
    if (flash) spec.attention = [](const AttentionConfig& of) { return std::make_unique<FlashAttention>(of); };
    EXPECT_EQ(refused([&] { with_dropout(spec, {0, 0.1}).attention(config); }), "");
  }
  ModelSpec turned = dense_spec();
  turned.attention = [](const AttentionConfig& of) { return std::make_unique<RotaryAttention>(std::make_unique<CausalAttention>(of), of, 1e4f); };
  EXPECT_EQ(refused([&] { with_dropout(turned, {0.1, 0}).attention(config); }), "") << "nothing is dropped there";
  const std::string said = refused([&] { with_dropout(turned, {0, 0.1}).attention(config); });
  EXPECT_NE(said.find("blocks.0.attention is of a form whose probabilities no dropout finds"), std::string::npos) << said;
  const std::string said_of_cudnn = refused([&] { with_dropout(with_cudnn_attention(dense_spec()), {0, 0.1}).attention(config); });
  EXPECT_NE(said_of_cudnn.find("whose probabilities no dropout finds"), std::string::npos) << said_of_cudnn;
}

TEST(Linear, ThatIsCutSaysOverWhichAxis) {
  const LinearConfig linear{"blocks.0.mlp.up", LinearRole::up, 8, {16}};
  EXPECT_EQ(refused([&] { LinearWeights(linear, {}); }), "");
  EXPECT_EQ(refused([&] { LinearWeights(linear, {LinearCut::Dim::outputs, 2, 1, "tp"}); }), "");
  EXPECT_NE(refused([&] { LinearWeights(linear, {LinearCut::Dim::outputs, 2, 1}); }).find("over which axis is not said"), std::string::npos);
}

}  // namespace
}  // namespace shardbook::model
