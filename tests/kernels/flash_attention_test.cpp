#include "engine/kernels/flash_attention.hpp"

#include "engine/kernels/dropout.hpp"
#include "engine/kernels/random.hpp"

#include "tests/kernels/host_bench.hpp"

namespace shardbook::kernels::testing {
namespace {

// One layer's fused rows, and what forward and backward make of them.
template <class T>
struct Layer {
  Layer(const GroupedHeads& heads, float scale, const Numbers& qkv, const DropoutMask& mask = no_dropout)
      : heads(heads), scale(scale), mask(mask), qkv_NE(bench.tensor({heads.tokens(), heads.width()}, qkv)) {}

  void forward() { flash_attention_forward(bench.stream(), heads, scale, qkv_NE, out_NI, logsumexp_BHS, mask); }
  void backward(const Numbers& dout) {
    flash_attention_backward(bench.stream(), heads, scale, qkv_NE, out_NI, bench.tensor(out_NI.shape, dout), logsumexp_BHS, delta_BHS, dqkv_NE, mask);
  }

  HostBench<T> bench;
  GroupedHeads heads;
  float scale;
  DropoutMask mask;
  Tensor qkv_NE;
  Tensor out_NI = bench.tensor({heads.tokens(), heads.query_width()});
  Tensor logsumexp_BHS = bench.tensor({heads.tokens() * heads.heads});
  Tensor delta_BHS = bench.tensor({heads.tokens() * heads.heads});
  Tensor dqkv_NE = bench.tensor(qkv_NE.shape);
};

// Where number i of a head's vector stands in the fused rows.
std::int64_t query_at(const GroupedHeads& h, std::int64_t token, std::int64_t head, std::int64_t i) { return token * h.width() + head * h.head_dim + i; }
std::int64_t key_at(const GroupedHeads& h, std::int64_t token, std::int64_t group, std::int64_t i) { return query_at(h, token, h.heads + group, i); }
std::int64_t value_at(const GroupedHeads& h, std::int64_t token, std::int64_t group, std::int64_t i) {
  return query_at(h, token, h.heads + h.key_value_heads + group, i);
}

// Sets q and k so that each query's score with one key, chosen(s) ≤ s, is larger than with any other by far more than
// an exponential can hold: keys are the bits of their position as ±64.
constexpr std::int64_t bits = 8;
double bit(std::int64_t position, std::int64_t i) { return position >> i & 1 ? 64 : -64; }
std::int64_t chosen(std::int64_t s) { return s * 7919 % (s + 1); }
void choose_one_key(const GroupedHeads& h, Numbers& qkv) {
  for (std::int64_t n = 0; n < h.tokens(); ++n) {
    const std::int64_t s = n % h.positions;
    for (std::int64_t i = 0; i < bits; ++i) {
      for (std::int64_t head = 0; head < h.heads; ++head) qkv[static_cast<std::size_t>(query_at(h, n, head, i))] = bit(chosen(s), i);
      for (std::int64_t group = 0; group < h.key_value_heads; ++group) qkv[static_cast<std::size_t>(key_at(h, n, group, i))] = bit(s, i);
    }
  }
}

template <class T>
class FlashAttention : public ::testing::Test {};
TYPED_TEST_SUITE(FlashAttention, FloatTypes);

TYPED_TEST(FlashAttention, OfOneKeyThatOutweighsAllIsThatKeysValueExactly) {
  const GroupedHeads heads{2, 4, 2, 200, bits};
  Numbers qkv = integers(1, heads.tokens() * heads.width());
  choose_one_key(heads, qkv);
  Layer<TypeParam> layer(heads, 1, qkv);
  layer.forward();
  const Numbers out = layer.bench.values(layer.out_NI), logsumexp = layer.bench.values(layer.logsumexp_BHS);
  for (std::int64_t n = 0; n < heads.tokens(); ++n) {
    const std::int64_t s = n % heads.positions, from = n - s + chosen(s);
    for (std::int64_t h = 0; h < heads.heads; ++h) {
      for (std::int64_t i = 0; i < heads.head_dim; ++i) {
        ASSERT_EQ(out[static_cast<std::size_t>(n * heads.query_width() + h * heads.head_dim + i)], qkv[static_cast<std::size_t>(value_at(heads, from, h / 2, i))])
            << "token " << n << ", head " << h;
      }
      ASSERT_EQ(logsumexp[static_cast<std::size_t>((n / heads.positions * heads.heads + h) * heads.positions + s)], bits * 64 * 64);
    }
  }
}

TYPED_TEST(FlashAttention, OfEqualScoresIsTheMeanOfTheValuesExactlyWhereTheCountIsAPowerOfTwo) {
  const GroupedHeads heads{1, 2, 1, 256, 4};
  Numbers qkv = integers(2, heads.tokens() * heads.width());
  for (std::int64_t n = 0; n < heads.tokens(); ++n) {
    for (std::int64_t i = 0; i < heads.query_width(); ++i) qkv[static_cast<std::size_t>(n * heads.width() + i)] = 0;
  }
  Layer<TypeParam> layer(heads, 0.5f, qkv);
  layer.forward();
  const Numbers out = layer.bench.values(layer.out_NI);
  for (const std::int64_t keys : {1, 2, 4, 8, 16, 32, 64, 128, 256}) {  // over one, two and four tiles
    for (std::int64_t i = 0; i < heads.head_dim; ++i) {
      double sum = 0;
      for (std::int64_t t = 0; t < keys; ++t) sum += qkv[static_cast<std::size_t>(value_at(heads, t, 0, i))];
      for (std::int64_t h = 0; h < heads.heads; ++h) {
        EXPECT_EQ(out[static_cast<std::size_t>((keys - 1) * heads.query_width() + h * heads.head_dim + i)], sum / static_cast<double>(keys));
      }
    }
  }
}

TYPED_TEST(FlashAttention, BackwardOfOneKeyThatOutweighsAllSendsEachGradientToItsValueAndNoneThroughTheScores) {
  const GroupedHeads heads{2, 4, 2, 200, bits};
  Numbers qkv = integers(1, heads.tokens() * heads.width());
  choose_one_key(heads, qkv);
  const Numbers dout = integers(3, heads.tokens() * heads.query_width());
  Layer<TypeParam> layer(heads, 1, qkv);
  layer.forward();
  layer.backward(dout);
  Numbers expected(qkv.size(), 0.0);
  for (std::int64_t n = 0; n < heads.tokens(); ++n) {
    const std::int64_t s = n % heads.positions, from = n - s + chosen(s);
    for (std::int64_t h = 0; h < heads.heads; ++h) {
      for (std::int64_t i = 0; i < heads.head_dim; ++i) {
        expected[static_cast<std::size_t>(value_at(heads, from, h / 2, i))] += dout[static_cast<std::size_t>(n * heads.query_width() + h * heads.head_dim + i)];
      }
    }
  }
  EXPECT_EQ(layer.bench.values(layer.dqkv_NE), expected);
}

// One key outweighs all: its value counts twice, or not at all, as the draw of (sequence, head, query, key) says. This
// rank has heads 4 to 7 of 8, so its squares lie apart in the whole.
TYPED_TEST(FlashAttention, DropsByPlaceInTheSquaresOfAllHeadsAndSendsNoGradientWhereItDropped) {
  const GroupedHeads heads{2, 4, 2, 200, bits};
  Numbers qkv = integers(1, heads.tokens() * heads.width());
  choose_one_key(heads, qkv);
  const Numbers dout = integers(3, heads.tokens() * heads.query_width());
  const std::int64_t square = heads.positions * heads.positions;
  Layer<TypeParam> layer(heads, 1, qkv, dropout_mask(0.5, 77, 4 * square, 4 * square, 8 * square));
  layer.forward();
  layer.backward(dout);
  Numbers out, dqkv(qkv.size(), 0.0);
  std::int64_t dropped = 0;
  for (std::int64_t n = 0; n < heads.tokens(); ++n) {
    const std::int64_t b = n / heads.positions, s = n % heads.positions, t = chosen(s);
    for (std::int64_t h = 0; h < heads.heads; ++h) {
      const std::int64_t element = ((b * 8 + 4 + h) * heads.positions + s) * heads.positions + t;
      const bool gone = is_dropped(77, static_cast<std::uint64_t>(element), 1u << 31);
      dropped += gone;
      for (std::int64_t i = 0; i < heads.head_dim; ++i) {
        const std::size_t value = static_cast<std::size_t>(value_at(heads, n - s + t, h / 2, i));
        out.push_back(gone ? 0 : 2 * qkv[value]);
        dqkv[value] += gone ? 0 : 2 * dout[static_cast<std::size_t>(n * heads.query_width() + h * heads.head_dim + i)];
      }
    }
  }
  EXPECT_EQ(layer.bench.values(layer.out_NI), out);
  EXPECT_EQ(layer.bench.values(layer.dqkv_NE), dqkv);
  EXPECT_GT(dropped, 700);
  EXPECT_LT(dropped, 900);
}

TYPED_TEST(FlashAttention, LiesWithinRoundingOfTheFormulaWhereverTheLargestScoreIs) {
  using T = TypeParam;
  const GroupedHeads heads{2, 4, 2, 150, 3};
  const float scale = 0.75f;
  for (const double slope : {-0.1, 0.0, 0.1}) {  // scores fall, wander, or rise with the key's position
    Numbers qkv = numbers(4, heads.tokens() * heads.width(), 2);
    for (std::int64_t n = 0; n < heads.tokens(); ++n) {
      for (std::int64_t h = 0; h < heads.heads; ++h) qkv[static_cast<std::size_t>(query_at(heads, n, h, 0))] = 1;
      for (std::int64_t g = 0; g < heads.key_value_heads; ++g) {
        qkv[static_cast<std::size_t>(key_at(heads, n, g, 0))] += std::round(slope * static_cast<double>(n % heads.positions) * 64) / 64;
      }
    }
    Layer<T> layer(heads, scale, qkv);
    layer.forward();
    Reals expected, bound;
    for (std::int64_t n = 0; n < heads.tokens(); ++n) {
      const std::int64_t s = n % heads.positions;
      for (std::int64_t h = 0; h < heads.heads; ++h) {
        std::vector<Real> p;
        Real total = 0, largest = 0;
        for (std::int64_t t = 0; t <= s; ++t) {
          Real score = 0, magnitude = 0;
          for (std::int64_t i = 0; i < heads.head_dim; ++i) {
            const Real term = Real(qkv[static_cast<std::size_t>(query_at(heads, n, h, i))]) * qkv[static_cast<std::size_t>(key_at(heads, n - s + t, h / 2, i))];
            score += term;
            magnitude += std::abs(term);
          }
          p.push_back(std::exp(scale * score));
          total += p.back();
          largest = std::max(largest, scale * magnitude);
        }
        for (std::int64_t i = 0; i < heads.head_dim; ++i) {
          Real sum = 0, magnitude = 0;
          for (std::int64_t t = 0; t <= s; ++t) {
            const Real term = p[static_cast<std::size_t>(t)] / total * Real(qkv[static_cast<std::size_t>(value_at(heads, n - s + t, h / 2, i))]);
            sum += term;
            magnitude += std::abs(term);
          }
          expected.push_back(sum);
          // A score errs by head_dim + 1 units of its magnitude, an exponent by twice that and one more, an exponential
          // by 4; each of the three tiles may shrink the sums once. Numerator and denominator each, with their sums.
          const Real one = (2 * (heads.head_dim + 1) + 1) * largest + 4 + 3 * (2 * largest + 4 + 1);
          bound.push_back(magnitude * (2 * (one + s + 2) + 1) * unit<T>());
        }
      }
    }
    expect_within(layer.bench.values(layer.out_NI), expected, bound, "out");
  }
}

TYPED_TEST(FlashAttention, OfHugeScoresStaysFinite) {
  const GroupedHeads heads{1, 1, 1, 2, 1};
  Layer<TypeParam> layer(heads, 1, {-1e15, -1e15, 3, 1e15, 1e15, 5});
  layer.forward();
  layer.backward({1, 1});
  EXPECT_EQ(layer.bench.values(layer.out_NI), (Numbers{3, 5}));
  for (const double value : layer.bench.values(layer.dqkv_NE)) EXPECT_TRUE(std::isfinite(value));
}

TEST(FlashAttentionGradients, AreThoseOfFiniteDifferences) {
  for (const GroupedHeads& heads : {GroupedHeads{2, 4, 2, 5, 3}, GroupedHeads{1, 2, 1, 70, 2}, GroupedHeads{2, 3, 3, 4, 2}}) {
    const Numbers qkv = numbers(5, heads.tokens() * heads.width(), 2), dout = numbers(6, heads.tokens() * heads.query_width());
    Layer<double> layer(heads, 0.5f, qkv);
    layer.forward();
    layer.backward(dout);
    const auto scalar = [&](const Numbers& at) {
      std::copy(at.begin(), at.end(), static_cast<double*>(layer.qkv_NE.data));
      layer.forward();
      return weighted(dout, layer.bench.values(layer.out_NI));
    };
    const Numbers dqkv = layer.bench.values(layer.dqkv_NE);
    expect_gradient(scalar, qkv, dqkv, heads.tokens() * heads.query_width(), "dqkv");
  }
}

TEST(FlashAttentionShapes, RefuseHeadsThatCannotShareAndAGradientInPlace) {
  const GroupedHeads heads{1, 3, 2, 4, 2};
  Layer<float> odd(heads, 1, Numbers(static_cast<std::size_t>(heads.tokens() * heads.width())));
  EXPECT_THROW(odd.forward(), base::Failure);
  const GroupedHeads even{1, 2, 2, 4, 2};
  Layer<float> layer(even, 1, Numbers(static_cast<std::size_t>(even.tokens() * even.width())));
  layer.dqkv_NE = layer.qkv_NE;
  EXPECT_THROW(layer.backward(Numbers(static_cast<std::size_t>(even.tokens() * even.query_width()))), base::Failure);
}

}  // namespace
}  // namespace shardbook::kernels::testing
