// Products through cuBLASLt equal the host's, for every form that a layer asks for.
#include "engine/kernels/matmul_plans.hpp"
#include "tests/gpu/gpu_test.hpp"

namespace shardbook::gpu_test {
namespace {

using Gemm = OneGpu;

struct Form {
  std::int64_t m, n, k, batch = 1;
  bool a_transposed = false, b_transposed = false, bias = false;
  float alpha = 1, beta = 0;
  DType dtype = DType::bf16, c_dtype = DType::bf16;
  std::int64_t pad = 0;  // columns of C's rows beyond n

  std::string text() const {
    return base::text(m, " x ", n, " x ", k, " batch ", batch, a_transposed ? " At" : "", b_transposed ? " Bt" : "",
                      bias ? " bias" : "", " alpha ", alpha, " beta ", beta, " ", base::name_of(dtype), " to ",
                      base::name_of(c_dtype), " pad ", pad);
  }
};

using Gemm_on_gpu = void (*)(const kernels::GemmArgs&, const device::CudaQueue&);

// The same, planned for all multiprocessors but so many.
template <int left>
void gemm_leaving(const kernels::GemmArgs& args, const device::CudaQueue& queue) {
  device::CudaQueue beside = queue;
  beside.left_to_others = left;
  kernels::cuda::gemm(args, beside);
}

void expect_product(const Form& form, bool integers, Gemm_on_gpu gemm = &kernels::cuda::gemm) {
  SCOPED_TRACE(form.text());
  Gpu::get().reset();
  const auto draw = [&](std::int64_t count) { return integers ? small_integers(count, 4) : normal(count); };
  const std::int64_t ldc = form.n + form.pad;
  Numbers a(draw(form.batch * form.m * form.k), form.dtype), b(draw(form.batch * form.k * form.n), form.dtype),
      c(draw(form.batch * form.m * ldc), form.c_dtype), bias(draw(form.n), form.dtype);
  const Numbers before = c;
  const auto args = [&](bool gpu) {
    kernels::GemmArgs g{};
    g.a = a.at(gpu); g.b = b.at(gpu); g.c = c.at(gpu); g.bias_n = form.bias ? bias.at(gpu) : nullptr;
    g.m = form.m; g.n = form.n; g.k = form.k;
    g.lda = form.a_transposed ? form.m : form.k;
    g.ldb = form.b_transposed ? form.k : form.n;
    g.ldc = ldc;
    g.batch = form.batch;
    g.stride_a = form.m * form.k; g.stride_b = form.k * form.n; g.stride_c = form.m * ldc;
    g.a_transposed = form.a_transposed; g.b_transposed = form.b_transposed;
    g.alpha = form.alpha; g.beta = form.beta;
    g.dtype = gpu ? form.dtype : DType::f64;
    g.c_dtype = gpu ? form.c_dtype : DType::f64;
    return g;
  };
  run_both(args, &kernels::host::gemm, gemm);
  if (integers) return expect_exact(c);

  // Σ|a||b| of each number. Tensor cores may truncate where f32 rounds: a unit of 2^-22 covers both.
  std::vector<double> sizes(c.size());
  for (std::int64_t z = 0; z < form.batch; ++z) {
    for (std::int64_t i = 0; i < form.m; ++i) {
      for (std::int64_t j = 0; j < form.n; ++j) {
        double size = 0;
        for (std::int64_t l = 0; l < form.k; ++l) {
          const double left = a[z * form.m * form.k + (form.a_transposed ? l * form.m + i : i * form.k + l)];
          const double right = b[z * form.k * form.n + (form.b_transposed ? j * form.k + l : l * form.n + j)];
          size += std::abs(left * right);
        }
        sizes[(z * form.m + i) * ldc + j] = std::abs(form.alpha) * size + (form.bias ? std::abs(bias[j]) : 0) +
                                            form.beta * std::abs(before[(z * form.m + i) * ldc + j]);
      }
    }
  }
  expect_within(c, [&](std::size_t i) { return static_cast<double>(form.k + 3) * 0x1p-22 * sizes[i]; });
}

std::vector<Form> forms() {
  std::vector<Form> all;
  for (const auto& [dtype, c_dtype] : {std::pair{DType::bf16, DType::bf16}, {DType::bf16, DType::f32}, {DType::f32, DType::f32}}) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        all.push_back({64, 96, 128, 1, a_transposed, b_transposed, false, 1, 0, dtype, c_dtype});
        if (c_dtype == DType::f32) all.push_back({64, 96, 128, 1, a_transposed, b_transposed, false, 1, 1, dtype, c_dtype});
        all.push_back({40, 24, 56, 6, a_transposed, b_transposed, false, 0.5f, 0, dtype, c_dtype});
        all.push_back({17, 9, 33, 1, a_transposed, b_transposed, false, 1, 0, dtype, c_dtype});
      }
    }
    all.push_back({64, 96, 128, 1, false, true, dtype == c_dtype, 1, 0, dtype, c_dtype});
    all.push_back({64, 96, 128, 1, false, true, false, 1, 0, dtype, c_dtype, 32});
    all.push_back({1, 1, 1, 1, false, false, false, 1, 0, dtype, c_dtype});
  }
  return all;
}

