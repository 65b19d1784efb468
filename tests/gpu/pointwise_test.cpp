// Ops that treat every number by itself equal their host references.
#include "engine/kernels/dropout.hpp"
#include "tests/gpu/gpu_test.hpp"

namespace shardbook::gpu_test {
namespace {

using Pointwise = OneGpu;

// 2u of GELU: the argument of its exponential.
double twice_u(double x) { return 2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x); }

// e^z errs by its argument's error (6 roundings) and its own: 2 + 1.173|z| units in the last place for the
// fast one (CUDA C++ Programming Guide, "Intrinsic Functions"); sum and division add 5 more.
double relative_error_of_gelu(double x) { return (6 * std::abs(twice_u(x)) + 2 * (2 + 1.173 * std::abs(twice_u(x))) + 8) * unit_f32; }

// Where e^(−2u) passes 2^126 the fast division gives 0 for 1 / (1 + e^(−2u)), and where it passes f32's range any
// division does: the sigmoid errs by as much as it is, at most.
constexpr double underflow_of_sigmoid = 0x1p-126;

const std::int64_t sizes[] = {1, 7, 1023, 4096, 100003};

TEST_F(Pointwise, GeluEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t n : sizes) {
      SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << n);
      Numbers x(normal(n, 3), dtype), y(unwritten(n), dtype);
      run_both([&](bool gpu) { return kernels::GeluForwardArgs{x.at(gpu), y.at(gpu), n, gpu ? dtype : DType::f64}; },
               &kernels::host::gelu_forward, &kernels::cuda::gelu_forward);
      expect_within(y, [&](std::size_t i) { return std::abs(y[i]) * relative_error_of_gelu(x[i]) + std::abs(x[i]) * underflow_of_sigmoid; });
    }
  }
}

TEST_F(Pointwise, GeluBackwardEqualsItsHostReference) {
  for (const DType dtype : both_types) {
    for (const std::int64_t n : sizes) {
      SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << n);
      Numbers x(normal(n, 3), dtype), dy(normal(n), dtype), dx(unwritten(n), dtype);
      run_both([&](bool gpu) { return kernels::GeluBackwardArgs{x.at(gpu), dy.at(gpu), dx.at(gpu), n, gpu ? dtype : DType::f64}; },
               &kernels::host::gelu_backward, &kernels::cuda::gelu_backward);
      expect_within(dx, [&](std::size_t i) {
        // dx = dy · (s + x s (1 − s) 2u'): both terms err like s, and 1 − s by as much as s itself.
        const double s = 1 / (1 + std::exp(-twice_u(x[i])));
        const double slope = 2 * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x[i] * x[i]);
        const double terms = s + std::abs(x[i]) * s * slope;
        const double underflow = (1 + std::abs(x[i]) * slope) * underflow_of_sigmoid;
        return std::abs(dy[i]) * (terms * (2 * relative_error_of_gelu(x[i]) + 8 * unit_f32) + underflow);
      });
    }
  }
}

TEST_F(Pointwise, AddBiasResidualAddsInPlaceAndWithoutABias) {
  for (const DType dtype : both_types) {
    for (const std::int64_t width : {1, 30, 64, 2048}) {
      for (const bool biased : {false, true}) {
        SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << width << (biased ? ", bias" : ""));
        const std::int64_t tokens = 19;
        Numbers residual(normal(tokens * width), dtype), x(normal(tokens * width), dtype), bias(normal(width), dtype);
        const Numbers before_r = residual, before_x = x;
        run_both([&](bool gpu) {
          return kernels::AddBiasResidualArgs{residual.at(gpu), x.at(gpu), biased ? bias.at(gpu) : nullptr, residual.at(gpu),
                                              tokens, width, gpu ? dtype : DType::f64};
        }, &kernels::host::add_bias_residual, &kernels::cuda::add_bias_residual);
        expect_within(residual, [&](std::size_t i) {
          return gamma(2) * (std::abs(before_r[i]) + std::abs(before_x[i]) + std::abs(bias[i % width]));
        });
      }
    }
  }
}

