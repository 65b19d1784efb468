// Embeddings forward and backward equal their host references.
#include "engine/data/sort_by_token.hpp"
#include "tests/gpu/gpu_test.hpp"

namespace shardbook::gpu_test {
namespace {

using Embedding = OneGpu;

std::vector<std::int32_t> tokens_below(std::int64_t count, int vocabulary) {
  // Small tokens are frequent, as in text.
  std::geometric_distribution<int> draw(0.02);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (std::int32_t& token : tokens) token = draw(generator()) % vocabulary;
  return tokens;
}

TEST_F(Embedding, ForwardFetchesRowsAndZeroForTokensOfOtherRanks) {
  for (const DType dtype : both_types) {
    for (const std::int64_t width : {1, 12, 128, 130}) {
      SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << width);
      Gpu::get().reset();
      const std::int64_t tokens = 301;
      const std::int32_t begin = 20, end = 90;
      Integers token(tokens_below(tokens, 120));
      Numbers weight(normal((end - begin) * width), dtype), x(unwritten(tokens * width), dtype);
      run_both([&](bool gpu) {
        return kernels::EmbeddingForwardArgs{token.at(gpu), weight.at(gpu), x.at(gpu), tokens, width, begin, end, gpu ? dtype : DType::f64};
      }, &kernels::host::embedding_forward, &kernels::cuda::embedding_forward);
      expect_exact(x);
    }
  }
}

void expect_backward(std::int64_t tokens, std::int64_t width, int vocabulary, std::int32_t begin, std::int32_t end, DType dtype,
                     bool accumulate, bool exact) {
  SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << tokens << " x " << width << (accumulate ? ", accumulate" : ""));
  Gpu::get().reset();
  const std::vector<std::int32_t> drawn = tokens_below(tokens, vocabulary);
  const int rows = end - begin;
  std::vector<std::int32_t> order(drawn.size()), segment_token(std::min<std::size_t>(drawn.size(), rows)), segment_begin(rows + 1);
  const int segments = data::sort_by_token(drawn, begin, end, order, segment_token, segment_begin);
  Integers orders(order), segment_tokens(segment_token), segment_begins(segment_begin), count({segments});
  Numbers dx(exact ? small_integers(tokens * width, 100) : normal(tokens * width), dtype),
      dweight(exact ? small_integers(rows * width, 1000) : normal(rows * width), DType::f32);
  const Numbers before = dweight;
  run_both([&](bool gpu) {
    return kernels::EmbeddingBackwardArgs{dx.at(gpu), orders.at(gpu), segment_tokens.at(gpu), segment_begins.at(gpu), count.at(gpu),
                                          dweight.at(gpu), tokens, width, begin, end, accumulate, gpu ? dtype : DType::f64};
  }, &kernels::host::embedding_backward, &kernels::cuda::embedding_backward);
  if (exact) return expect_exact(dweight);
  std::vector<double> sizes(static_cast<std::size_t>(rows * width)), terms(static_cast<std::size_t>(rows));
  for (std::int64_t n = 0; n < tokens; ++n) {
    if (drawn[n] < begin || drawn[n] >= end) continue;
    terms[drawn[n] - begin] += 1;
    for (std::int64_t i = 0; i < width; ++i) sizes[(drawn[n] - begin) * width + i] += std::abs(dx[n * width + i]);
  }
  expect_within(dweight, [&](std::size_t i) {
    return gamma(terms[i / width] + 1) * (sizes[i] + (accumulate ? std::abs(before[i]) : 0));
  });
}

TEST_F(Embedding, BackwardEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t width : {1, 12, 128, 130}) {
      for (const bool accumulate : {false, true}) {
        expect_backward(301, width, 120, 20, 90, dtype, accumulate, true);
        expect_backward(301, width, 120, 20, 90, dtype, accumulate, false);
      }
    }
  }
}
TEST_F(Embedding, BackwardOfLargeBatchesEqualsItsHostReference) {
  for (const DType dtype : both_types) expect_backward(8192, 2048, 1000, 0, 1000, dtype, true, false);
}
// From two to sixteen positions a row: threads of a column share them, and a row's columns take a block or more.
TEST_F(Embedding, BackwardOfSmallVocabulariesEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const int vocabulary : {600, 301, 150, 75}) {
      expect_backward(1204, 704, vocabulary, 0, vocabulary, dtype, true, true);
      expect_backward(1204, 707, vocabulary, 0, vocabulary, dtype, false, false);
    }
  }
}

TEST_F(Embedding, PositionsAreAddedForwardAndSummedBackward) {
  for (const DType dtype : both_types) {
    for (const std::int64_t width : {1, 12, 128, 130}) {
      SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << width);
      Gpu::get().reset();
      const std::int64_t sequences = 5, positions = 17, n = sequences * positions * width;
      Numbers x(normal(n), dtype), weight(normal(positions * width), dtype);
      const Numbers before = x;
      run_both([&](bool gpu) {
        return kernels::PositionForwardArgs{weight.at(gpu), x.at(gpu), sequences * positions, positions, width, gpu ? dtype : DType::f64, 0};
      }, &kernels::host::position_forward, &kernels::cuda::position_forward);
      expect_within(x, [&](std::size_t i) { return unit_f32 * std::abs(x[i]); });

      for (const bool accumulate : {false, true}) {
        Numbers dx(small_integers(n, 100), dtype), dweight(small_integers(positions * width, 1000), DType::f32);
        run_both([&](bool gpu) {
          return kernels::PositionBackwardArgs{dx.at(gpu), dweight.at(gpu), sequences * positions, positions, width, accumulate, gpu ? dtype : DType::f64, 0};
        }, &kernels::host::position_backward, &kernels::cuda::position_backward);
        expect_exact(dweight);
      }
    }
  }
}

// Rows of some tokens: less than a sequence, or one and a half, from the middle of one on.
TEST_F(Embedding, PositionsOfSomeTokensAreThoseWhereTheyStand) {
  const std::int64_t positions = 16;
  const std::vector<std::pair<std::int64_t, std::int64_t>> places = {{0, 8}, {8, 8}, {24, 24}, {40, 5}};
  for (const DType dtype : both_types) {
    for (const std::int64_t width : {12, 128}) {
      for (const auto& [first, rows] : places) {
        SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << width << ", " << rows << " rows from " << first);
        Gpu::get().reset();
        Numbers x(small_integers(rows * width, 100), dtype), weight(small_integers(positions * width, 100), dtype);
        run_both([&, first = first, rows = rows](bool gpu) {
          return kernels::PositionForwardArgs{weight.at(gpu), x.at(gpu), rows, positions, width, gpu ? dtype : DType::f64, first};
        }, &kernels::host::position_forward, &kernels::cuda::position_forward);
        expect_exact(x);
        for (const bool accumulate : {false, true}) {
          Numbers dx(small_integers(rows * width, 100), dtype), dweight(small_integers(positions * width, 1000), DType::f32);
          run_both([&, first = first, rows = rows](bool gpu) {
            return kernels::PositionBackwardArgs{dx.at(gpu), dweight.at(gpu), rows, positions, width, accumulate, gpu ? dtype : DType::f64, first};
          }, &kernels::host::position_backward, &kernels::cuda::position_backward);
          expect_exact(dweight);
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardbook::gpu_test
