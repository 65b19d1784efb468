// kernels/host/gemm: a batch of products, one after the other, through the BLAS twin.
//
// No BLAS knows a bias: each row of C begins as the bias, and the product is added to it. Nor does one know GELU: the
// kernels of their own follow, so an epilogue has the bits of a product and a kernel apart.
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

}  // namespace

void gemm(const GemmArgs& args) {
  SHARDBOOK_CHECK(args.dtype == args.c_dtype, "on the host every floating number has one type, but a product of ",
                  base::name_of(args.dtype), " is asked for in ", base::name_of(args.c_dtype));
  with_float(args.dtype, [&](auto zero) { multiply<decltype(zero)>(args); });
  if (args.beside == Beside::gelu) gelu_forward({args.c, args.other, args.m * args.n, args.c_dtype});
  if (args.beside == Beside::gelu_slope) gelu_backward({args.other, args.c, args.c, args.m * args.n, args.c_dtype});
}

}  // namespace shardbook::kernels::host
