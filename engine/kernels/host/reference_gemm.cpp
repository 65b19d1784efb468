#include "engine/kernels/host/reference_gemm.hpp"

#include <algorithm>
#include <vector>

namespace shardbook::kernels::host {
namespace {

// Blocks: a packed panel of B (depth × columns) stays in the second-level cache while all of A passes.
constexpr std::int64_t block_rows = 144, block_columns = 512, block_depth = 256;

// --- The innermost loop --------------------------------------------------------------------------

// out[rows, columns] = Σ_p a_packed[p, rows] ⊗ b_packed[p, columns], columns = two vectors.
// It is inlined into a function of each instruction set, which is what makes the vectors real. All that it reads and writes
// is this thread's own scratch, so the thread sanitizer has nothing to find here.
template <class T, int rows, int bytes>
[[gnu::always_inline, gnu::no_sanitize_thread]] inline void outer_products(std::int64_t depth, const T* __restrict a, const T* __restrict b,
                                                  T* __restrict out) {
  typedef T Vector __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));
  constexpr int width = bytes / static_cast<int>(sizeof(T));
  Vector tile[rows][2] = {};
  for (std::int64_t p = 0; p < depth; ++p, a += rows, b += 2 * width) {
    const Vector left = *reinterpret_cast<const Vector*>(b);
    const Vector right = *reinterpret_cast<const Vector*>(b + width);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      tile[i][0] += a[i] * left;
      tile[i][1] += a[i] * right;
    }
  }
  for (int i = 0; i < rows; ++i) {
    *reinterpret_cast<Vector*>(out + i * 2 * width) = tile[i][0];
    *reinterpret_cast<Vector*>(out + i * 2 * width + width) = tile[i][1];
  }
}

template <class T>
using OuterProducts = void (*)(std::int64_t depth, const T* a, const T* b, T* out);

template <class T>
[[gnu::no_sanitize_thread]] void outer_products_baseline(std::int64_t depth, const T* a, const T* b, T* out) {
  outer_products<T, 4, 16>(depth, a, b, out);
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2,fma"), gnu::no_sanitize_thread]] void outer_products_avx2(std::int64_t depth, const T* a, const T* b, T* out) {
  outer_products<T, 6, 32>(depth, a, b, out);
}
template <class T>
[[gnu::target("avx512f"), gnu::no_sanitize_thread]] void outer_products_avx512(std::int64_t depth, const T* a, const T* b, T* out) {
  outer_products<T, 12, 64>(depth, a, b, out);
}
#endif

// A tile of C: `rows` × two vectors of `bytes`, as many as the registers hold.
template <class T>
struct Kernel {
  OuterProducts<T> run;
  int rows, bytes;
  int columns() const { return 2 * bytes / static_cast<int>(sizeof(T)); }
};

template <class T>
Kernel<T> kernel_of([[maybe_unused]] Instructions instructions) {
#if defined(__x86_64__)
  if (instructions == Instructions::avx512) return {&outer_products_avx512<T>, 12, 64};
  if (instructions == Instructions::avx2) return {&outer_products_avx2<T>, 6, 32};
#endif
  return {&outer_products_baseline<T>, 4, 16};
}

// --- Packing -------------------------------------------------------------------------------------

// `count` vectors of a block, cut into panels `width` wide and padded with zeros: to[panel, p, i] =
// element(panel · width + i, p). `along` and `across` are the strides of p and of i; one of them is 1.
template <class T>
void pack(const T* from, std::int64_t across, std::int64_t along, std::int64_t count, std::int64_t depth, int width,
          T* to) {
  for (std::int64_t begin = 0; begin < count; begin += width) {
    const std::int64_t filled = std::min<std::int64_t>(width, count - begin);
    const T* panel = from + begin * across;
    if (along == 1) {
      // Stored along the depth: read in order, write with a stride.
      for (std::int64_t i = 0; i < filled; ++i) {
        for (std::int64_t p = 0; p < depth; ++p) to[p * width + i] = panel[i * across + p];
      }
    } else {
      for (std::int64_t p = 0; p < depth; ++p) std::copy_n(panel + p * along, filled, to + p * width);
    }
    if (filled < width) {
      for (std::int64_t p = 0; p < depth; ++p) std::fill_n(to + p * width + filled, width - filled, T(0));
    }
    to += depth * width;
  }
}

