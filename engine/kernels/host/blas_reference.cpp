// kernels/host/blas_reference: the twin for machines without OpenBLAS.
#include <string>

#include "engine/kernels/host/blas.hpp"
#include "engine/kernels/host/reference_gemm.hpp"

namespace shardbook::kernels::host {

template <class T>
void blas_gemm(bool a_transposed, bool b_transposed, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
               const T* a, std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
  reference_gemm(a_transposed, b_transposed, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

template void blas_gemm(bool, bool, std::int64_t, std::int64_t, std::int64_t, float, const float*, std::int64_t,
                        const float*, std::int64_t, float, float*, std::int64_t);
template void blas_gemm(bool, bool, std::int64_t, std::int64_t, std::int64_t, double, const double*, std::int64_t,
                        const double*, std::int64_t, double, double*, std::int64_t);

base::Status blas_make_room(int) { return base::Done{}; }

const char* blas_name() {
  static const std::string name = std::string("the reference twin (") + name_of(widest_instructions()) + ")";
  return name.c_str();
}

}  // namespace shardbook::kernels::host
