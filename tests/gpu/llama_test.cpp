// Norm by RMS, SwiGLU and rotary positions equal their host references.
#include "tests/gpu/gpu_test.hpp"

namespace shardbook::gpu_test {
namespace {

using RmsNorm = OneGpu;
using SwiGlu = OneGpu;
using Rotary = OneGpu;

void expect_rms_norm(std::int64_t tokens, std::int64_t width, DType dtype, bool around) {
  SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << tokens << " x " << width << (around ? ", around" : ""));
  Gpu::get().reset();
  Numbers x(normal(tokens * width, 2, 0.5), dtype), weight(normal(width, 0.2, 1), dtype), y(unwritten(tokens * width), dtype),
      rstd(unwritten(tokens), DType::f32);
  run_both([&](bool gpu) {
    return kernels::RmsNormForwardArgs{x.at(gpu), weight.at(gpu), y.at(gpu), rstd.at(gpu), tokens, width, 1e-5f, gpu ? dtype : DType::f64};
  }, &kernels::host::rms_norm_forward, &kernels::cuda::rms_norm_forward);
  // Half of the relative error of a sum of squares, and the root and division; then two products.
  const double rstd_error = gamma(row_depth + 8);
  expect_within(rstd, [&](std::size_t n) { return rstd[n] * rstd_error; });
  expect_within(y, [&](std::size_t i) { return std::abs(y[i]) * (rstd_error + 3 * unit_f32); });

  // Backward from the statistics that the host has.
  std::vector<double> host_rstd;
  for (std::int64_t n = 0; n < tokens; ++n) host_rstd.push_back(rstd[static_cast<std::size_t>(n)]);
  Numbers known(host_rstd, DType::f32), dy(normal(tokens * width), dtype), residual(normal(tokens * width), dtype), dx(unwritten(tokens * width), dtype);
  run_both([&](bool gpu) {
    return kernels::RmsNormInputGradientArgs{dy.at(gpu), x.at(gpu), weight.at(gpu), known.at(gpu), around ? residual.at(gpu) : nullptr,
                                             dx.at(gpu), tokens, width, gpu ? dtype : DType::f64};
  }, &kernels::host::rms_norm_input_gradient, &kernels::cuda::rms_norm_input_gradient);
  const auto normed = [&](std::int64_t at) { return std::abs(x[static_cast<std::size_t>(at)]) * known[static_cast<std::size_t>(at / width)]; };
  const auto gradient = [&](std::int64_t at) { return std::abs(dy[static_cast<std::size_t>(at)] * weight[static_cast<std::size_t>(at % width)]); };
  std::vector<double> mean(static_cast<std::size_t>(tokens));
  for (std::int64_t at = 0; at < tokens * width; ++at) mean[static_cast<std::size_t>(at / width)] += gradient(at) * normed(at) / static_cast<double>(width);
  expect_within(dx, [&](std::size_t i) {
    const std::int64_t at = static_cast<std::int64_t>(i);
    const std::size_t row = i / static_cast<std::size_t>(width);
    return known[row] * (gradient(at) + normed(at) * mean[row]) * gamma(row_depth + 10) + 2 * unit_f32 * std::abs(residual[i]);
  });
}

TEST_F(RmsNorm, EqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t width : {1, 5, 33, 128, 1000, 4096, 8191}) {
      expect_rms_norm(13, width, dtype, true);
      expect_rms_norm(13, width, dtype, false);
    }
  }
}

TEST_F(RmsNorm, WeightGradientOfSmallIntegersIsExactAndAddsOnlyWhenToldTo) {
  for (const DType dtype : both_types) {
    for (const std::int64_t tokens : {1, 77, 5000}) {
      for (const bool accumulate : {false, true}) {
        Gpu::get().reset();
        const std::int64_t width = 72;
        Numbers dy(small_integers(tokens * width, 4), dtype), x(small_integers(tokens * width, 4), dtype), rstd(std::vector<double>(static_cast<std::size_t>(tokens), 2), DType::f32),
            dweight(small_integers(width, 100), DType::f32), scratch(unwritten(kernels::row_blocks(tokens) * width), DType::f32);
        run_both([&](bool gpu) {
          return kernels::RmsNormWeightGradientArgs{dy.at(gpu), x.at(gpu), rstd.at(gpu), dweight.at(gpu), scratch.at(gpu), tokens, width,
                                                    accumulate, gpu ? dtype : DType::f64};
        }, &kernels::host::rms_norm_weight_gradient, &kernels::cuda::rms_norm_weight_gradient);
        expect_exact(dweight);
      }
    }
  }
}

