// Layer norm and the sums over tokens equal their host references.
#include "tests/gpu/gpu_test.hpp"

namespace shardbook::gpu_test {
namespace {

using LayerNorm = OneGpu;

struct Norm {
  Norm(std::int64_t tokens, std::int64_t width, DType dtype)
      : tokens(tokens), width(width), dtype(dtype), x(normal(tokens * width, 2, 0.5), dtype),
        weight(normal(width, 0.2, 1), dtype), bias(normal(width), dtype), y(unwritten(tokens * width), dtype),
        mean(unwritten(tokens), DType::f32), rstd(unwritten(tokens), DType::f32), mean_of_sizes(means_of_sizes()) {}

  void forward() {
    run_both([&](bool gpu) {
      return kernels::LayerNormForwardArgs{x.at(gpu), weight.at(gpu), bias.at(gpu), y.at(gpu), mean.at(gpu), rstd.at(gpu),
                                           tokens, width, 1e-5f, gpu ? dtype : DType::f64};
    }, &kernels::host::layer_norm_forward, &kernels::cuda::layer_norm_forward);
  }
  std::vector<double> means_of_sizes() const {
    std::vector<double> means(static_cast<std::size_t>(tokens));
    for (std::int64_t i = 0; i < tokens * width; ++i) means[i / width] += std::abs(x[i]) / static_cast<double>(width);
    return means;
  }
  // Of a row's mean; and of its rstd, relatively: the squares' sum errs by its depth and by twice the
  // error of each x − mean, of which a relative error halves under the root.
  double mean_error(std::int64_t row) const { return gamma(row_depth + 2) * mean_of_sizes[row]; }
  double rstd_error(std::int64_t row) const {
    return gamma(row_depth + 8) + 2 * mean_error(row) * rstd[row] + unit_f32;
  }

  std::int64_t tokens, width;
  DType dtype;
  Numbers x, weight, bias, y, mean, rstd;
  std::vector<double> mean_of_sizes;
};

void expect_forward(std::int64_t tokens, std::int64_t width, DType dtype) {
  SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << tokens << " x " << width);
  Gpu::get().reset();
  Norm norm(tokens, width, dtype);
  norm.forward();
  expect_within(norm.mean, [&](std::size_t n) { return norm.mean_error(static_cast<std::int64_t>(n)); });
  expect_within(norm.rstd, [&](std::size_t n) { return norm.rstd[n] * norm.rstd_error(static_cast<std::int64_t>(n)); });
  expect_within(norm.y, [&](std::size_t i) {
    const std::int64_t row = static_cast<std::int64_t>(i) / width, column = static_cast<std::int64_t>(i) % width;
    const double normed = std::abs(norm.x[i] - norm.mean[row]) * norm.rstd[row], weight = std::abs(norm.weight[column]);
    return weight * (norm.mean_error(row) * norm.rstd[row] + normed * (norm.rstd_error(row) + 4 * unit_f32)) +
           2 * unit_f32 * std::abs(norm.bias[column]);
  });
}

// Σ_i |g_i| and so on of one row, in fp64.
struct RowSums {
  double gradient = 0, gradient_normed = 0;
};

void expect_input_gradient(std::int64_t tokens, std::int64_t width, DType dtype, bool around) {
  SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << tokens << " x " << width << (around ? ", around" : ""));
  Gpu::get().reset();
  Norm norm(tokens, width, dtype);
  // Statistics as the host has them, so that only the backward is on trial.
  kernels::host::layer_norm_forward({norm.x.at(false), norm.weight.at(false), norm.bias.at(false), norm.y.at(false),
                                     norm.mean.at(false), norm.rstd.at(false), tokens, width, 1e-5f, DType::f64});
  std::vector<double> means, rstds;
  for (std::int64_t n = 0; n < tokens; ++n) {
    means.push_back(norm.mean[n]);
    rstds.push_back(norm.rstd[n]);
  }
  Numbers mean(means, DType::f32), rstd(rstds, DType::f32), dy(normal(tokens * width), dtype),
      residual(normal(tokens * width), dtype), dx(unwritten(tokens * width), dtype);
  run_both([&](bool gpu) {
    return kernels::LayerNormInputGradientArgs{dy.at(gpu), norm.x.at(gpu), norm.weight.at(gpu), mean.at(gpu), rstd.at(gpu),
                                               around ? residual.at(gpu) : nullptr, dx.at(gpu), tokens, width,
                                               gpu ? dtype : DType::f64};
  }, &kernels::host::layer_norm_input_gradient, &kernels::cuda::layer_norm_input_gradient);

