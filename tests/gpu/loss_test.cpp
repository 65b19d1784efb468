// Cross entropy, the sums over a shard, clipping and AdamW equal their host references.
#include "tests/gpu/gpu_test.hpp"

namespace shardbook::gpu_test {
namespace {

using Loss = OneGpu;
using Optimizer = OneGpu;

// Depth of a sum of n numbers by a block of `threads`.
double block_depth(std::int64_t n, int threads) { return std::ceil(static_cast<double>(n) / threads) + 8 + 10; }

void expect_cross_entropy(std::int64_t tokens, std::int64_t vocab, std::int32_t vocab_begin, DType dtype) {
  SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << tokens << " x " << vocab << " from " << vocab_begin);
  Gpu::get().reset();
  Numbers logit(normal(tokens * vocab, 3), dtype), row_max(unwritten(tokens), DType::f32), sums(unwritten(2 * tokens), DType::f32),
      loss(unwritten(tokens), DType::f32);
  const Numbers before = logit;
  // Targets within this rank's part, before it and behind it.
  std::uniform_int_distribution<int> draw(0, static_cast<int>(vocab + 2 * vocab_begin));
  std::vector<std::int32_t> targets;
  for (std::int64_t n = 0; n < tokens; ++n) targets.push_back(draw(generator()));
  targets[0] = vocab_begin;
  targets[static_cast<std::size_t>(tokens) - 1] = vocab_begin + static_cast<std::int32_t>(vocab) - 1;
  Integers target(targets);

  run_both([&](bool gpu) { return kernels::CrossEntropyMaxArgs{logit.at(gpu), row_max.at(gpu), tokens, vocab, gpu ? dtype : DType::f64}; },
           &kernels::host::cross_entropy_max, &kernels::cuda::cross_entropy_max);
  expect_exact(row_max);

  run_both([&](bool gpu) {
    return kernels::CrossEntropySumsArgs{logit.at(gpu), row_max.at(gpu), target.at(gpu), sums.at(gpu), tokens, vocab, vocab_begin,
                                         gpu ? dtype : DType::f64};
  }, &kernels::host::cross_entropy_sums, &kernels::cuda::cross_entropy_sums);
  // e^(l − max) errs by one rounding of l − max and by the exponential's 2 + 1.173|l − max| units.
  std::vector<double> widest(tokens);
  for (std::int64_t i = 0; i < tokens * vocab; ++i) {
    widest[i / vocab] = std::max(widest[i / vocab], row_max[i / vocab] - before[i]);
  }
  const auto error_of_exponential = [&](std::int64_t n) { return (widest[n] + 2 * (2 + 1.173 * widest[n])) * unit_f32; };
  const double depth = block_depth(vocab, 512);
  expect_within(sums, [&](std::size_t i) {
    const std::int64_t n = static_cast<std::int64_t>(i) % tokens;
    if (i >= static_cast<std::size_t>(tokens)) return unit_f32 * std::abs(sums[i]);
    return sums[i] * (error_of_exponential(n) + gamma(depth));
  });

  const float scale = 0.25f;
  run_both([&](bool gpu) {
    return kernels::CrossEntropyGradientArgs{logit.at(gpu), row_max.at(gpu), sums.at(gpu), target.at(gpu), loss.at(gpu), tokens,
                                             vocab, vocab_begin, scale, gpu ? dtype : DType::f64};
  }, &kernels::host::cross_entropy_gradient, &kernels::cuda::cross_entropy_gradient);
  expect_within(loss, [&](std::size_t n) {
    const std::int64_t row = static_cast<std::int64_t>(n);
    return error_of_exponential(row) + gamma(depth) + 4 * unit_f32 * (std::abs(std::log(sums[n])) + std::abs(sums[n + tokens]));
  });
  expect_within(logit, [&](std::size_t i) {
    const std::int64_t n = static_cast<std::int64_t>(i) / vocab;
    const double probability = std::exp(before[i] - row_max[n]) / sums[n] * scale;
    const bool is_target = static_cast<std::int64_t>(i) % vocab == target[n] - vocab_begin;
    return probability * (2 * error_of_exponential(n) + gamma(depth + 4)) + (is_target ? unit_f32 * scale : 0);
  });
}

TEST_F(Loss, CrossEntropyEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t vocab : {1, 7, 256, 1003}) {
      expect_cross_entropy(9, vocab, 0, dtype);
      expect_cross_entropy(9, vocab, 11, dtype);
    }
  }
}
TEST_F(Loss, CrossEntropyOfLargeVocabularyEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    expect_cross_entropy(33, 50304, 0, dtype);
    expect_cross_entropy(33, 50304 / 4, 2 * 50304 / 4, dtype);
  }
}

