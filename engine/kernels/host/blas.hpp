// kernels/host/blas: who multiplies matrices on the host?
//
// One function, two twins chosen by CMake: blas_openblas.cpp where OpenBLAS is installed, else
// blas_reference.cpp, which hands over to reference_gemm.hpp. Both may be called from several rank threads at
// once and run on the calling thread alone: a rank is one core's worth of work, and ranks are many.
#pragma once

#include <cstdint>

#include "engine/base/result.hpp"

namespace shardbook::kernels::host {

// c[m,n] = alpha · op(a)[m,k] · op(b)[k,n] + beta · c, row-major; T is float or double. A transposed a is stored
// [k,m], a transposed b [n,k]; lda, ldb, ldc are elements from one stored row to the next. With beta = 0, c is
// not read. Throws base::Failure where a size passes what the library's integers hold.
template <class T>
void blas_gemm(bool a_transposed, bool b_transposed, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
               const T* a, std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc);

// Makes sure that so many threads may be in blas_gemm at once. No product may be under way. Errors: there is no memory for
// the library's buffers.
base::Status blas_make_room(int threads);

// A name for people: "OpenBLAS 0.3.21 (SkylakeX)" or "the reference twin (AVX-512)".
const char* blas_name();

}  // namespace shardbook::kernels::host
