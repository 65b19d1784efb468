#include "engine/kernels/embedding.hpp"

#include "tests/kernels/host_bench.hpp"

namespace shardbook::kernels::testing {
namespace {

template <class T>
class Embedding : public ::testing::Test {};
TYPED_TEST_SUITE(Embedding, FloatTypes);

constexpr std::int64_t width = 5, vocab = 8;
// 5 and 2 occur more than once, 0, 3, 4 and 6 never.
const std::vector<std::int32_t> tokens_N = {5, 2, 7, 5, 1, 2, 5};
constexpr std::int64_t count = 7;

// What data::sort_by_token is to make of `tokens_N` for [begin, end), made by looking.
template <class T>
TokenSegments segments_of(HostBench<T>& bench, int begin, int end) {
  std::vector<std::int32_t> order, segment_token, segment_begin;
  for (int token = begin; token < end; ++token) {
    const auto before = static_cast<std::int32_t>(order.size());
    for (std::int32_t n = 0; n < count; ++n) {
      if (tokens_N[n] == token) order.push_back(n);
    }
    if (static_cast<std::int32_t>(order.size()) > before) {
      segment_token.push_back(token);
      segment_begin.push_back(before);
    }
  }
  const auto segments = static_cast<std::int32_t>(segment_token.size());
  segment_begin.push_back(static_cast<std::int32_t>(order.size()));
  // What lies behind the used parts is unspecified.
  order.resize(count, -999);
  segment_token.resize(count, -999);
  segment_begin.resize(count + 1, -999);
  return {bench.indices(order), bench.indices(segment_token), bench.indices(segment_begin), bench.indices({segments})};
}

TYPED_TEST(Embedding, FetchesTheRowsOfItsPartAndZeroElsewhere) {
  HostBench<TypeParam> bench;
  const Numbers weight = numbers(1, vocab * width);
  for (const std::int64_t begin : {0, 2, 5}) {
    const std::int64_t rows = begin == 0 ? vocab : 3;
    const Tensor x_ND = bench.tensor({count, width});
    embedding_forward(bench.stream(), bench.indices(tokens_N),
                      bench.tensor({vocab, width}, weight).rows(begin, begin + rows), begin, x_ND);
    const Numbers x = bench.values(x_ND);
    for (std::int64_t n = 0; n < count; ++n) {
      const bool mine = tokens_N[n] >= begin && tokens_N[n] < begin + rows;
      for (std::int64_t i = 0; i < width; ++i) {
        EXPECT_EQ(x[n * width + i], mine ? weight[tokens_N[n] * width + i] : 0) << "token " << tokens_N[n];
      }
    }
  }
}

TYPED_TEST(Embedding, PartsOfTheVocabularySumToTheWholeLookUp) {
  HostBench<TypeParam> bench;
  const Tensor weight_VD = bench.tensor({vocab, width}, numbers(1, vocab * width)), token_N = bench.indices(tokens_N);
  const Tensor whole_ND = bench.tensor({count, width});
  embedding_forward(bench.stream(), token_N, weight_VD, 0, whole_ND);
  Numbers total(count * width);
  for (int part = 0; part < 4; ++part) {
    const Tensor x_ND = bench.tensor({count, width});
    embedding_forward(bench.stream(), token_N, weight_VD.rows(2 * part, 2 * part + 2), 2 * part, x_ND);
    const Numbers x = bench.values(x_ND);
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += x[i];
  }
  EXPECT_EQ(total, bench.values(whole_ND));
}

TYPED_TEST(Embedding, BackwardSumsEqualTokensExactlyAndSetsAbsentRowsToZero) {
  HostBench<TypeParam> bench;
  const Numbers dx = integers(1, count * width), before = integers(2, vocab * width);
  const Tensor dx_ND = bench.tensor({count, width}, dx);
  for (const bool accumulate : {false, true}) {
    for (const std::int64_t begin : {0, 2}) {
      const std::int64_t rows = begin == 0 ? vocab : 4;
      const Tensor dweight_VD = bench.tensor({rows, width}, Numbers(before.begin(), before.begin() + rows * width));
      embedding_backward(bench.stream(), dx_ND, segments_of(bench, begin, begin + rows), begin, dweight_VD, accumulate);
      const Numbers dweight = bench.values(dweight_VD);
      for (std::int64_t v = 0; v < rows; ++v) {
        for (std::int64_t i = 0; i < width; ++i) {
          double expected = accumulate ? before[v * width + i] : 0;
          for (std::int64_t n = 0; n < count; ++n) expected += tokens_N[n] == begin + v ? dx[n * width + i] : 0;
          EXPECT_EQ(dweight[v * width + i], expected) << "token " << begin + v;
        }
      }
    }
  }
}

TYPED_TEST(Embedding, BackwardOfNoTokenInThisPartIsZero) {
  HostBench<TypeParam> bench;
  const Tensor dweight_VD = bench.tensor({1, width});
  embedding_backward(bench.stream(), bench.tensor({count, width}), segments_of(bench, 3, 4), 3, dweight_VD, false);
  EXPECT_EQ(bench.values(dweight_VD), Numbers(width, 0));
}

TYPED_TEST(Embedding, PositionsAddTheSameTableToEverySequence) {
  HostBench<TypeParam> bench;
  const std::int64_t sequences = 2, positions = 3;
  const Numbers weight = integers(1, positions * width), x = integers(2, sequences * positions * width);
  const Tensor x_ND = bench.tensor({sequences * positions, width}, x);
  position_forward(bench.stream(), bench.tensor({positions, width}, weight), x_ND, 0);
  const Numbers after = bench.values(x_ND);
  for (std::int64_t i = 0; i < sequences * positions * width; ++i) {
    EXPECT_EQ(after[i], x[i] + weight[i % (positions * width)]);
  }
}

TYPED_TEST(Embedding, PositionBackwardSumsSequencesAndAddsOnlyWhenToldTo) {
  HostBench<TypeParam> bench;
  const std::int64_t sequences = 4, positions = 3;
  const Numbers dx = integers(1, sequences * positions * width), before = integers(2, positions * width);
  for (const bool accumulate : {false, true}) {
    const Tensor dweight_SD = bench.tensor({positions, width}, before);
    position_backward(bench.stream(), bench.tensor({sequences * positions, width}, dx), dweight_SD, accumulate, 0);
    const Numbers dweight = bench.values(dweight_SD);
    for (std::int64_t i = 0; i < positions * width; ++i) {
      double expected = accumulate ? before[i] : 0;
      for (std::int64_t b = 0; b < sequences; ++b) expected += dx[b * positions * width + i];
      EXPECT_EQ(dweight[i], expected);
    }
  }
}

// Rows from any token on, of part of a sequence or of more than one: token `first + n` is at position (first + n) mod S.
TYPED_TEST(Embedding, PositionsOfSomeTokensAreThoseWhereTheyStand) {
  HostBench<TypeParam> bench;
  const std::int64_t positions = 3;
  const Numbers weight = integers(1, positions * width), before = integers(2, positions * width);
  for (const std::int64_t first : {0, 1, 5, 7}) {
    for (const std::int64_t rows : {1, 2, 4, 7}) {
      const Numbers x = integers(3, rows * width), dx = integers(4, rows * width);
      const Tensor x_ND = bench.tensor({rows, width}, x);
      position_forward(bench.stream(), bench.tensor({positions, width}, weight), x_ND, first);
      const Numbers after = bench.values(x_ND);
      for (const bool accumulate : {false, true}) {
        Numbers expected = accumulate ? before : Numbers(static_cast<std::size_t>(positions * width), 0);
        for (std::int64_t n = 0; n < rows; ++n) {
          for (std::int64_t i = 0; i < width; ++i) {
            const std::int64_t at = (first + n) % positions * width + i;
            EXPECT_EQ(after[n * width + i], x[n * width + i] + weight[at]);
            expected[at] += dx[n * width + i];
          }
        }
        const Tensor dweight_SD = bench.tensor({positions, width}, before);
        position_backward(bench.stream(), bench.tensor({rows, width}, dx), dweight_SD, accumulate, first);
        EXPECT_EQ(bench.values(dweight_SD), expected) << rows << " rows from " << first;
      }
    }
  }
}

TEST(EmbeddingGradients, AreThoseOfFiniteDifferences) {
  HostBench<double> bench;
  const Numbers weight = numbers(1, vocab * width), dx = numbers(2, count * width), position = numbers(3, count * width);
  const auto scalar = [&](const Numbers& weight_at, const Numbers& position_at) {
    const Tensor x_ND = bench.tensor({count, width});
    embedding_forward(bench.stream(), bench.indices(tokens_N), bench.tensor({vocab, width}, weight_at), 0, x_ND);
    position_forward(bench.stream(), bench.tensor({count, width}, position_at), x_ND, 0);
    return weighted(dx, bench.values(x_ND));
  };
  const Tensor dx_ND = bench.tensor({count, width}, dx);
  const Tensor dweight_VD = bench.tensor({vocab, width}), dposition_SD = bench.tensor({count, width});
  embedding_backward(bench.stream(), dx_ND, segments_of(bench, 0, vocab), 0, dweight_VD, false);
  position_backward(bench.stream(), dx_ND, dposition_SD, false, 0);
  expect_gradient([&](const Numbers& at) { return scalar(at, position); }, weight, bench.values(dweight_VD),
                  count * width, "dweight");
  expect_gradient([&](const Numbers& at) { return scalar(weight, at); }, position, bench.values(dposition_SD),
                  count * width, "dposition");
}

}  // namespace
}  // namespace shardbook::kernels::testing
