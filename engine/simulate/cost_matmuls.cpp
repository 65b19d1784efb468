// simulate/cost_matmuls: how long does a matmul take, alone and beside a collective?
//
// A small model of tiles and waves, and what measured matmuls near by say of it (cost.hpp).
#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "engine/simulate/cost.hpp"

namespace shardbook::simulate {

using program::OpKind;

namespace {

// The tile shapes that matmul libraries choose from, and how well each keeps a multiprocessor busy.
struct Tile {
  std::int64_t m, n;
  double efficiency;
};
constexpr Tile tiles[] = {{128, 256, 1.0}, {256, 128, 1.0}, {128, 128, 0.9}, {128, 64, 0.75}, {64, 128, 0.75}, {64, 64, 0.6}};
// A tile fills its pipeline before its first product: as if k were so much longer.
constexpr double k_before_first = 128;
// Long sums over few tiles are cut along k into so many parts, which a second pass adds.
constexpr std::int64_t splits[] = {1, 2, 4, 8, 16};
constexpr std::int64_t k_of_a_split = 256;
// Blocks that a collective wants to place at once (NCCL's channels).
constexpr double collective_blocks = 24;
// Weight against slopes in the correction, in points at a distance of one octave.
constexpr double slope_ridge = 0.1;

// Solves the symmetric system in place by Gaussian elimination; positive definite by its ridge.
template <std::size_t N>
std::array<double, N> solved(std::array<std::array<double, N>, N> matrix, std::array<double, N> right) {
  for (std::size_t pivot = 0; pivot < N; ++pivot) {
    for (std::size_t row = pivot + 1; row < N; ++row) {
      const double factor = matrix[row][pivot] / matrix[pivot][pivot];
      for (std::size_t column = pivot; column < N; ++column) matrix[row][column] -= factor * matrix[pivot][column];
      right[row] -= factor * right[pivot];
    }
  }
  for (std::size_t row = N; row-- > 0;) {
    for (std::size_t column = row + 1; column < N; ++column) right[row] -= matrix[row][column] * right[column];
    right[row] /= matrix[row][row];
  }
  return right;
}

// The tiling that the small model takes.
struct Tiling {
  double ns = 0;      // without the fixed time, not bounded by memory
  double blocks = 0;
};

Tiling best_tiling(program::GemmSize size, const GemmTable& table, const DeviceCosts& device) {
  const double outputs = static_cast<double>(size.m) * size.n * size.batch;
  Tiling best;
  for (const Tile& tile : tiles) {
    const double count =
        static_cast<double>((size.m + tile.m - 1) / tile.m) * ((size.n + tile.n - 1) / tile.n) * size.batch;
    const double flops_per_ns = table.peak_flops_per_ns / device.multiprocessors * tile.efficiency;
    for (std::int64_t split : splits) {
      if (split > 1 && size.k / split < k_of_a_split) break;
      // The last wave is not full; libraries win back about half of what that loses.
      const double full = count * split / device.multiprocessors;
      const double waves = full < 1 ? 1 : (full + std::ceil(full)) / 2;
      double ns = waves * 2.0 * tile.m * tile.n * (static_cast<double>(size.k) / split + k_before_first) / flops_per_ns;
      // Partial sums are written and read once more, in fp32, by a pass of their own.
      if (split > 1) ns += table.fixed_ns + 8.0 * outputs * split / device.memory_bytes_per_ns;
      if (best.ns == 0 || ns < best.ns) best = {ns, count * split};
    }
  }
  return best;
}

}  // namespace

double gemm_model_ns(program::GemmSize size, base::DType dtype, const GemmTable& table, const DeviceCosts& device) {
  const double element = static_cast<double>(base::size_of(dtype));
  const double outputs = static_cast<double>(size.m) * size.n * size.batch;
  const double memory_ns =
      element * (outputs + static_cast<double>(size.k) * (size.m + size.n) * size.batch) / device.memory_bytes_per_ns;
  return table.fixed_ns + std::max(best_tiling(size, table, device).ns, memory_ns);
}

double gemm_model_blocks(program::GemmSize size, const GemmTable& table, const DeviceCosts& device) {
  return best_tiling(size, table, device).blocks;
}

const std::pair<const base::DType, GemmTable>& CostModel::gemm_table(base::DType dtype) const {
  auto table = profile_.gemm.find(dtype);
  if (table == profile_.gemm.end()) table = profile_.gemm.find(base::DType::f32);
  SHARDBOOK_CHECK(table != profile_.gemm.end(), "profile ", profile_.name, " has no matmuls in ", base::name_of(dtype));
  return *table;
}

const CostModel::OfSize& CostModel::of_size(program::GemmSize size, base::DType dtype) const {
  const auto& [measured_dtype, table] = gemm_table(dtype);
  const std::lock_guard<std::mutex> lock(sizes_->mutex);
  const auto [at, is_new] = sizes_->known.try_emplace({static_cast<std::int64_t>(measured_dtype), size.m, size.n, size.k, size.batch});
  OfSize& of = at->second;
  if (!is_new) return of;
  const std::vector<Correction>& corrections = corrections_.at(measured_dtype);
  of.blocks = gemm_model_blocks(size, table, profile_.device);
  of.ns = gemm_model_ns(size, measured_dtype, table, profile_.device);
  if (!corrections.empty()) of.ns *= std::exp(near(size, corrections, &Correction::log_factor, false));
  const bool measured_beside = std::any_of(corrections.begin(), corrections.end(), [](const Correction& one) { return one.log_beside != 0; });
  if (measured_beside) of.beside = std::max(1.0, std::exp(near(size, corrections, &Correction::log_beside, true)));
  return of;
}

bool CostModel::fills(const program::OpDesc& desc) const {
  return desc.kind == OpKind::gemm && of_size(desc.gemm, desc.dtype).blocks + collective_blocks > profile_.device.multiprocessors;
}
double CostModel::gemm_ns(program::GemmSize size, base::DType dtype) const { return of_size(size, dtype).ns; }
double CostModel::gemm_beside(program::GemmSize size, base::DType dtype) const { return of_size(size, dtype).beside; }

CostModel::Sides CostModel::sides_of(program::GemmSize size) {
  return {std::log2(static_cast<double>(size.m)), std::log2(static_cast<double>(size.n)),
          std::log2(static_cast<double>(size.k)), std::log2(static_cast<double>(size.batch))};
}

// What measured matmuls say of one: a plane through their values over the logarithms of the sides, the near ones weighing
// most (local regression, Cleveland and Devlin 1988). At a measured one it is that one's.
double CostModel::near(program::GemmSize size, const std::vector<Correction>& corrections, double Correction::*value,
                       bool measured_beside) const {
  constexpr std::size_t terms = 5;
  std::array<std::array<double, terms>, terms> matrix{};
  std::array<double, terms> right{};
  const Sides here = sides_of(size);
  double weights = 0;
  for (const Correction& correction : corrections) {
    if (measured_beside && correction.log_beside == 0) continue;
    const Sides& there = correction.sides;
    std::array<double, terms> term{1};
    double apart = 1e-3;
    for (std::size_t side = 0; side < here.size(); ++side) {
      term[side + 1] = there[side] - here[side];
      apart += term[side + 1] * term[side + 1];
    }
    const double weight = 1 / (apart * apart);
    weights += weight;
    for (std::size_t row = 0; row < terms; ++row) {
      for (std::size_t column = 0; column < terms; ++column) matrix[row][column] += weight * term[row] * term[column];
      right[row] += weight * term[row] * correction.*value;
    }
  }
  // A slope must earn itself: without many points near by, the plane lies flat.
  for (std::size_t slope = 1; slope < terms; ++slope) matrix[slope][slope] += slope_ridge + 1e-9 * weights;
  return solved(matrix, right)[0];
}

}  // namespace shardbook::simulate