TEST_F(Gemm, IsExactOnSmallIntegers) {
  for (const Form& form : forms()) {
    // Sums of up to 128 products of at most 16 are integers below 2^12: f32 has them, bf16 rounds them.
    if (form.c_dtype == DType::f32) expect_product(form, true);
  }
}
TEST_F(Gemm, EqualsTheHostsProduct) {
  for (const Form& form : forms()) expect_product(form, false);
}
TEST_F(Gemm, OfLargeShapesEqualsTheHostsProduct) {
  expect_product({256, 768, 1024, 1, false, true, true, 1, 0, DType::bf16, DType::bf16}, false);
  expect_product({768, 256, 1024, 1, true, false, false, 1, 1, DType::bf16, DType::f32}, false);
  expect_product({512, 128, 512, 4, false, false, false, 1, 0, DType::bf16, DType::bf16}, false);
  expect_product({256, 256, 1024, 1, false, true, true, 1, 0, DType::f32, DType::f32}, false);
}
// ---- GELU in the matmuls on both sides of it ----------------------------------------------------

// How far cuBLASLt's GELU may lie from the exact one at z, beside what z itself errs by. It names no bound. With the hardware's
// tanh (tanh.approx.f32: a relative error of 2^-11 in PTX's own table) gelu = ½z(1 + tanh u) errs by ½|z|·2^-11, and its slope,
// ½(1 + t) + ½z(1 − t²)u′, by (½ + |z u′|)·2^-11. That does not explain all of the product with the slope in bf16, but a product
// that is rounded to bf16 before it is multiplied does: by half of its last place. The slope itself is at most 1.13.
constexpr double tanh_error = 0x1p-11, steepest = 1.13;
constexpr double root_two_over_pi = 0.7978845608028654;
double du(double z) { return root_two_over_pi * (1 + 3 * 0.044715 * z * z); }
double slope_error(double z) { return (0.5 + std::abs(z * du(z))) * tanh_error; }
double gelu_slope(double z) {
  const double t = std::tanh(root_two_over_pi * (z + 0.044715 * z * z * z));
  return 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * du(z);
}

// A product of whole rows: B is stored [n, k] where it is transposed, else [k, n].
kernels::GemmArgs product_of(std::int64_t m, std::int64_t n, std::int64_t k, bool b_transposed, DType dtype) {
  kernels::GemmArgs g{};
  g.m = m; g.n = n; g.k = k; g.lda = k; g.ldb = b_transposed ? k : n; g.ldc = n; g.batch = 1;
  g.b_transposed = b_transposed; g.alpha = 1; g.dtype = g.c_dtype = dtype;
  return g;
}