// Of the whole tensor 3 runs of 40 or 37 numbers, begun somewhere, or one run: packs of 16 bytes, and numbers by themselves.
TEST_F(Pointwise, DropoutDropsWhatTheHostDropsAndScalesTheRest) {
  for (const DType dtype : both_types) {
    for (const std::int64_t run : {40, 37, 1 << 20}) {
      for (const std::int64_t n : {std::int64_t{3} * 40, std::int64_t{100003}, std::int64_t{100004}}) {
        SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", runs of " << run << ", " << n);
        // From an odd element on, or an even one: draws come in pairs
        const kernels::DropoutMask mask = kernels::dropout_mask(0.3, 99, (std::int64_t{1} << 33) + n % 2, run, 1000);
        Numbers x(normal(n), dtype), y(unwritten(n), dtype);
        run_both([&](bool gpu) { return kernels::DropoutArgs{x.at(gpu), y.at(gpu), n, mask, gpu ? dtype : DType::f64}; },
                 &kernels::host::dropout, &kernels::cuda::dropout);
        expect_within(y, [&](std::size_t i) { return std::abs(x[i]) * mask.scale * unit_f32; });   // what is dropped is 0 on both
        const std::vector<double> got = y.from_gpu();
        for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i] == 0, y[i] == 0 || x[i] == 0) << "number " << i;
      }
    }
  }
}

TEST_F(Pointwise, BiasDropoutResidualEqualsItsHostReferenceInPlaceAndWithoutABias) {
  for (const DType dtype : both_types) {
    for (const std::int64_t width : {1, 30, 64, 2048}) {
      for (const bool biased : {false, true}) {
        SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << width << (biased ? ", bias" : ""));
        const std::int64_t tokens = 19;
        const kernels::DropoutMask mask = kernels::dropout_mask(0.3, 7, 12345);
        Numbers residual(normal(tokens * width), dtype), x(normal(tokens * width), dtype), bias(normal(width), dtype);
        const Numbers before_r = residual, before_x = x;
        run_both([&](bool gpu) {
          return kernels::BiasDropoutResidualArgs{residual.at(gpu), x.at(gpu), biased ? bias.at(gpu) : nullptr, residual.at(gpu),
                                                  tokens, width, mask, gpu ? dtype : DType::f64};
        }, &kernels::host::bias_dropout_residual, &kernels::cuda::bias_dropout_residual);
        expect_within(residual, [&](std::size_t i) {
          return gamma(3) * (std::abs(before_r[i]) + mask.scale * (std::abs(before_x[i]) + std::abs(bias[i % width])));
        });
      }
    }
  }
}

// In f32, and rounded once: the bound knows no rounding of the type between two parts.
TEST_F(Pointwise, SumPartsRoundsOnce) {
  for (const DType dtype : both_types) {
    for (const std::int64_t elements : {1, 30, 64, 4096}) {
      for (const std::int64_t parts : {2, 3, 8}) {
        SCOPED_TRACE(testing::Message() << base::name_of(dtype) << ", " << parts << " parts of " << elements);
        Numbers from(normal(parts * elements), dtype), sum(unwritten(elements), dtype);
        run_both([&](bool gpu) { return kernels::SumPartsArgs{from.at(gpu), sum.at(gpu), elements, parts, gpu ? dtype : DType::f64}; },
                 &kernels::host::sum_parts, &kernels::cuda::sum_parts);
        expect_within(sum, [&](std::size_t i) {
          double size = 0;
          for (std::int64_t part = 0; part < parts; ++part) size += std::abs(from[static_cast<std::size_t>(part * elements) + i]);
          return gamma(static_cast<int>(parts) - 1) * size;
        });
      }
    }
  }
}