  const auto normed = [&](std::int64_t row, std::int64_t i) { return std::abs(norm.x[row * width + i] - mean[row]) * rstd[row]; };
  const auto gradient = [&](std::int64_t row, std::int64_t i) { return std::abs(dy[row * width + i] * norm.weight[i]); };
  std::vector<RowSums> means_of(tokens);
  for (std::int64_t row = 0; row < tokens; ++row) {
    for (std::int64_t i = 0; i < width; ++i) {
      means_of[row].gradient += gradient(row, i) / static_cast<double>(width);
      means_of[row].gradient_normed += gradient(row, i) * normed(row, i) / static_cast<double>(width);
    }
  }
  expect_within(dx, [&](std::size_t at) {
    const std::int64_t row = static_cast<std::int64_t>(at) / width, i = static_cast<std::int64_t>(at) % width;
    // dx = rstd · (g − mean(g) − x̂ · mean(g·x̂)): three terms, each with its own sum, and six roundings.
    const double terms = gradient(row, i) + means_of[row].gradient + normed(row, i) * means_of[row].gradient_normed;
    return rstd[row] * terms * gamma(row_depth + 12) + 2 * unit_f32 * std::abs(residual[at]);
  });
}

TEST_F(LayerNorm, ForwardEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t width : {1, 5, 33, 128, 768, 1000, 2048}) expect_forward(13, width, dtype);
  }
}
TEST_F(LayerNorm, ForwardOfLargeRowsEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t width : {8191, 8192, 12288}) expect_forward(70, width, dtype);
  }
}
TEST_F(LayerNorm, InputGradientEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t width : {1, 5, 33, 128, 768, 1000, 2048}) {
      expect_input_gradient(13, width, dtype, true);
      expect_input_gradient(13, width, dtype, false);
    }
  }
}
TEST_F(LayerNorm, InputGradientOfLargeRowsEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t width : {8191, 8192, 12288}) expect_input_gradient(70, width, dtype, true);
  }
}

// Rows of a block of rows, every eighth; the eight; an eighth of the blocks; the eight; what was there before.
double token_depth(std::int64_t tokens) {
  const double blocks = static_cast<double>(kernels::row_blocks(tokens));
  return std::ceil(std::ceil(static_cast<double>(tokens) / blocks) / 8) + 8 + std::ceil(blocks / 8) + 8 + 1;
}

void expect_token_sums(std::int64_t tokens, std::int64_t width, DType dtype, bool accumulate) {
  SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << tokens << " x " << width << (accumulate ? ", accumulate" : ""));
  Gpu::get().reset();
  Numbers dy(normal(tokens * width), dtype), x(normal(tokens * width), dtype), mean(normal(tokens), DType::f32),
      rstd(normal(tokens, 0.1, 1), DType::f32), dweight(normal(width), DType::f32), dbias(normal(width), DType::f32),
      bias_only(normal(width), DType::f32), scratch(unwritten(kernels::row_blocks(tokens) * 2 * width), DType::f32);
  const Numbers weight_before = dweight, bias_before = dbias, only_before = bias_only;
  run_both([&](bool gpu) {
    return kernels::LayerNormWeightGradientArgs{dy.at(gpu), x.at(gpu), mean.at(gpu), rstd.at(gpu), dweight.at(gpu), dbias.at(gpu),
                                                scratch.at(gpu), tokens, width, accumulate, gpu ? dtype : DType::f64};
  }, &kernels::host::layer_norm_weight_gradient, &kernels::cuda::layer_norm_weight_gradient);
  run_both([&](bool gpu) {
    return kernels::BiasGradientArgs{dy.at(gpu), bias_only.at(gpu), scratch.at(gpu), tokens, width, accumulate,
                                     gpu ? dtype : DType::f64};
  }, &kernels::host::bias_gradient, &kernels::cuda::bias_gradient);

  std::vector<double> size_of_weight(width), size_of_bias(width);
  for (std::int64_t n = 0; n < tokens; ++n) {
    for (std::int64_t i = 0; i < width; ++i) {
      size_of_bias[i] += std::abs(dy[n * width + i]);
      size_of_weight[i] += std::abs(dy[n * width + i] * rstd[n]) * (std::abs(x[n * width + i]) + std::abs(mean[n]));
    }
  }
  const double depth = token_depth(tokens);
  expect_within(dweight, [&](std::size_t i) { return gamma(depth + 3) * (size_of_weight[i] + std::abs(weight_before[i])); });
  expect_within(dbias, [&](std::size_t i) { return gamma(depth) * (size_of_bias[i] + std::abs(bias_before[i])); });
  expect_within(bias_only, [&](std::size_t i) { return gamma(depth) * (size_of_bias[i] + std::abs(only_before[i])); });
}

