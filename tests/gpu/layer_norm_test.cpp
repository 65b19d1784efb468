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
    for (const std::int64_t width : {8191, 8192, 12288, 16384}) expect_forward(70, width, dtype);
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
    for (const std::int64_t width : {8191, 8192, 12288, 16384}) expect_input_gradient(70, width, dtype, true);
  }
}

// Rows of a block of rows, every eighth; its eight warps; an eighth of the blocks; the eight; what was there before. Blocks of rows
// are as many as there is scratch for, or as `at_once` blocks of 32 packs of columns leave.
double token_depth(std::int64_t tokens, std::int64_t width, DType dtype, double at_once) {
  const std::int64_t pack = 16 / base::size_of(dtype), columns = 32 * (width % pack == 0 ? pack : 1);
  const double column_blocks = std::ceil(static_cast<double>(width) / static_cast<double>(columns));
  const double blocks = std::clamp(std::floor(at_once / column_blocks), 1.0, static_cast<double>(kernels::row_blocks(tokens)));
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
  const double depth = token_depth(tokens, width, dtype, 2 * 132), depth_alone = token_depth(tokens, width, dtype, 4 * 132);
  expect_within(dweight, [&](std::size_t i) { return gamma(depth + 3) * (size_of_weight[i] + std::abs(weight_before[i])); });
  expect_within(dbias, [&](std::size_t i) { return gamma(depth) * (size_of_bias[i] + std::abs(bias_before[i])); });
  expect_within(bias_only, [&](std::size_t i) { return gamma(depth_alone) * (size_of_bias[i] + std::abs(only_before[i])); });
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
// The second stage may be on its multiprocessors before the first has ended: it must not read what lay in the scratch before.
TEST_F(LayerNorm, SumsOverTokensThatFollowEachOtherOnOneScratchRepeatBitForBit) {
  const std::int64_t tokens = 4096, width = 768;
  Numbers first(normal(tokens * width), DType::bf16), other(normal(tokens * width), DType::bf16),
      scratch(unwritten(kernels::row_blocks(tokens) * width), DType::f32);
  const auto sum = [&](Numbers& dy, Numbers& dbias) {
    const kernels::BiasGradientArgs args{dy.at(true), dbias.at(true), scratch.at(true), tokens, width, false, DType::bf16};
    Gpu::get().device().launch(Gpu::get().stream(), program::OpDesc("test", program::OpKind::reduction, DType::f32), args,
                               &kernels::host::bias_gradient, &kernels::cuda::bias_gradient);
  };
  Numbers of_first(unwritten(width), DType::f32), of_other(unwritten(width), DType::f32);
  sum(first, of_first);
  Gpu::get().device().synchronize();
  sum(other, of_other);
  Gpu::get().device().synchronize();
  ASSERT_NE(of_first.from_gpu(), of_other.from_gpu());
  std::vector<Numbers> again;
  for (int i = 0; i < 32; ++i) again.emplace_back(unwritten(width), DType::f32);
  for (int i = 0; i < 32; ++i) sum(i % 2 == 0 ? first : other, again[static_cast<std::size_t>(i)]);
  Gpu::get().device().synchronize();
  for (int i = 0; i < 32; ++i) EXPECT_EQ(again[static_cast<std::size_t>(i)].from_gpu(), (i % 2 == 0 ? of_first : of_other).from_gpu()) << "sum " << i;
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

}  // namespace
}  // namespace shardbook::gpu_test
