#include "engine/kernels/cross_entropy.hpp"

#include "tests/kernels/host_bench.hpp"

namespace shardbook::kernels::testing {
namespace {

template <class T>
class CrossEntropy : public ::testing::Test {};
TYPED_TEST_SUITE(CrossEntropy, FloatTypes);

const std::vector<std::int32_t> targets = {0, 7, 18};

struct Outcome {
  Numbers loss, gradient;
};

// The loss over a vocabulary cut in `parts`, the two all-reduces done by hand.
template <class T>
Outcome cut(const Numbers& logit, std::int64_t vocab, std::int64_t parts, float scale) {
  HostBench<T> bench;
  const std::int64_t columns = vocab / parts;
  const Tensor target_N = bench.indices(targets);
  std::vector<Tensor> logit_NV, sums_2N;
  Numbers row_max(tokens, -1e30), sums(2 * tokens, 0);
  for (std::int64_t part = 0; part < parts; ++part) {
    Numbers mine;
    for (std::int64_t n = 0; n < tokens; ++n) {
      const auto row = logit.begin() + n * vocab + part * columns;
      mine.insert(mine.end(), row, row + columns);
    }
    logit_NV.push_back(bench.tensor({tokens, columns}, mine));
    const Tensor row_max_N = bench.tensor({tokens});
    cross_entropy_max(bench.stream(), logit_NV.back(), row_max_N);
    const Numbers part_max = bench.values(row_max_N);
    for (std::int64_t n = 0; n < tokens; ++n) row_max[n] = std::max(row_max[n], part_max[n]);
  }
  const Tensor row_max_N = bench.tensor({tokens}, row_max);
  for (std::int64_t part = 0; part < parts; ++part) {
    const Tensor sums_2N = bench.tensor({2, tokens});
    cross_entropy_sums(bench.stream(), logit_NV[part], row_max_N, target_N, part * columns, sums_2N);
    const Numbers part_sums = bench.values(sums_2N);
    for (std::int64_t i = 0; i < 2 * tokens; ++i) sums[i] = static_cast<T>(sums[i] + part_sums[i]);
  }
  Outcome outcome;
  outcome.gradient.resize(tokens * vocab);
  for (std::int64_t part = 0; part < parts; ++part) {
    const Tensor loss_N = bench.tensor({tokens});
    cross_entropy_gradient(bench.stream(), logit_NV[part], row_max_N, bench.tensor({2, tokens}, sums), target_N,
                           part * columns, scale, loss_N);
    const Numbers loss = bench.values(loss_N), mine = bench.values(logit_NV[part]);
    if (part > 0) {
      EXPECT_EQ(loss, outcome.loss) << "every rank has the same loss";
    }
    outcome.loss = loss;
    for (std::int64_t n = 0; n < tokens; ++n) {
      std::copy_n(mine.begin() + n * columns, columns, outcome.gradient.begin() + n * vocab + part * columns);
    }
  }
  return outcome;
}

TYPED_TEST(CrossEntropy, OverAnyCutOfTheVocabularyLiesWithinRoundingOfTheFormula) {
  using T = TypeParam;
  const Real u = unit<T>();
  const std::int64_t vocab = 20;
  const float scale = 0.25f;
  const Numbers logit = numbers(1, tokens * vocab, 8);
  Reals loss, loss_bound, gradient, gradient_bound;
  for (std::int64_t n = 0; n < tokens; ++n) {
    Real most = -1e30L, sum = 0;
    for (std::int64_t v = 0; v < vocab; ++v) most = std::max(most, Real(logit[n * vocab + v]));
    for (std::int64_t v = 0; v < vocab; ++v) sum += std::exp(Real(logit[n * vocab + v]) - most);
    const Real target = Real(logit[n * vocab + targets[n]]) - most;
    loss.push_back(std::log(sum) - target);
    // Differences to the maximum are at most 16 and err by u times themselves; then exp, and a sum.
    const Real sum_relative = (16 + 2 + vocab) * u;
    loss_bound.push_back(sum_relative + 3 * u * (std::abs(std::log(sum)) + std::abs(target)));
    for (std::int64_t v = 0; v < vocab; ++v) {
      const Real p = std::exp(Real(logit[n * vocab + v]) - most) / sum, one = v == targets[n] ? 1 : 0;
      gradient.push_back(scale * (p - one));
      gradient_bound.push_back(scale * ((sum_relative + (16 + 6) * u) * p + 2 * u * one));
    }
  }
  for (const std::int64_t parts : {1, 2, 4}) {
    const Outcome outcome = cut<T>(logit, vocab, parts, scale);
    expect_within(outcome.loss, loss, loss_bound, base::text("loss of ", parts, " parts"));
    expect_within(outcome.gradient, gradient, gradient_bound, base::text("gradient of ", parts, " parts"));
  }
}

TYPED_TEST(CrossEntropy, OfEqualLogitsIsTheSameBitForBitUnderAnyCut) {
  const Numbers logit(tokens * 20, 3);
  const Outcome whole = cut<TypeParam>(logit, 20, 1, 0.25f);
  EXPECT_EQ(whole.loss, Numbers(tokens, std::log(TypeParam(20))));
  for (const std::int64_t parts : {2, 4}) {
    const Outcome outcome = cut<TypeParam>(logit, 20, parts, 0.25f);
    EXPECT_EQ(outcome.loss, whole.loss);
    EXPECT_EQ(outcome.gradient, whole.gradient);
  }
}

TYPED_TEST(CrossEntropy, OfHugeLogitsStaysFinite) {
  Numbers logit(tokens * 20, -1e30);
  for (std::int64_t n = 0; n < tokens; ++n) logit[n * 20 + targets[n]] = 1e30;
  const Outcome outcome = cut<TypeParam>(logit, 20, 2, 1);
  EXPECT_EQ(outcome.loss, Numbers(tokens, 0));
  EXPECT_EQ(outcome.gradient, Numbers(tokens * 20, 0));
}

TYPED_TEST(CrossEntropy, InOneIsThatInThreeStepsToTheBit) {
  for (const std::int64_t vocab : {19, 64, 257}) {
    HostBench<TypeParam> bench;
    const Numbers logit = numbers(1, tokens * vocab, 9);
    const Tensor target_N = bench.indices(targets), in_one = bench.tensor({tokens, vocab}, logit), in_steps = bench.tensor({tokens, vocab}, logit);
    const Tensor loss = bench.tensor({tokens}), loss_of_steps = bench.tensor({tokens}), row_max = bench.tensor({tokens}), sums = bench.tensor({2, tokens});
    cross_entropy(bench.stream(), in_one, target_N, 0.25f, loss);
    cross_entropy_max(bench.stream(), in_steps, row_max);
    cross_entropy_sums(bench.stream(), in_steps, row_max, target_N, 0, sums);
    cross_entropy_gradient(bench.stream(), in_steps, row_max, sums, target_N, 0, 0.25f, loss_of_steps);
    EXPECT_EQ(bench.values(loss), bench.values(loss_of_steps));
    EXPECT_EQ(bench.values(in_one), bench.values(in_steps));
    EXPECT_NE(bench.values(in_one), logit) << "a gradient stands over the logits";
  }
}

TEST(CrossEntropyGradient, IsThatOfFiniteDifferences) {
  const std::int64_t vocab = 20;
  const Numbers logit = numbers(1, tokens * vocab, 2);
  const auto scalar = [&](const Numbers& at) {
    const Outcome outcome = cut<double>(at, vocab, 2, 0.5f);
    return 0.5 * (outcome.loss[0] + outcome.loss[1] + outcome.loss[2]);
  };
  expect_gradient(scalar, logit, cut<double>(logit, vocab, 2, 0.5f).gradient, tokens * vocab, "dlogit");
}

}  // namespace
}  // namespace shardbook::kernels::testing