TEST_F(LayerNorm, WeightAndBiasGradientsEqualTheirHostReferences) {
  for (const DType dtype : both_types) {
    for (const std::int64_t tokens : {1, 7, 33, 1000}) {
      for (const std::int64_t width : {1, 31, 256, 776}) {
        expect_token_sums(tokens, width, dtype, false);
        expect_token_sums(tokens, width, dtype, true);
      }
    }
  }
}
TEST_F(LayerNorm, WeightAndBiasGradientsOfLargeBatchesEqualTheirHostReferences) {
  for (const DType dtype : both_types) expect_token_sums(8192, 2048, dtype, true);
}
TEST_F(LayerNorm, BiasGradientOfSmallIntegersIsExact) {
  const std::int64_t tokens = 5000, width = 264;
  Numbers dy(small_integers(tokens * width, 100), DType::bf16), dbias(small_integers(width, 1000), DType::f32),
      scratch(zeros(kernels::row_blocks(tokens) * width), DType::f32);
  run_both([&](bool gpu) {
    return kernels::BiasGradientArgs{dy.at(gpu), dbias.at(gpu), scratch.at(gpu), tokens, width, true, gpu ? DType::bf16 : DType::f64};
  }, &kernels::host::bias_gradient, &kernels::cuda::bias_gradient);
  expect_exact(dbias);
}

// ---- Both gradients in one pass -------------------------------------------------------------------

// Rows of a block of rows, at most all of them by one group of threads; sixteen groups; then as above.
double one_pass_depth(std::int64_t tokens) {
  const double blocks = static_cast<double>(kernels::row_blocks(tokens));
  return std::ceil(static_cast<double>(tokens) / blocks) + 16 + std::ceil(blocks / 8) + 8 + 1;
}

struct BothGradients {
  BothGradients(std::int64_t tokens, std::int64_t width, DType dtype, bool integers)
      : tokens(tokens), width(width), dtype(dtype), dy(draw(tokens * width, integers), dtype), x(draw(tokens * width, integers), dtype),
        weight(draw(width, integers), dtype), mean(draw(tokens, integers), DType::f32), rstd(integers ? std::vector<double>(tokens, 2) : normal(tokens, 0.1, 1), DType::f32),
        around(draw(tokens * width, integers), dtype), dx(unwritten(tokens * width), dtype), dweight(draw(width, integers), DType::f32),
        dbias(draw(width, integers), DType::f32), scratch(unwritten(kernels::row_blocks(tokens) * 2 * width), DType::f32) {}

  static std::vector<double> draw(std::int64_t count, bool integers) { return integers ? small_integers(count, 3) : normal(count); }
  void run(bool accumulate, bool round) {
    run_both([&](bool gpu) {
      const DType type = gpu ? dtype : DType::f64;
      return kernels::LayerNormBothGradientsArgs{
          {dy.at(gpu), x.at(gpu), weight.at(gpu), mean.at(gpu), rstd.at(gpu), round ? around.at(gpu) : nullptr, dx.at(gpu), tokens, width, type},
          {dy.at(gpu), x.at(gpu), mean.at(gpu), rstd.at(gpu), dweight.at(gpu), dbias.at(gpu), scratch.at(gpu), tokens, width, accumulate, type}};
    }, &kernels::host::layer_norm_both_gradients, &kernels::cuda::layer_norm_both_gradients);
  }
  double normed(std::int64_t row, std::int64_t i) const { return (std::abs(x[row * width + i]) + std::abs(mean[row])) * std::abs(rstd[row]); }
  double gradient(std::int64_t row, std::int64_t i) const { return std::abs(dy[row * width + i] * weight[i]); }

