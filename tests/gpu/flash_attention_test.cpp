// Flash attention equals its host reference: within a derived bound, and exactly where sums are exact.
#include "engine/kernels/dropout.hpp"
#include "engine/kernels/random.hpp"
#include "tests/gpu/gpu_test.hpp"

namespace shardbook::gpu_test {
namespace {

using FlashAttention = OneGpu;
using Sizes = kernels::FlashAttentionSizes;

Sizes sizes_of(std::int64_t sequences, std::int64_t heads, std::int64_t key_value_heads, std::int64_t positions, std::int64_t head_dim) {
  return {sequences, heads, key_value_heads, positions, head_dim, (heads + 2 * key_value_heads) * head_dim};
}
std::int64_t tokens_of(const Sizes& s) { return s.sequences * s.positions; }
std::int64_t width_of(const Sizes& s) { return s.heads * s.head_dim; }
std::int64_t statistics_of(const Sizes& s) { return tokens_of(s) * s.heads; }
// Where number i of q's head h, or of key-value head g, of a token stands in the fused rows.
std::int64_t query_at(const Sizes& s, std::int64_t token, std::int64_t h, std::int64_t i) { return token * s.row_stride + h * s.head_dim + i; }
std::int64_t key_at(const Sizes& s, std::int64_t token, std::int64_t g, std::int64_t i) { return query_at(s, token, s.heads + g, i); }
std::int64_t value_at(const Sizes& s, std::int64_t token, std::int64_t g, std::int64_t i) { return query_at(s, token, s.heads + s.key_value_heads + g, i); }

// The numbers of one layer, on both sides.
struct Layer {
  Layer(const Sizes& sizes, float scale, std::vector<double> qkv_values, std::vector<double> dout_values, const kernels::DropoutMask& mask = kernels::no_dropout)
      : sizes(sizes), scale(scale), mask(mask), qkv(std::move(qkv_values), DType::bf16), out(unwritten(tokens_of(sizes) * width_of(sizes)), DType::bf16),
        logsumexp(unwritten(statistics_of(sizes)), DType::f32), dout(std::move(dout_values), DType::bf16),
        delta(unwritten(statistics_of(sizes)), DType::f32), dqkv(unwritten(tokens_of(sizes) * sizes.row_stride), DType::bf16) {}

  static void* section(Numbers& numbers, bool gpu, std::int64_t element) {
    return static_cast<char*>(numbers.at(gpu)) + element * (gpu ? 2 : 8);
  }
  void* q(Numbers& numbers, bool gpu) { return section(numbers, gpu, 0); }
  void* k(Numbers& numbers, bool gpu) { return section(numbers, gpu, sizes.heads * sizes.head_dim); }
  void* v(Numbers& numbers, bool gpu) { return section(numbers, gpu, (sizes.heads + sizes.key_value_heads) * sizes.head_dim); }

