#include "engine/kernels/cudnn_attention.hpp"

#include <gtest/gtest.h>

namespace shardbook::kernels {
namespace {

constexpr base::Bytes gibibyte = base::Bytes{1} << 30;

// Squares in bf16: of gpt-1.3b's 16 heads and 1024 positions 32 MiB a sequence, of llama-8b's at 4096 a gibibyte.
TEST(CudnnAttention, TakesAsManySequencesAtOnceAsAGibibyteOfSquaresHoldsAndDividesThem) {
  const auto at_once = [](std::int64_t sequences, std::int64_t heads, std::int64_t positions) {
    return cudnn_sequences_at_once({sequences, heads, heads, positions, 64});
  };
  EXPECT_EQ(at_once(8, 16, 1024), 8);
  EXPECT_EQ(at_once(32, 16, 1024), 32) << "just a gibibyte";
  EXPECT_EQ(at_once(64, 16, 1024), 32);
  EXPECT_EQ(at_once(48, 16, 1024), 24) << "not 32, which does not divide them";
  EXPECT_EQ(at_once(37, 16, 1024), 1) << "a prime";
  EXPECT_EQ(at_once(4, 32, 4096), 1);
  EXPECT_EQ(at_once(4, 32, 8192), 1) << "one sequence, however large its square";
}

// By hand, and as cuDNN 9.19 says for an H200.
TEST(CudnnAttention, NeedsTheSquareOfThoseSequencesAndWhereHeadsShareKeysTheirGradients) {
  EXPECT_EQ(cudnn_workspace_bytes({8, 16, 16, 1024, 128}), (base::Bytes{8} * 16 * 1024 * 1024 * 2) + 256);
  EXPECT_EQ(cudnn_workspace_bytes({2, 4, 4, 130, 64}), 2 * 4 * 192 * 256 * 2 + 256) << "rows up to 192, columns up to 256";
  EXPECT_EQ(cudnn_workspace_bytes({2, 4, 2, 257, 128}), 2 * 4 * 320 * 384 * 2 + 2 * (2 * 4 * 257 * 128 * 2) + 256);
  EXPECT_EQ(cudnn_workspace_bytes({2, 4, 1, 1, 64}), 133376);
  for (const std::int64_t sequences : {1, 2, 7, 64, 100}) EXPECT_LE(cudnn_workspace_bytes({sequences, 16, 16, 1000, 64}), gibibyte + 256);
}

// Who has no cuDNN is told so in a sentence that says what to do; who has it gets its version.
TEST(CudnnAttention, IsHereOrSaysWhatIsMissing) {
  const std::string problem = cudnn_problem();
  EXPECT_EQ(problem.empty(), !cudnn_version().empty());
  if (problem.empty()) {
    EXPECT_EQ(cudnn_version().substr(0, 2), "9.");
    return;
  }
  EXPECT_NE(problem.find("cuDNN"), std::string::npos) << problem;
  EXPECT_TRUE(problem.ends_with("or use --attention flash")) << problem;
}

TEST(CudnnAttention, TakesHeadsAndTypesThatItWasTriedWith) {
  for (const std::int64_t head_dim : {32, 64, 128}) {
    EXPECT_TRUE(cudnn_attention_on_cuda(base::DType::bf16, head_dim));
    EXPECT_FALSE(cudnn_attention_on_cuda(base::DType::f32, head_dim));
  }
  EXPECT_FALSE(cudnn_attention_on_cuda(base::DType::bf16, 96));
}

}  // namespace
}  // namespace shardbook::kernels