// In one kernel as in three, to the bit: of rows that shared memory holds, and of those of which it holds a part.
TEST_F(Loss, CrossEntropyInOneIsThatInThreeStepsToTheBit) {
  for (const DType dtype : both_types) {
    for (const std::int64_t vocab : {1, 7, 256, 1003, 28672, 50257, 50304, 128256}) {
      SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << vocab);
      Gpu::get().reset();
      const std::int64_t tokens = 9;
      Numbers in_one(normal(tokens * vocab, 3), dtype), in_steps = in_one, row_max(unwritten(tokens), DType::f32), sums(unwritten(2 * tokens), DType::f32),
          loss(unwritten(tokens), DType::f32), loss_of_steps = loss;
      std::vector<std::int32_t> targets;
      std::uniform_int_distribution<int> draw(0, static_cast<int>(vocab) - 1);
      for (std::int64_t n = 0; n < tokens; ++n) targets.push_back(draw(generator()));
      targets.front() = 0;
      targets.back() = static_cast<std::int32_t>(vocab) - 1;
      Integers target(targets);
      const float scale = 0.25f;
      const auto type = [&](bool gpu) { return gpu ? dtype : DType::f64; };
      run_both([&](bool gpu) { return kernels::CrossEntropyArgs{in_one.at(gpu), target.at(gpu), loss.at(gpu), tokens, vocab, scale, type(gpu)}; },
               &kernels::host::cross_entropy, &kernels::cuda::cross_entropy);
      run_both([&](bool gpu) { return kernels::CrossEntropyMaxArgs{in_steps.at(gpu), row_max.at(gpu), tokens, vocab, type(gpu)}; },
               &kernels::host::cross_entropy_max, &kernels::cuda::cross_entropy_max);
      run_both([&](bool gpu) { return kernels::CrossEntropySumsArgs{in_steps.at(gpu), row_max.at(gpu), target.at(gpu), sums.at(gpu), tokens, vocab, 0, type(gpu)}; },
               &kernels::host::cross_entropy_sums, &kernels::cuda::cross_entropy_sums);
      run_both([&](bool gpu) {
        return kernels::CrossEntropyGradientArgs{in_steps.at(gpu), row_max.at(gpu), sums.at(gpu), target.at(gpu), loss_of_steps.at(gpu), tokens, vocab, 0, scale, type(gpu)};
      }, &kernels::host::cross_entropy_gradient, &kernels::cuda::cross_entropy_gradient);
      EXPECT_EQ(in_one.from_gpu(), in_steps.from_gpu());
      EXPECT_EQ(loss.from_gpu(), loss_of_steps.from_gpu());
      for (std::int64_t n = 0; n < tokens; ++n) EXPECT_EQ(loss[static_cast<std::size_t>(n)], loss_of_steps[static_cast<std::size_t>(n)]);   // the host's, in fp64
    }
  }
}

TEST_F(Loss, SumHasOneOrderAndIsExactOnSmallIntegers) {
  for (const std::int64_t n : {1, 31, 1024, 8192, 50001}) {
    SCOPED_TRACE(n);
    Gpu::get().reset();
    Numbers value(small_integers(n, 100), DType::f32), total(std::vector<double>{5}, DType::f32);
    run_both([&](bool gpu) { return kernels::SumArgs{value.at(gpu), total.at(gpu), n, 0.5f, true, gpu ? DType::f32 : DType::f64}; },
             &kernels::host::sum, &kernels::cuda::sum);
    expect_exact(total);
    Numbers random(normal(n), DType::f32), fresh(unwritten(1), DType::f32), again(unwritten(1), DType::f32);
    const auto sum_of_random = [&](Numbers& to) {
      run_both([&](bool gpu) { return kernels::SumArgs{random.at(gpu), to.at(gpu), n, 1, false, gpu ? DType::f32 : DType::f64}; },
               &kernels::host::sum, &kernels::cuda::sum);
    };
    sum_of_random(fresh);
    sum_of_random(again);
    EXPECT_EQ(fresh.from_gpu(), again.from_gpu());
    double sizes = 0;
    for (std::int64_t i = 0; i < n; ++i) sizes += std::abs(random[i]);
    expect_within(fresh, [&](std::size_t) { return gamma(block_depth(n, 1024)) * sizes; });
  }
}