TEST_F(SwiGlu, EqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t width : {1, 7, 64, 3584}) {
      SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << width);
      Gpu::get().reset();
      const std::int64_t tokens = 19;
      Numbers both(normal(2 * tokens * width, 3), dtype), y(unwritten(tokens * width), dtype), dy(normal(tokens * width), dtype), dup(unwritten(2 * tokens * width), dtype);
      run_both([&](bool gpu) { return kernels::SwiGluForwardArgs{both.at(gpu), y.at(gpu), tokens, width, gpu ? dtype : DType::f64}; },
               &kernels::host::swiglu_forward, &kernels::cuda::swiglu_forward);
      run_both([&](bool gpu) { return kernels::SwiGluBackwardArgs{both.at(gpu), dy.at(gpu), dup.at(gpu), tokens, width, gpu ? dtype : DType::f64}; },
               &kernels::host::swiglu_backward, &kernels::cuda::swiglu_backward);
      // σ(x) by the fast exponential: 2 + 1.173|x| units, and 2^-21 of the division; 1 − σ errs by as much as σ.
      const auto sigmoid_error = [](double x) { return (4 + 2.4 * std::abs(x)) * unit_f32 + 0x1p-20; };
      const auto place = [&](std::size_t i) { return i / static_cast<std::size_t>(width) * 2 * static_cast<std::size_t>(width) + i % static_cast<std::size_t>(width); };
      expect_within(y, [&](std::size_t i) { return std::abs(y[i]) * (sigmoid_error(both[place(i)]) + 3 * unit_f32); });
      expect_within(dup, [&](std::size_t i) {
        const std::size_t wide = 2 * static_cast<std::size_t>(width), column = i % wide, token = i / wide;
        const std::size_t at = column % static_cast<std::size_t>(width);
        const double gate = both[token * wide + at], up = both[token * wide + static_cast<std::size_t>(width) + at];
        const double gradient = std::abs(dy[token * static_cast<std::size_t>(width) + at]), s = 1 / (1 + std::exp(-gate));
        if (column >= static_cast<std::size_t>(width)) return std::abs(dup[i]) * (sigmoid_error(gate) + 3 * unit_f32);
        return gradient * std::abs(up) * s * (1 + std::abs(gate)) * (3 * sigmoid_error(gate) + 6 * unit_f32);
      });
    }
  }
}

TEST_F(Rotary, EqualsItsHostReferenceBothWays) {
  for (const DType dtype : both_types) {
    for (const std::int64_t head_dim : {2, 6, 64, 96, 128}) {
      for (const float theta : {10000.0f, 500000.0f}) {
        SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", head_dim " << head_dim);
        Gpu::get().reset();
        const std::int64_t sequences = 2, positions = 300, heads = 5, row = 7 * head_dim;
        for (const bool inverse : {false, true}) {
          Numbers turned(normal(sequences * positions * row), dtype);
          const Numbers start = turned;
          run_both([&](bool gpu) {
            return kernels::RotateArgs{turned.at(gpu), sequences, positions, heads, head_dim, row, theta, inverse, gpu ? dtype : DType::f64};
          }, &kernels::host::rotate, &kernels::cuda::rotate);
          expect_within(turned, [&](std::size_t i) {
            const std::int64_t column = static_cast<std::int64_t>(i) % row, token = static_cast<std::int64_t>(i) / row;
            if (column >= heads * head_dim) return 0.0;
            const std::int64_t within = column % head_dim, half = head_dim / 2;
            const std::size_t other = static_cast<std::size_t>(within < half ? static_cast<std::int64_t>(i) + half : static_cast<std::int64_t>(i) - half);
            // The exponent of the frequency errs by 4 units of itself, the power by 2 more, the angle by one; sine and cosine by 2.
            const double exponent = static_cast<double>(within % half) / static_cast<double>(half) * std::log2(theta);
            const double angle = static_cast<double>(token % positions) * std::exp2(-exponent);
            const double error = angle * (4 * exponent * 0.6932 + 4) * unit_f32 + 4 * unit_f32;
            return (std::abs(start[i]) + std::abs(start[other])) * (error + 3 * unit_f32);
          });
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardbook::gpu_test
