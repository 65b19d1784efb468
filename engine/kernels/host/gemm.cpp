// kernels/host/gemm: a batch of products, one after the other, through the BLAS twin.
//
// No BLAS knows a bias: each row of C begins as the bias, and the product is added to it. Nor does one know GELU or a
// bias' gradient: what a product does beside is the reference of the op that does it by itself, so the numbers are the same.
#include <algorithm>

#include "engine/kernels/host/blas.hpp"
#include "engine/kernels/host/dispatch.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels::host {
namespace {

template <class T>
void multiply(const GemmArgs& args) {
  const T* bias = as<T>(args.bias_n);
  for (std::int64_t entry = 0; entry < args.batch; ++entry) {
    T* c = as<T>(args.c) + entry * args.stride_c;
    T beta = T(args.beta);
    if (bias != nullptr) {
      for (std::int64_t i = 0; i < args.m; ++i) {
        T* row = c + i * args.ldc;
        if (beta == T(0)) std::copy(bias, bias + args.n, row);
        else for (std::int64_t j = 0; j < args.n; ++j) row[j] = beta * row[j] + bias[j];
      }
      beta = T(1);
    }
    blas_gemm<T>(args.a_transposed, args.b_transposed, args.m, args.n, args.k, T(args.alpha),
                 as<T>(args.a) + entry * args.stride_a, args.lda, as<T>(args.b) + entry * args.stride_b, args.ldb, beta,
                 c, args.ldc);
  }
}

// Rows of `args`' result lie together: GELU's reference goes over all of it at once.
void apply_gelu(const GemmArgs& args) {
  const std::int64_t elements = args.m * args.n;
  if (args.beside == Beside::gelu) return gelu_forward({args.aux, args.c, elements, args.c_dtype});
  gelu_backward({args.aux, args.c, args.c, elements, args.c_dtype});
}

}  // namespace

void gemm(const GemmArgs& args) {
  SHARDBOOK_CHECK(args.dtype == args.c_dtype, "on the host every floating number has one type, but a product of ",
                  base::name_of(args.dtype), " is asked for in ", base::name_of(args.c_dtype));
  SHARDBOOK_CHECK(args.beside == Beside::nothing || (args.batch == 1 && args.ldc == args.n), "a product that does something beside is one, and its rows lie together");
  GemmArgs product = args;
  if (args.beside == Beside::gelu) product.c = args.aux;   // what GELU reads; C is what it makes
  with_float(args.dtype, [&](auto zero) { multiply<decltype(zero)>(product); });
  switch (args.beside) {
    case Beside::nothing: return;
    case Beside::gelu:
    case Beside::gelu_gradient: return apply_gelu(args);
    case Beside::sums_of_a:
      SHARDBOOK_CHECK(args.a_transposed && args.lda == args.m, "the sums of A are those of columns that are stored as rows' numbers side by side");
      return bias_gradient({args.a, args.aux, nullptr, args.k, args.m, false, args.dtype});
  }
}

}  // namespace shardbook::kernels::host