  void forward() {
    run_both([&](bool gpu) {
      return kernels::FlashAttentionForwardArgs{q(qkv, gpu), k(qkv, gpu), v(qkv, gpu), out.at(gpu), logsumexp.at(gpu), sizes, scale,
                                                gpu ? DType::bf16 : DType::f64, mask};
    }, &kernels::host::flash_attention_forward, &kernels::cuda::flash_attention_forward);
  }
  // Both sides begin backward from the same context and logsumexp: forward's on the host, as they are stored.
  void backward() {
    Numbers stored_out(host(out), DType::bf16), stored_logsumexp(host(logsumexp), DType::f32);
    out = stored_out;
    logsumexp = stored_logsumexp;
    run_both([&](bool gpu) {
      return kernels::FlashAttentionBackwardArgs{q(qkv, gpu), k(qkv, gpu), v(qkv, gpu), out.at(gpu), dout.at(gpu), logsumexp.at(gpu),
                                                 delta.at(gpu), q(dqkv, gpu), k(dqkv, gpu), v(dqkv, gpu), sizes, scale,
                                                 gpu ? DType::bf16 : DType::f64, mask};
    }, &kernels::host::flash_attention_backward, &kernels::cuda::flash_attention_backward);
  }
  // What p counts for: of what is dropped 0.
  double kept(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t t) const {
    const std::int64_t element = mask.first + b * mask.stride + (h * sizes.positions + s) * sizes.positions + t;
    return kernels::is_dropped(mask.key, static_cast<std::uint64_t>(element), mask.threshold) ? 0.0 : mask.scale;
  }
  static std::vector<double> host(const Numbers& numbers) {
    std::vector<double> values(numbers.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = numbers[i];
    return values;
  }

  Sizes sizes;
  float scale;
  kernels::DropoutMask mask;
  Numbers qkv, out, logsumexp, dout, delta, dqkv;
};

// Calls f(token, s, h, g, statistic) for each query and head.
template <class F>
void for_each_query(const Sizes& sizes, F f) {
  for (std::int64_t n = 0; n < tokens_of(sizes); ++n) {
    const std::int64_t b = n / sizes.positions, s = n % sizes.positions;
    for (std::int64_t h = 0; h < sizes.heads; ++h) {
      f(n, s, h, h / (sizes.heads / sizes.key_value_heads), (b * sizes.heads + h) * sizes.positions + s);
    }
  }
}

// The score of a query with a key, without scale, and the sum of its terms' magnitudes.
struct Dot {
  double sum = 0, magnitude = 0;
};
template <class A, class B>
Dot dot(std::int64_t count, A a, B b) {
  Dot dot;
  for (std::int64_t i = 0; i < count; ++i) {
    dot.sum += a(i) * b(i);
    dot.magnitude += std::abs(a(i) * b(i));
  }
  return dot;
}
Dot score(const Layer& l, std::int64_t n, std::int64_t h, std::int64_t key, std::int64_t g) {
  return dot(l.sizes.head_dim, [&](std::int64_t i) { return l.qkv[static_cast<std::size_t>(query_at(l.sizes, n, h, i))]; },
             [&](std::int64_t i) { return l.qkv[static_cast<std::size_t>(key_at(l.sizes, key, g, i))]; });
}

// Tensor cores need not round what they add, so each addition errs by up to two units.
double tensor_gamma(std::int64_t additions) { return gamma(2.0 * static_cast<double>(additions)); }
// By how much e^(scale · score − most) errs relatively, `score` of magnitude `magnitude` and |score|, |most| ≤ largest:
// both scores, the three roundings of the exponent, and the hardware's 2^x.
double exponential_error(const Layer& l, double magnitude, double largest) {
  return 1.01 * (2 * l.scale * tensor_gamma(l.sizes.head_dim) * magnitude + 8 * unit_f32 * largest) + 0x1p-21;
}

void expect_forward(Layer& l) {
  l.forward();
  const Sizes& sizes = l.sizes;
  std::vector<double> error(l.out.size()), logsumexp_error(l.logsumexp.size());
  for_each_query(sizes, [&](std::int64_t n, std::int64_t s, std::int64_t h, std::int64_t g, std::int64_t statistic) {
    double magnitude = 0, largest = 0;
    std::vector<double> p;
    for (std::int64_t t = 0; t <= s; ++t) {
      const Dot z = score(l, n, h, n - s + t, g);
      p.push_back(std::exp(l.scale * z.sum - l.logsumexp[static_cast<std::size_t>(statistic)]));
      magnitude = std::max(magnitude, z.magnitude);
      largest = std::max(largest, std::abs(l.scale * z.sum));
    }
    // Each tile of 64 keys may shrink the sums once, by an exponential.
    const double one = (static_cast<double>(s / 64) + 2) * exponential_error(l, magnitude, largest);
    const double sums = one + tensor_gamma(s + 2);
    logsumexp_error[static_cast<std::size_t>(statistic)] = sums + 4 * unit_f32 * (largest + std::abs(l.logsumexp[static_cast<std::size_t>(statistic)]));
    for (std::int64_t i = 0; i < sizes.head_dim; ++i) {
      double weighed = 0;
      for (std::int64_t t = 0; t <= s; ++t) weighed += l.kept(n / sizes.positions, h, s, t) * p[static_cast<std::size_t>(t)] * std::abs(l.qkv[static_cast<std::size_t>(value_at(sizes, n - s + t, g, i))]);
      // Numerator (its p rounded to bf16) and denominator.
      error[static_cast<std::size_t>(n * width_of(sizes) + h * sizes.head_dim + i)] = 1.01 * weighed * (2 * sums + unit_bf16 + unit_f32);
    }
  });
  expect_within(l.out, [&](std::size_t i) { return error[i]; });
  expect_within(l.logsumexp, [&](std::size_t i) { return logsumexp_error[i]; });
}

void expect_backward(Layer& l) {
  l.backward();
  const Sizes& sizes = l.sizes;
  std::vector<double> error(l.dqkv.size());
  const std::int64_t terms = sizes.positions * (sizes.heads / sizes.key_value_heads);
  const auto number = [](const Numbers& numbers, std::int64_t at) { return numbers[static_cast<std::size_t>(at)]; };
  for_each_query(sizes, [&](std::int64_t n, std::int64_t s, std::int64_t h, std::int64_t g, std::int64_t statistic) {
    const std::int64_t row = n * width_of(sizes) + h * sizes.head_dim;
    const double logsumexp = number(l.logsumexp, statistic);
    const Dot delta = dot(sizes.head_dim, [&](std::int64_t i) { return number(l.out, row + i); }, [&](std::int64_t i) { return number(l.dout, row + i); });
    for (std::int64_t t = 0; t <= s; ++t) {
      const std::int64_t key = n - s + t;
      const Dot z = score(l, n, h, key, g);
      const double kept = l.kept(n / sizes.positions, h, s, t);
      const Dot dp = dot(sizes.head_dim, [&](std::int64_t i) { return number(l.dout, row + i); }, [&](std::int64_t i) { return number(l.qkv, value_at(sizes, key, g, i)); });
      const double p = std::exp(l.scale * z.sum - logsumexp);
      const double p_error = exponential_error(l, z.magnitude, std::abs(l.scale * z.sum) + std::abs(logsumexp));
      // dscore = p (dp − δ), rounded to bf16
      const double dscore = p * std::abs(kept * dp.sum - delta.sum);
      const double difference = tensor_gamma(sizes.head_dim + 1) * (kept * dp.magnitude + delta.magnitude);
      const double dscore_error = 1.01 * (p * difference + dscore * (p_error + unit_bf16 + 3 * unit_f32));
      for (std::int64_t i = 0; i < sizes.head_dim; ++i) {
        const double q = std::abs(number(l.qkv, query_at(sizes, n, h, i))), k = std::abs(number(l.qkv, key_at(sizes, key, g, i)));
        error[static_cast<std::size_t>(query_at(sizes, n, h, i))] += l.scale * k * (dscore_error + tensor_gamma(terms) * 1.01 * dscore);
        error[static_cast<std::size_t>(key_at(sizes, key, g, i))] += l.scale * q * (dscore_error + tensor_gamma(terms) * 1.01 * dscore);
        error[static_cast<std::size_t>(value_at(sizes, key, g, i))] +=
            1.01 * kept * p * std::abs(number(l.dout, row + i)) * (p_error + unit_bf16 + tensor_gamma(terms));
      }
    }
  });
  expect_within(l.dqkv, [&](std::size_t i) { return error[i]; });
}

TEST_F(FlashAttention, EqualsItsHostReference) {
  for (const std::int64_t head_dim : {32, 64, 128}) {
    for (const std::int64_t positions : {1, 63, 64, 65, 128, 130, 257}) {
      for (const std::int64_t key_value_heads : {4, 1}) {
        SCOPED_TRACE(testing::Message() << positions << " positions, heads of " << head_dim << ", 4 share " << key_value_heads);
        Gpu::get().reset();
        const Sizes sizes = sizes_of(2, 4, key_value_heads, positions, head_dim);
        Layer layer(sizes, 1 / std::sqrt(static_cast<float>(head_dim)), normal(tokens_of(sizes) * sizes.row_stride, 1.5),
                    normal(tokens_of(sizes) * width_of(sizes)));
        expect_forward(layer);
        expect_backward(layer);
      }
    }
  }
}

// A rank's heads, of twice as many in each sequence.
kernels::DropoutMask half_of_the_heads(const Sizes& sizes, double rate) {
  const std::int64_t square = sizes.positions * sizes.positions;
  return kernels::dropout_mask(rate, 0x5EED, (6 * sizes.heads + 1) * square, sizes.heads * square, 2 * sizes.heads * square);
}

TEST_F(FlashAttention, WithDropoutEqualsItsHostReference) {
  for (const std::int64_t head_dim : {32, 64, 128}) {
    for (const std::int64_t positions : {1, 64, 130, 257}) {
      for (const std::int64_t key_value_heads : {4, 2}) {
        SCOPED_TRACE(testing::Message() << positions << " positions, heads of " << head_dim << ", 4 share " << key_value_heads);
        Gpu::get().reset();
        const Sizes sizes = sizes_of(2, 4, key_value_heads, positions, head_dim);
        Layer layer(sizes, 1 / std::sqrt(static_cast<float>(head_dim)), normal(tokens_of(sizes) * sizes.row_stride, 1.5),
                    normal(tokens_of(sizes) * width_of(sizes)), half_of_the_heads(sizes, 0.3));
        expect_forward(layer);
        expect_backward(layer);
      }
    }
  }
}

TEST_F(FlashAttention, OfLongSequencesEqualsItsHostReference) {
  const Sizes sizes = sizes_of(1, 2, 1, 1500, 128);
  Layer layer(sizes, 0.1f, normal(tokens_of(sizes) * sizes.row_stride), normal(tokens_of(sizes) * width_of(sizes)));
  expect_forward(layer);
  expect_backward(layer);
}

// Query s has a score with key s · 7919 mod (s + 1) that outweighs all others by more than an exponential can hold.
// Where half is dropped it is twice that value, or nothing.
void expect_one_key(std::int64_t head_dim, double rate) {
  SCOPED_TRACE(testing::Message() << head_dim << ", dropout " << rate);
  Gpu::get().reset();
  const Sizes sizes = sizes_of(2, 4, 2, 300, head_dim);
  const kernels::DropoutMask mask = rate == 0 ? kernels::no_dropout : half_of_the_heads(sizes, rate);
  std::vector<double> qkv = small_integers(tokens_of(sizes) * sizes.row_stride, 4);
  const auto bit = [](std::int64_t position, std::int64_t i) { return position >> (i % 9) & 1 ? 8.0 : -8.0; };
  for (std::int64_t n = 0; n < tokens_of(sizes); ++n) {
    const std::int64_t s = n % sizes.positions;
    for (std::int64_t i = 0; i < head_dim; ++i) {
      for (std::int64_t h = 0; h < 4; ++h) qkv[static_cast<std::size_t>(query_at(sizes, n, h, i))] = bit(s * 7919 % (s + 1), i);
      for (std::int64_t g = 0; g < 2; ++g) qkv[static_cast<std::size_t>(key_at(sizes, n, g, i))] = bit(s, i);
    }
  }
  const float scale = head_dim == 32 ? 0.5f : 0.25f;  // so that others weigh less than the smallest number
  Layer layer(sizes, scale, qkv, small_integers(tokens_of(sizes) * width_of(sizes), 4), mask);
  layer.forward();
  expect_exact(layer.out);
  // The exponent of the only key is 0 but for the rounding of what is taken off.
  expect_within(layer.logsumexp, [&](std::size_t i) { return 4 * unit_f32 * layer.logsumexp[i]; });
  layer.backward();
  expect_exact(layer.dqkv);
  EXPECT_EQ(layer.out.from_gpu()[static_cast<std::size_t>(299 * width_of(sizes))],
            layer.kept(0, 0, 299, 299 * 7919 % 300) * qkv[static_cast<std::size_t>(value_at(sizes, 299 * 7919 % 300, 0, 0))])
      << "by hand: the last query of the first head";
}

TEST_F(FlashAttention, OfOneKeyThatOutweighsAllIsThatKeysValueAndGradientsGoThereAlone) {
  for (const std::int64_t head_dim : {32, 64, 128}) {
    expect_one_key(head_dim, 0);
    expect_one_key(head_dim, 0.5);
  }
}

TEST_F(FlashAttention, OfEqualScoresIsTheMeanOfTheValuesRoundedOnce) {
  const Sizes sizes = sizes_of(1, 2, 1, 200, 64);
  std::vector<double> qkv = small_integers(tokens_of(sizes) * sizes.row_stride, 100);
  for (std::int64_t n = 0; n < sizes.positions; ++n) {
    for (std::int64_t i = 0; i < width_of(sizes); ++i) qkv[static_cast<std::size_t>(n * sizes.row_stride + i)] = 0;
  }
  Layer layer(sizes, 0.125f, qkv, zeros(tokens_of(sizes) * width_of(sizes)));
  layer.forward();
  const std::vector<double> got = layer.out.from_gpu();
  for (std::int64_t i = 0; i < sizes.head_dim; ++i) {
    double sum = 0;
    for (std::int64_t s = 0; s < sizes.positions; ++s) {
      sum += qkv[static_cast<std::size_t>(value_at(sizes, s, 0, i))];
      for (std::int64_t h = 0; h < 2; ++h) {
        ASSERT_EQ(got[static_cast<std::size_t>(s * width_of(sizes) + h * 64 + i)], to_bf16(static_cast<float>(sum) / static_cast<float>(s + 1))) << s << ", " << i;
      }
    }
  }
}

TEST_F(FlashAttention, RepeatsBitForBit) {
  const Sizes sizes = sizes_of(2, 8, 2, 515, 64);
  Layer layer(sizes, 0.125f, normal(tokens_of(sizes) * sizes.row_stride, 2), normal(tokens_of(sizes) * width_of(sizes)), half_of_the_heads(sizes, 0.1));
  layer.forward();
  layer.backward();
  const std::vector<double> dqkv = layer.dqkv.from_gpu();
  layer.forward();
  const std::vector<double> out = layer.out.from_gpu();
  for (int again = 0; again < 3; ++again) {
    layer.forward();
    EXPECT_EQ(layer.out.from_gpu(), out);
    layer.backward();
    EXPECT_EQ(layer.dqkv.from_gpu(), dqkv);
  }
}

}  // namespace
}  // namespace shardbook::gpu_test
