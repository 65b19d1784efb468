// kernels/host/reference_gemm: how is a matrix product computed fast without a library?
//
// The scheme of GotoBLAS and BLIS (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
// 2008): blocks of A and B are copied ("packed") so that the innermost loop reads both in order, and that
// loop keeps a small tile of C in registers. Packing is also where transposes disappear.
//
// Always built: it is the twin where no BLAS is installed, and the tests compare both.
#pragma once

#include <cstdint>

namespace shardbook::kernels::host {

// The vector instructions of the innermost loop. Each machine that has one has those before it.
enum class Instructions { baseline, avx2, avx512 };
const char* name_of(Instructions instructions);

// The widest that this machine has.
Instructions widest_instructions();

// As blas_gemm in blas.hpp, of which it is one form. Runs on the calling thread; thread-safe; its packing
// buffers belong to the thread and are kept from call to call. REQUIRES: this machine has `instructions`.
template <class T>
void reference_gemm(bool a_transposed, bool b_transposed, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
                    const T* a, std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc,
                    Instructions instructions = widest_instructions());

}  // namespace shardbook::kernels::host