TEST_F(Optimizer, SumOfSquaresCountsOnlyItsRangeAndOnlyThisShard) {
  struct Case {
    std::int64_t shard_begin, elements, counted_begin, counted_end;
  };
  const Case cases[] = {{0, 1000, 0, 1000},   {0, 1000, 3, 998},    {500, 1003, 0, 900},   {500, 1003, 700, 5000},
                        {500, 100, 0, 500},   {500, 100, 600, 700}, {10, 300000, 11, 300001}, {0, 1, 0, 1}};
  for (const Case& one : cases) {
    for (const int shift : {0, 4}) {
      SCOPED_TRACE(testing::Message() << "shard " << one.shard_begin << " + " << one.elements << ", counted " << one.counted_begin
                                      << " to " << one.counted_end << ", shifted by " << shift);
      Gpu::get().reset();
      Numbers gradient(small_integers(one.elements, 5), DType::f32, shift), total(std::vector<double>{3}, DType::f32),
          scratch(unwritten(kernels::square_blocks), DType::f32);
      run_both([&](bool gpu) {
        return kernels::SumOfSquaresArgs{gradient.at(gpu), total.at(gpu), scratch.at(gpu), one.shard_begin, one.elements,
                                         one.counted_begin, one.counted_end, true, gpu ? DType::f32 : DType::f64};
      }, &kernels::host::sum_of_squares, &kernels::cuda::sum_of_squares);
      expect_exact(total);
    }
  }
}

TEST_F(Optimizer, ClipFactorEqualsItsHostReference) {
  for (const float clip : {0.0f, 1.0f, 100.0f}) {
    Numbers total(std::vector<double>{42.25}, DType::f32), factor(unwritten(1), DType::f32), norm(unwritten(1), DType::f32);
    run_both([&](bool gpu) { return kernels::ClipFactorArgs{total.at(gpu), factor.at(gpu), norm.at(gpu), clip, gpu ? DType::f32 : DType::f64}; },
             &kernels::host::clip_factor, &kernels::cuda::clip_factor);
    expect_exact(norm);
    expect_within(factor, [&](std::size_t) { return gamma(3) * factor[0]; });
  }
}

TEST_F(Optimizer, AdamWEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t n : {1, 5, 1024, 10007}) {
      for (const std::int64_t step : {1, 1000}) {
        SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << n << ", step " << step);
        Gpu::get().reset();
        std::vector<double> squares = normal(n, 0.01);
        for (double& square : squares) square *= square;
        Numbers master(normal(n), DType::f32), first(normal(n, 0.01), DType::f32), second(squares, DType::f32),
            gradient(normal(n, 0.1), DType::f32), parameter(unwritten(n), dtype), factor(std::vector<double>{0.5}, DType::f32);
        const Numbers old_master = master, old_first = first;
        const bool copies = n != 1024;   // or there is none to write
        const float rate = 1e-2f, beta1 = 0.9f, beta2 = 0.95f;
        run_both([&](bool gpu) {
          return kernels::AdamWArgs{master.at(gpu), first.at(gpu), second.at(gpu), gradient.at(gpu), copies ? parameter.at(gpu) : nullptr, factor.at(gpu),
                                    7, n, 7 + n / 2, rate, beta1, beta2, 1e-8f, 0.1f, step, gpu ? dtype : DType::f64};
        }, &kernels::host::adam_w, &kernels::cuda::adam_w);
        // Moments: three products and a sum of numbers of f32. Those of a sum of one sign err relatively.
        const auto first_terms = [&](std::size_t i) { return 0.9 * std::abs(old_first[i]) + 0.1 * std::abs(0.5 * gradient[i]); };
        expect_within(first, [&](std::size_t i) { return gamma(4) * first_terms(i); });
        expect_within(second, [&](std::size_t i) { return gamma(6) * second[i]; });
        // The update: m's error, and relative errors of v (halved by the root), root, product, sum, quotient.
        const double corrected = rate / (1 - std::pow(double{beta1}, double(step)));
        const auto master_error = [&](std::size_t i) {
          const double root = std::sqrt(second[i]) / std::sqrt(1 - std::pow(double{beta2}, double(step))) + 1e-8;
          return corrected * first_terms(i) / root * gamma(16) + 3 * unit_f32 * std::abs(old_master[i]);
        };
        expect_within(master, master_error);
        if (copies) expect_within(parameter, master_error);
      }
    }
  }
}

}  // namespace
}  // namespace shardbook::gpu_test