// y = x wᵀ + b and out = gelu(y), of numbers so small that y is near 1.
void expect_gelu(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype, bool with_bias) {
  SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << " " << base::name_of(dtype) << (with_bias ? " bias" : ""));
  Gpu::get().reset();
  Numbers x(normal(m * k, 1 / std::sqrt(static_cast<double>(k))), dtype), w(normal(n * k), dtype), bias(normal(n), dtype), y(unwritten(m * n), dtype), out(unwritten(m * n), dtype);
  run_both([&](bool gpu) {
    kernels::GemmArgs g = product_of(m, n, k, true, gpu ? dtype : DType::f64);
    g.a = x.at(gpu); g.b = w.at(gpu); g.c = y.at(gpu); g.bias_n = with_bias ? bias.at(gpu) : nullptr;
    g.beside = kernels::Beside::gelu; g.other = out.at(gpu);
    return g;
  }, &kernels::host::gemm, &kernels::cuda::gemm);
  std::vector<double> errors(y.size());
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double size = with_bias ? std::abs(bias[j]) : 0;
      for (std::int64_t l = 0; l < k; ++l) size += std::abs(x[i * k + l] * w[j * k + l]);
      errors[i * n + j] = static_cast<double>(k + 3) * 0x1p-22 * size;
    }
  }
  expect_within(y, [&](std::size_t i) { return errors[i]; });
  expect_within(out, [&](std::size_t i) { return steepest * errors[i] + 0.5 * std::abs(y[i]) * tanh_error + 8 * unit_f32 * std::abs(y[i]); });
}

// dx = (dy w) · gelu′(pre).
void expect_gelu_slope(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
  SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << " " << base::name_of(dtype));
  Gpu::get().reset();
  Numbers dy(normal(m * k), dtype), w(normal(k * n, 1 / std::sqrt(static_cast<double>(k))), dtype), pre(normal(m * n, 1.5), dtype), dx(unwritten(m * n), dtype);
  run_both([&](bool gpu) {
    kernels::GemmArgs g = product_of(m, n, k, false, gpu ? dtype : DType::f64);
    g.a = dy.at(gpu); g.b = w.at(gpu); g.c = dx.at(gpu);
    g.beside = kernels::Beside::gelu_slope; g.other = pre.at(gpu);
    return g;
  }, &kernels::host::gemm, &kernels::cuda::gemm);
  std::vector<double> sizes(dx.size());
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t l = 0; l < k; ++l) sizes[i * n + j] += std::abs(dy[i * k + l] * w[l * n + j]);
    }
  }
  expect_within(dx, [&](std::size_t i) {
    const double product = static_cast<double>(k + 2) * 0x1p-22 * sizes[i];
    return std::abs(gelu_slope(pre[i])) * product + sizes[i] * (slope_error(pre[i]) + 16 * unit_f32) + (dtype == DType::bf16 ? 0x1p-9 * std::abs(dx[i]) : 0);
  });
}