std::int64_t round_up(std::int64_t size, std::int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

}  // namespace

const char* name_of(Instructions instructions) {
  static constexpr const char* names[] = {"baseline", "AVX2", "AVX-512"};
  return names[static_cast<int>(instructions)];
}

Instructions widest_instructions() {
#if defined(__x86_64__)
  static const Instructions widest = [] {
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f")) return Instructions::avx512;
    return avx2 ? Instructions::avx2 : Instructions::baseline;
  }();
  return widest;
#else
  return Instructions::baseline;
#endif
}

template <class T>
void reference_gemm(bool a_transposed, bool b_transposed, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
                    const T* a, std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc,
                    Instructions instructions) {
  const Kernel<T> kernel = kernel_of<T>(instructions);
  const int tile_rows = kernel.rows, tile_columns = kernel.columns();

  // beta · C first; what follows only adds.
  for (std::int64_t i = 0; i < m; ++i) {
    if (beta == T(0)) std::fill(c + i * ldc, c + i * ldc + n, T(0));
    else if (beta != T(1)) for (std::int64_t j = 0; j < n; ++j) c[i * ldc + j] *= beta;
  }

  // Grown to what the largest product of this thread needs
  thread_local std::vector<T> a_packed, b_packed, tile;
  const auto at_least = [](std::vector<T>& scratch, std::int64_t size) {
    if (scratch.size() < static_cast<std::size_t>(size)) scratch.resize(size);
  };
  const std::int64_t deepest = std::min(block_depth, k);
  at_least(a_packed, round_up(std::min(block_rows, m), tile_rows) * deepest);
  at_least(b_packed, round_up(std::min(block_columns, n), tile_columns) * deepest);
  at_least(tile, tile_rows * tile_columns);

  const std::int64_t a_row = a_transposed ? 1 : lda, a_depth = a_transposed ? lda : 1;
  const std::int64_t b_column = b_transposed ? ldb : 1, b_depth = b_transposed ? 1 : ldb;
  for (std::int64_t depth_begin = 0; depth_begin < k; depth_begin += block_depth) {
    const std::int64_t depth = std::min(block_depth, k - depth_begin);
    for (std::int64_t column_begin = 0; column_begin < n; column_begin += block_columns) {
      // A panel of B, used by every block of rows.
      const std::int64_t columns = std::min(block_columns, n - column_begin);
      pack(b + depth_begin * b_depth + column_begin * b_column, b_column, b_depth, columns, depth, tile_columns,
           b_packed.data());
      for (std::int64_t row_begin = 0; row_begin < m; row_begin += block_rows) {
        const std::int64_t rows = std::min(block_rows, m - row_begin);
        pack(a + row_begin * a_row + depth_begin * a_depth, a_row, a_depth, rows, depth, tile_rows, a_packed.data());
        // Tiles of C: a tile at the edge is computed whole and added in part.
        for (std::int64_t j = 0; j < columns; j += tile_columns) {
          for (std::int64_t i = 0; i < rows; i += tile_rows) {
            kernel.run(depth, a_packed.data() + i * depth, b_packed.data() + j * depth, tile.data());
            const std::int64_t rows_here = std::min<std::int64_t>(tile_rows, rows - i);
            const std::int64_t columns_here = std::min<std::int64_t>(tile_columns, columns - j);
            for (std::int64_t r = 0; r < rows_here; ++r) {
              T* into = c + (row_begin + i + r) * ldc + column_begin + j;
              const T* from = tile.data() + r * tile_columns;
              for (std::int64_t s = 0; s < columns_here; ++s) into[s] += alpha * from[s];
            }
          }
        }
      }
    }
  }
}

template void reference_gemm(bool, bool, std::int64_t, std::int64_t, std::int64_t, float, const float*, std::int64_t,
                             const float*, std::int64_t, float, float*, std::int64_t, Instructions);
template void reference_gemm(bool, bool, std::int64_t, std::int64_t, std::int64_t, double, const double*,
                             std::int64_t, const double*, std::int64_t, double, double*, std::int64_t, Instructions);

}  // namespace shardbook::kernels::host
