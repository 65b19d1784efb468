// kernels/host/blas_openblas: the twin that stands on OpenBLAS.
//
// OpenBLAS has a thread pool of its own, which would make every rank wait for the others' products; it is
// told once, before the first product, to use the calling thread alone. Its buffers are locked by itself,
// so several ranks may multiply at once.
//
// A product without a free buffer makes one, of 128 MiB; where it gets none it asks again, for ever, without a word
// (OpenBLAS 0.3.21, driver/others/memory.c: blas_memory_alloc). So the buffers of all threads are made before the first
// product, when who lacks memory can still be told.
#include <cblas.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/kernels/host/blas.hpp"

// OpenBLAS's own; where a build of it hides them, its buffers are only known to fit, and it keeps the kernels that it chose.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int position);
[[gnu::weak]] void blas_memory_free(void* buffer);
[[gnu::weak]] void gotoblas_dynamic_init();   // chooses kernels where none are chosen: by OPENBLAS_CORETYPE, else by the CPU
[[gnu::weak]] void gotoblas_dynamic_quit();
}

namespace shardbook::kernels::host {
namespace {

// Before main(), when no other thread reads the environment or multiplies.
bool choose_kernels() {
#if defined(__x86_64__)
  constexpr const char* choice = "OPENBLAS_CORETYPE";
  const std::string_view chosen = openblas_get_corename();
  const bool knows_the_cpu = chosen != "Prescott" && chosen != "Barcelona";   // what it falls back to: Intel's, and AMD's
  if (knows_the_cpu || std::getenv(choice) != nullptr || gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr) return false;
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return false;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  ::setenv(choice, avx512 ? "SkylakeX" : "Haswell", 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  ::unsetenv(choice);
  return true;
#else
  return false;
#endif
}
[[maybe_unused]] const bool kernels_chosen = choose_kernels();

void use_calling_thread_only() {
  static const bool once = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  static_cast<void>(once);
}

blasint narrow(std::int64_t size) {
  SHARDBOOK_CHECK(size >= 0 && size <= std::numeric_limits<blasint>::max(), "size of a matrix: ", size);
  return static_cast<blasint>(size);
}

void multiply(CBLAS_TRANSPOSE op_a, CBLAS_TRANSPOSE op_b, blasint m, blasint n, blasint k, float alpha,
              const float* a, blasint lda, const float* b, blasint ldb, float beta, float* c, blasint ldc) {
  cblas_sgemm(CblasRowMajor, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void multiply(CBLAS_TRANSPOSE op_a, CBLAS_TRANSPOSE op_b, blasint m, blasint n, blasint k, double alpha,
              const double* a, blasint lda, const double* b, blasint ldb, double beta, double* c, blasint ldc) {
  cblas_dgemm(CblasRowMajor, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace

template <class T>
void blas_gemm(bool a_transposed, bool b_transposed, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
               const T* a, std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
  use_calling_thread_only();
  multiply(a_transposed ? CblasTrans : CblasNoTrans, b_transposed ? CblasTrans : CblasNoTrans, narrow(m), narrow(n),
           narrow(k), alpha, a, narrow(lda), b, narrow(ldb), beta, c, narrow(ldc));
}

template void blas_gemm(bool, bool, std::int64_t, std::int64_t, std::int64_t, float, const float*, std::int64_t,
                        const float*, std::int64_t, float, float*, std::int64_t);
template void blas_gemm(bool, bool, std::int64_t, std::int64_t, std::int64_t, double, const double*, std::int64_t,
                        const double*, std::int64_t, double, double*, std::int64_t);

base::Status blas_make_room(int threads) {
  // What it asks for on x86-64; on others less. It keeps a table of 50 buffers or more.
  constexpr std::size_t buffer_bytes = (std::size_t{128} << 20) + 4096;
  constexpr int most = 48;
  static std::mutex making;
  static int made = 0;
  const std::lock_guard lock(making);
  const int wanted = std::min(threads, most);
  if (wanted <= made) return base::Done{};

  // Is there room for those that are not there yet?
  const std::size_t bytes = buffer_bytes * static_cast<std::size_t>(wanted - made);
  void* room = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) {
    return base::Error{base::text("OpenBLAS needs a buffer of ", buffer_bytes >> 20, " MiB for each rank of this process, ", wanted,
                                  " in all, and there is no memory for them: raise the limit (ulimit -v, -d), or start fewer ranks")};
  }
  ::munmap(room, bytes);

  // All at once, so that none is given out twice.
  if (blas_memory_alloc != nullptr && blas_memory_free != nullptr) {
    std::vector<void*> buffers;
    for (int buffer = 0; buffer < wanted; ++buffer) buffers.push_back(blas_memory_alloc(0));
    for (void* buffer : buffers) blas_memory_free(buffer);
  }
  made = wanted;
  return base::Done{};
}

const char* blas_name() {
  // openblas_get_config() reads "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...": name and release are enough.
  static const std::string name = [] {
    const std::string config = openblas_get_config();
    const std::size_t release = config.find(' ');
    const std::size_t end = release == std::string::npos ? release : config.find(' ', release + 1);
    return config.substr(0, end) + " (" + openblas_get_corename() + ")";
  }();
  return name.c_str();
}

}  // namespace shardbook::kernels::host