TEST_F(Gemm, AppliesGeluAndItsSlopeBeforeItStores) {
  for (const DType dtype : both_types) {
    for (const bool bias : {true, false}) expect_gelu(64, 96, 128, dtype, bias);
    expect_gelu(256, 768, 192, dtype, true);
    expect_gelu(24, 40, 56, dtype, true);
    expect_gelu_slope(64, 96, 128, dtype);
    expect_gelu_slope(256, 768, 192, dtype);
    expect_gelu_slope(24, 40, 56, dtype);
  }
}
TEST_F(Gemm, WithGeluRepeatsBitForBit) {
  const std::int64_t m = 512, n = 768, k = 2048;
  for (const kernels::Beside beside : {kernels::Beside::gelu, kernels::Beside::gelu_slope}) {
    Gpu::get().reset();
    Numbers a(normal(m * k), DType::bf16), b(normal(n * k), DType::bf16), first(unwritten(m * n), DType::bf16), second(unwritten(m * n), DType::bf16),
        other(normal(m * n), DType::bf16);
    Numbers copy_of_other(std::vector<double>(other.from_gpu()), DType::bf16);
    for (const auto& [c, with] : {std::pair{&first, &other}, std::pair{&second, &copy_of_other}}) {
      kernels::GemmArgs g = product_of(m, n, k, true, DType::bf16);
      g.a = a.at(true); g.b = b.at(true); g.c = c->at(true); g.other = with->at(true);
      g.beside = beside;
      Gpu::get().run(g, &kernels::host::gemm, &kernels::cuda::gemm);
    }
    EXPECT_EQ(first.from_gpu(), second.from_gpu());
    EXPECT_EQ(other.from_gpu(), copy_of_other.from_gpu());
  }
}
TEST_F(Gemm, RefusesGeluOfRowsThatAreNotAMultipleOf16Bytes) {
  try {
    expect_gelu(8, 12, 16, DType::bf16, true);
    FAIL() << "rows of 24 bytes were taken";
  } catch (const base::Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("multiple of 16 bytes, not of 12 numbers of bf16"), std::string::npos) << failure.what();
  }
}
// A product of a form that no other test asks for: this thread's plans are kept.
kernels::MatmulPlan measured(std::int64_t m, std::int64_t n, std::int64_t k) {
  Gpu::get().reset();
  Numbers a(normal(m * k), DType::bf16), b(normal(n * k), DType::bf16), c(unwritten(m * n), DType::bf16), bias(normal(n), DType::bf16);
  kernels::GemmArgs g = product_of(m, n, k, true, DType::bf16);
  g.a = a.at(true); g.b = b.at(true); g.c = c.at(true); g.bias_n = bias.at(true);
  kernels::MatmulPlan plan;
  plan.form = kernels::form_of(g, true);
  Gpu::get().run(kernels::MeasureMatmulArgs{g, &plan}, +[](const kernels::MeasureMatmulArgs&) {}, &kernels::cuda::measure_matmul);
  return plan;
}
// Plans of this process, until it goes.
struct Planned {
  explicit Planned(const kernels::MatmulPlan& plan) { kernels::use_matmul_plans({plan}); }
  ~Planned() { kernels::use_matmul_plans({}); }
};
TEST_F(Gemm, ByAMeasuredAlgorithmEqualsTheHostsProduct) {
  const kernels::MatmulPlan plan = measured(264, 776, 1032);
  EXPECT_GT(plan.ns, 0);
  const Planned planned(plan);
  expect_product({264, 776, 1032, 1, false, true, true, 1, 0, DType::bf16, DType::bf16}, false);
}
TEST_F(Gemm, RefusesAnAlgorithmThatCannotMultiplyIt) {
  kernels::MatmulPlan plan = measured(280, 792, 1048);
  plan.algorithm.fill(0x7fffffffffffffff);
  const Planned planned(plan);
  try {
    expect_product({280, 792, 1048, 1, false, true, true, 1, 0, DType::bf16, DType::bf16}, false);
    ADD_FAILURE() << "an algorithm that there is not was taken";
  } catch (const base::Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("measure anew with ./shardbook tune"), std::string::npos) << failure.what();
  }
}
TEST_F(Gemm, RefusesToAddToBf16) {
  EXPECT_THROW(expect_product({64, 96, 128, 1, false, false, false, 1, 1, DType::bf16, DType::bf16}, true), base::Failure);
}
TEST_F(Gemm, LeavingRoomEqualsTheHostsProduct) {
  for (const Form& form : forms()) expect_product(form, false, &gemm_leaving<24>);
  expect_product({256, 768, 1024, 1, false, true, true, 1, 0, DType::bf16, DType::bf16}, false, &gemm_leaving<16>);
  expect_product({768, 256, 1024, 1, true, false, false, 1, 1, DType::bf16, DType::f32}, false, &gemm_leaving<32>);
}
TEST_F(Gemm, LeavingMoreThanThereIsStillMultiplies) {
  expect_product({256, 768, 1024, 1, false, true, true, 1, 0, DType::bf16, DType::bf16}, false, &gemm_leaving<100'000>);
}

std::vector<double> product(Numbers& a, Numbers& b, Gemm_on_gpu gemm) {
  const std::int64_t m = 512, n = 768, k = 4096;
  Numbers c(unwritten(m * n), DType::f32);
  kernels::GemmArgs g{};
  g.a = a.at(true); g.b = b.at(true); g.c = c.at(true);
  g.m = m; g.n = n; g.k = k; g.lda = k; g.ldb = k; g.ldc = n; g.batch = 1;
  g.b_transposed = true; g.alpha = 1; g.dtype = DType::bf16; g.c_dtype = DType::f32;
  Gpu::get().run(g, &kernels::host::gemm, gemm);
  return c.from_gpu();
}

TEST_F(Gemm, RepeatsBitForBit) {
  Numbers a(normal(512 * 4096), DType::bf16), b(normal(768 * 4096), DType::bf16);
  const std::vector<double> first = product(a, b, &kernels::cuda::gemm), leaving = product(a, b, &gemm_leaving<24>);
  EXPECT_EQ(product(a, b, &gemm_leaving<24>), leaving);
  EXPECT_EQ(product(a, b, &kernels::cuda::gemm), first) << "a plan that leaves room is another than the one that takes all";
}

}  // namespace
}  // namespace shardbook::gpu_test
