// tests/gpu: a layer of fused attention, and how far its numbers may lie from exact ones.
//
// The engine's own kernels by tiles and cuDNN's compute the same and round at the same places, so one bound holds them both:
// notes/05_flash_attention.md derives it.
#pragma once

#include "engine/kernels/cudnn_attention.hpp"
#include "engine/kernels/dropout.hpp"
#include "engine/kernels/random.hpp"
#include "tests/gpu/gpu_test.hpp"

namespace shardbook::gpu_test {

using Sizes = kernels::FlashAttentionSizes;
enum class By { flash, cudnn };

inline Sizes sizes_of(std::int64_t sequences, std::int64_t heads, std::int64_t key_value_heads, std::int64_t positions, std::int64_t head_dim) {
  return {sequences, heads, key_value_heads, positions, head_dim, (heads + 2 * key_value_heads) * head_dim};
}
inline std::int64_t tokens_of(const Sizes& s) { return s.sequences * s.positions; }
inline std::int64_t width_of(const Sizes& s) { return s.heads * s.head_dim; }
inline std::int64_t statistics_of(const Sizes& s) { return tokens_of(s) * s.heads; }
// Where number i of q's head h, or of key-value head g, of a token stands in the fused rows.
inline std::int64_t query_at(const Sizes& s, std::int64_t token, std::int64_t h, std::int64_t i) { return token * s.row_stride + h * s.head_dim + i; }
inline std::int64_t key_at(const Sizes& s, std::int64_t token, std::int64_t g, std::int64_t i) { return query_at(s, token, s.heads + g, i); }
inline std::int64_t value_at(const Sizes& s, std::int64_t token, std::int64_t g, std::int64_t i) { return query_at(s, token, s.heads + s.key_value_heads + g, i); }

// The numbers of one layer, on both sides.
struct Layer {
  Layer(const Sizes& sizes, float scale, std::vector<double> qkv_values, std::vector<double> dout_values, const kernels::DropoutMask& mask = kernels::no_dropout,
        By by = By::flash)
      : sizes(sizes), scale(scale), mask(mask), by(by), qkv(std::move(qkv_values), DType::bf16), out(unwritten(tokens_of(sizes) * width_of(sizes)), DType::bf16),
        logsumexp(unwritten(statistics_of(sizes)), DType::f32), dout(std::move(dout_values), DType::bf16),
        delta(unwritten(statistics_of(sizes)), DType::f32), dqkv(unwritten(tokens_of(sizes) * sizes.row_stride), DType::bf16) {
    if (by == By::flash) return;
    workspace_bytes = kernels::cuda::cudnn_attention_needs(sizes, at_once());
    workspace = Gpu::get().take(workspace_bytes);
  }

  static void* section(Numbers& numbers, bool gpu, std::int64_t element) {
    return static_cast<char*>(numbers.at(gpu)) + element * (gpu ? 2 : 8);
  }
  void* q(Numbers& numbers, bool gpu) { return section(numbers, gpu, 0); }
  void* k(Numbers& numbers, bool gpu) { return section(numbers, gpu, sizes.heads * sizes.head_dim); }
  void* v(Numbers& numbers, bool gpu) { return section(numbers, gpu, (sizes.heads + sizes.key_value_heads) * sizes.head_dim); }