  std::int64_t tokens, width;
  DType dtype;
  Numbers dy, x, weight, mean, rstd, around, dx, dweight, dbias, scratch;
};

void expect_both(std::int64_t tokens, std::int64_t width, DType dtype, bool accumulate, bool round) {
  SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << tokens << " x " << width << (accumulate ? ", accumulate" : "") << (round ? ", around" : ""));
  Gpu::get().reset();
  BothGradients of(tokens, width, dtype, false);
  const Numbers weight_before = of.dweight, bias_before = of.dbias;
  of.run(accumulate, round);
  std::vector<double> size_of_weight(width), size_of_bias(width);
  std::vector<RowSums> means_of(tokens);
  for (std::int64_t n = 0; n < tokens; ++n) {
    for (std::int64_t i = 0; i < width; ++i) {
      size_of_bias[i] += std::abs(of.dy[n * width + i]);
      size_of_weight[i] += std::abs(of.dy[n * width + i]) * of.normed(n, i);
      means_of[n].gradient += of.gradient(n, i) / static_cast<double>(width);
      means_of[n].gradient_normed += of.gradient(n, i) * of.normed(n, i) / static_cast<double>(width);
    }
  }
  const double depth = one_pass_depth(tokens);
  expect_within(of.dweight, [&](std::size_t i) { return gamma(depth + 3) * (size_of_weight[i] + std::abs(weight_before[i])); });
  expect_within(of.dbias, [&](std::size_t i) { return gamma(depth) * (size_of_bias[i] + std::abs(bias_before[i])); });
  expect_within(of.dx, [&](std::size_t at) {
    const std::int64_t row = static_cast<std::int64_t>(at) / width, i = static_cast<std::int64_t>(at) % width;
    const double terms = of.gradient(row, i) + means_of[row].gradient + of.normed(row, i) * means_of[row].gradient_normed;
    return std::abs(of.rstd[row]) * terms * gamma(row_depth + 12) + 2 * unit_f32 * (round ? std::abs(of.around[at]) : 0);
  });
}

TEST_F(LayerNorm, BothGradientsEqualTheirHostReferences) {
  for (const DType dtype : both_types) {
    for (const std::int64_t tokens : {1, 33, 300}) {
      for (const std::int64_t width : {1, 31, 33, 256, 768, 1000, 2048}) expect_both(tokens, width, dtype, tokens == 33, width != 256);
    }
    // Two numbers of a row more a thread, and four
    for (const std::int64_t width : {4096, 8191, 8192, 12288}) expect_both(70, width, dtype, true, true);
    expect_both(8192, 2048, dtype, false, true);
  }
}
// x̂ is an even integer, and every sum over tokens an integer below 2^24.
TEST_F(LayerNorm, SumsOverTokensOfBothGradientsAreExactOnSmallIntegers) {
  for (const std::int64_t width : {264, 2048, 5000}) {
    Gpu::get().reset();
    BothGradients of(5000, width, DType::bf16, true);
    of.run(true, true);
    expect_exact(of.dweight);
    expect_exact(of.dbias);
  }
}
TEST_F(LayerNorm, BothGradientsMayOverwriteWhatTheyReadAndRepeatBitForBit) {
  BothGradients first(1000, 768, DType::bf16, false);
  Numbers dy(first.dy.from_gpu(), DType::bf16), dweight(unwritten(768), DType::f32), dbias(unwritten(768), DType::f32);
  first.run(false, true);
  const kernels::LayerNormBothGradientsArgs in_place{
      {dy.at(true), first.x.at(true), first.weight.at(true), first.mean.at(true), first.rstd.at(true), first.around.at(true), dy.at(true), 1000, 768, DType::bf16},
      {dy.at(true), first.x.at(true), first.mean.at(true), first.rstd.at(true), dweight.at(true), dbias.at(true), first.scratch.at(true), 1000, 768, false, DType::bf16}};
  Gpu::get().run(in_place, &kernels::host::layer_norm_both_gradients, &kernels::cuda::layer_norm_both_gradients);
  EXPECT_EQ(dy.from_gpu(), first.dx.from_gpu());
  EXPECT_EQ(dweight.from_gpu(), first.dweight.from_gpu());
  EXPECT_EQ(dbias.from_gpu(), first.dbias.from_gpu());
}

}  // namespace
}  // namespace shardbook::gpu_test