// Many at once, behind a fill of 256 MiB that gives the host time to issue them: no less than their sum.
TEST_F(Pointwise, APauseKeepsItsStreamForAsLongAsItIsTold) {
  constexpr int pauses = 50;
  float ms = 0;
  struct Args { void* to; std::int64_t many; float* ms; };
  const std::int64_t many = std::int64_t{64} << 20;
  Gpu::get().run(Args{Gpu::get().take(many * 4), many, &ms}, +[](const Args&) {}, +[](const Args& args, const device::CudaQueue& queue) {
    cudaEvent_t events[2];
    for (cudaEvent_t& event : events) SHARDBOOK_CUDA(cudaEventCreate(&event), "test");
    const auto stream = static_cast<cudaStream_t>(queue.stream);
    for (int i = 0; i < 10; ++i) kernels::cuda::fill({args.to, args.many, 1, DType::f32}, queue);
    SHARDBOOK_CUDA(cudaEventRecord(events[0], stream), "test");
    for (int i = 0; i < pauses; ++i) kernels::cuda::pause({args.to, 8, 0, DType::f32}, queue);
    SHARDBOOK_CUDA(cudaEventRecord(events[1], stream), "test");
    SHARDBOOK_CUDA(cudaEventSynchronize(events[1]), "test");
    SHARDBOOK_CUDA(cudaEventElapsedTime(args.ms, events[0], events[1]), "test");
    for (cudaEvent_t event : events) SHARDBOOK_CUDA(cudaEventDestroy(event), "test");
  });
  EXPECT_GE(1e6 * static_cast<double>(ms), static_cast<double>(pauses * program::pause_ns));
}

TEST_F(Pointwise, AccumulateWidenFillPauseAndCastAreExact) {
  for (const std::int64_t n : sizes) {
    for (const int shift : {0, 4}) {
      SCOPED_TRACE(testing::Message() << n << ", shifted by " << shift);
      Numbers from(small_integers(n, 100000), DType::f32, shift), into(small_integers(n, 100000), DType::f32, shift);
      run_both([&](bool gpu) { return kernels::AccumulateArgs{from.at(gpu), into.at(gpu), n, gpu ? DType::f32 : DType::f64}; },
               &kernels::host::accumulate, &kernels::cuda::accumulate);
      expect_exact(into);
      for (const DType dtype : both_types) {
        Numbers filled(unwritten(n), dtype, shift);
        run_both([&](bool gpu) { return kernels::FillArgs{filled.at(gpu), n, -2.5f, gpu ? dtype : DType::f64}; },
                 &kernels::host::fill, &kernels::cuda::fill);
        expect_exact(filled);
        Numbers behind_a_pause(unwritten(n), dtype, shift);
        run_both([&](bool gpu) { return kernels::FillArgs{behind_a_pause.at(gpu), n, 0, gpu ? dtype : DType::f64}; },
                 &kernels::host::fill, &kernels::cuda::pause);
        expect_exact(behind_a_pause);
        for (const bool add : {false, true}) {
          Numbers narrow(small_integers(n, 200), dtype, shift), wide(small_integers(n, 100000), DType::f32, shift);
          run_both([&](bool gpu) { return kernels::WidenArgs{narrow.at(gpu), wide.at(gpu), n, add, gpu ? dtype : DType::f64}; },
                   &kernels::host::widen, &kernels::cuda::widen);
          expect_exact(wide);
        }
        Numbers source(normal(n), DType::f32, shift), target(unwritten(n), dtype, shift);
        run_both([&](bool gpu) { return kernels::CastArgs{source.at(gpu), target.at(gpu), n, gpu ? dtype : DType::f64}; },
                 &kernels::host::cast, &kernels::cuda::cast);
        const std::vector<double> got = target.from_gpu();
        for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], rounded(source[i], dtype)) << "number " << i;
      }
    }
  }
}

TEST_F(Pointwise, InitNormalDrawsTheBitsThatTheHostDraws) {
  // A shard of rows 5.. and columns 7..18 of a matrix of 40 columns, begun in the middle of a row.
  const std::int64_t columns = 11, begin = 4, n = 200;
  for (const float mean : {0.0f, 0.3f}) {
    Numbers drawn(unwritten(n), DType::f32);
    run_both([&](bool gpu) {
      return kernels::InitNormalArgs{drawn.at(gpu), 1234567890123ull, 42, 5, 7, columns, 40, begin, n, mean, 0.02f,
                                     gpu ? DType::f32 : DType::f64};
    }, &kernels::host::init_normal, &kernels::cuda::init_normal);
    expect_exact(drawn);
  }
}

}  // namespace
}  // namespace shardbook::gpu_test