  void forward() {
    const auto args = [&](bool gpu) {
      return kernels::FlashAttentionForwardArgs{q(qkv, gpu), k(qkv, gpu), v(qkv, gpu), out.at(gpu), logsumexp.at(gpu), sizes, scale,
                                                gpu ? DType::bf16 : DType::f64, mask};
    };
    if (by == By::flash) return run(args, &kernels::host::flash_attention_forward, &kernels::cuda::flash_attention_forward);
    run([&](bool gpu) { return kernels::CudnnAttentionForwardArgs{args(gpu), workspace, workspace_bytes}; },
             +[](const kernels::CudnnAttentionForwardArgs& a) { kernels::host::flash_attention_forward(a.of); }, &kernels::cuda::cudnn_attention_forward);
  }
  // Both sides begin backward from the same context and logsumexp: forward's on the host, as they are stored.
  void backward() {
    if (!gpu_alone) {
      Numbers stored_out(host(out), DType::bf16), stored_logsumexp(host(logsumexp), DType::f32);
      out = stored_out;
      logsumexp = stored_logsumexp;
    }
    const auto args = [&](bool gpu) {
      return kernels::FlashAttentionBackwardArgs{q(qkv, gpu), k(qkv, gpu), v(qkv, gpu), out.at(gpu), dout.at(gpu), logsumexp.at(gpu),
                                                 delta.at(gpu), q(dqkv, gpu), k(dqkv, gpu), v(dqkv, gpu), sizes, scale,
                                                 gpu ? DType::bf16 : DType::f64, mask};
    };
    if (by == By::flash) return run(args, &kernels::host::flash_attention_backward, &kernels::cuda::flash_attention_backward);
    run([&](bool gpu) { return kernels::CudnnAttentionBackwardArgs{args(gpu), workspace, workspace_bytes, at_once()}; },
             +[](const kernels::CudnnAttentionBackwardArgs& a) { kernels::host::flash_attention_backward(a.of); }, &kernels::cuda::cudnn_attention_backward);
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

  template <class MakeArgs, class Args>
  void run(MakeArgs args, void (*host)(const Args&), void (*cuda)(const Args&, const device::CudaQueue&)) {
    if (gpu_alone) Gpu::get().run(args(true), host, cuda);
    else run_both(args, host, cuda);
  }
  std::int64_t at_once() const {
    if (sequences_at_once > 0) return sequences_at_once;
    return kernels::cudnn_sequences_at_once({sizes.sequences, sizes.heads, sizes.key_value_heads, sizes.positions, sizes.head_dim});
  }

  Sizes sizes;
  float scale;
  kernels::DropoutMask mask;
  By by;
  bool gpu_alone = false;      // the host's numbers are of no interest
  std::int64_t sequences_at_once = 0;   // of cuDNN's backward; 0: as the engine would
  void* workspace = nullptr;
  std::int64_t workspace_bytes = 0;
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
inline Dot score(const Layer& l, std::int64_t n, std::int64_t h, std::int64_t key, std::int64_t g) {
  return dot(l.sizes.head_dim, [&](std::int64_t i) { return l.qkv[static_cast<std::size_t>(query_at(l.sizes, n, h, i))]; },
             [&](std::int64_t i) { return l.qkv[static_cast<std::size_t>(key_at(l.sizes, key, g, i))]; });
}

// Tensor cores need not round what they add, so each addition errs by up to two units.
inline double tensor_gamma(std::int64_t additions) { return gamma(2.0 * static_cast<double>(additions)); }
// By how much e^(scale · score − most) errs relatively, `score` of magnitude `magnitude` and |score|, |most| ≤ largest:
// both scores, the three roundings of the exponent, and the hardware's 2^x.
inline double exponential_error(const Layer& l, double magnitude, double largest) {
  return 1.01 * (2 * l.scale * tensor_gamma(l.sizes.head_dim) * magnitude + 8 * unit_f32 * largest) + 0x1p-21;
}

inline void expect_forward(Layer& l) {
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

inline void expect_backward(Layer& l) {
  l.backward();
  const Sizes& sizes = l.sizes;
  std::vector<double> error(l.dqkv.size());
  const std::int64_t terms = sizes.positions * (sizes.heads / sizes.key_value_heads);
  // cuDNN rounds dk and dv of each head before it adds those of heads that share keys.
  const double of_head = l.by == By::cudnn && sizes.heads != sizes.key_value_heads ? 1.01 * unit_bf16 : 0;
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
        error[static_cast<std::size_t>(key_at(sizes, key, g, i))] += l.scale * q * (dscore_error + (tensor_gamma(terms) + of_head) * 1.01 * dscore);
        error[static_cast<std::size_t>(value_at(sizes, key, g, i))] +=
            1.01 * kept * p * std::abs(number(l.dout, row + i)) * (p_error + unit_bf16 + tensor_gamma(terms) + of_head);
      }
    }
  });
  expect_within(l.dqkv, [&](std::size_t i) { return error[i]; });
}

// Query s has a score with key s · 7919 mod (s + 1) that outweighs all others by more than an exponential can hold, where
// the scale is 0.25, or 0.5 for heads of 32.
inline std::int64_t one_key_of(std::int64_t s) { return s * 7919 % (s + 1); }
inline std::vector<double> of_one_key(const Sizes& sizes) {
  std::vector<double> qkv = small_integers(tokens_of(sizes) * sizes.row_stride, 4);
  const auto bit = [](std::int64_t position, std::int64_t i) { return position >> (i % 9) & 1 ? 8.0 : -8.0; };
  for (std::int64_t n = 0; n < tokens_of(sizes); ++n) {
    const std::int64_t s = n % sizes.positions;
    for (std::int64_t i = 0; i < sizes.head_dim; ++i) {
      for (std::int64_t h = 0; h < sizes.heads; ++h) qkv[static_cast<std::size_t>(query_at(sizes, n, h, i))] = bit(one_key_of(s), i);
      for (std::int64_t g = 0; g < sizes.key_value_heads; ++g) qkv[static_cast<std::size_t>(key_at(sizes, n, g, i))] = bit(s, i);
    }
  }
  return qkv;
}

}  // namespace shardbook::gpu_test
