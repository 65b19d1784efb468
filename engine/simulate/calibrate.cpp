#include "engine/simulate/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/simulate/calibrate_clock.hpp"
#include "engine/simulate/cost.hpp"

namespace shardbook::simulate {

using base::Bytes;
using base::DType;
using program::GemmSize;
using program::OpKind;

namespace {

constexpr Bytes KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

// --- What to measure --------------------------------------------------------------------------------

void plan_gemms(Benchmarks& benchmarks) {
  const auto add = [&](DType dtype, GemmSize size) { benchmarks.gemms.push_back({size, dtype, 0}); };
  // Squares, from what the launch decides to what the power supply decides.
  for (std::int64_t n = 256; n <= 16384; n *= 2) add(DType::bf16, {n, n, n, 1});
  // Tokens × outputs × inputs, each short and long: whole and cut linears, and their weight gradients.
  for (std::int64_t m : {512, 2048, 8192}) {
    for (std::int64_t n : {128, 512, 2048, 8192}) {
      for (std::int64_t k : {128, 512, 2048, 8192}) {
        if (m == n && n == k) continue;
        add(DType::bf16, {m, n, k, 1});
      }
    }
  }
  // Heads over a vocabulary.
  for (GemmSize size : {GemmSize{8192, 50304, 2048, 1}, GemmSize{8192, 2048, 50304, 1}, GemmSize{50304, 2048, 8192, 1},
                        GemmSize{8192, 6288, 2048, 1}, GemmSize{8192, 2048, 6288, 1}, GemmSize{6288, 2048, 8192, 1}}) {
    add(DType::bf16, size);
  }
  // Widths that are three times a power of two: fused query, key and value, whole and cut.
  for (std::int64_t n : {768, 3072, 6144, 12288}) {
    for (std::int64_t k : {2048, 4096}) {
      add(DType::bf16, {8192, n, k, 1});
      add(DType::bf16, {8192, k, n, 1});
      add(DType::bf16, {k, n, 8192, 1});
    }
  }
  // Of a model as narrow as gpt-124m, whole and over two ranks: there tiles fill the device once or not quite, and what lies between two
  // sizes is not between their times.
  for (std::int64_t n : {1152, 1536, 2304, 3072}) {
    add(DType::bf16, {8192, n, 768, 1});
    add(DType::bf16, {8192, 768, n, 1});
    add(DType::bf16, {n, 768, 8192, 1});
    add(DType::bf16, {768, n, 8192, 1});
  }
  // Attention by batched matmuls: scores and values, of small and of large heads.
  for (std::int64_t batch : {8, 32, 128}) {
    for (GemmSize size : {GemmSize{128, 128, 32, 1}, GemmSize{128, 32, 128, 1}, GemmSize{1024, 1024, 128, 1},
                          GemmSize{1024, 128, 1024, 1}, GemmSize{2048, 2048, 128, 1}, GemmSize{2048, 128, 2048, 1}}) {
      add(DType::bf16, {size.m, size.n, size.k, batch});
    }
  }
  // fp32: fewer, since models train in bf16.
  for (std::int64_t n = 256; n <= 8192; n *= 2) add(DType::f32, {n, n, n, 1});
  for (GemmSize size : {GemmSize{2048, 128, 128, 1}, GemmSize{2048, 512, 128, 1}, GemmSize{512, 128, 2048, 1},
                        GemmSize{128, 128, 32, 32}, GemmSize{1024, 1024, 128, 32}}) {
    add(DType::f32, size);
  }
}

void plan_collectives(Benchmarks& benchmarks, int gpus) {
  std::vector<int> sizes;
  for (int ranks = 2; ranks < gpus; ranks *= 2) sizes.push_back(ranks);
  if (gpus > 1) sizes.push_back(gpus);
  for (int ranks : sizes) {
    for (OpKind kind : {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter}) {
      for (Bytes bytes : {4 * KiB, 32 * KiB, 128 * KiB, 512 * KiB, 2 * MiB, 8 * MiB, 32 * MiB, 128 * MiB, 512 * MiB}) {
        benchmarks.collectives.push_back({kind, ranks, bytes, 0});
      }
    }
    // Four large matmuls, and as much pointwise work, beside two large all-gathers.
    OverlapBenchmark overlap;
    overlap.ranks = ranks;
    overlap.bytes = 512 * MiB;
    overlap.size = {8192, 8192, 8192, 1};
    benchmarks.overlaps.push_back(overlap);
    overlap.compute = OverlapBenchmark::Compute::pointwise;
    overlap.size = {};
    overlap.compute_bytes = 1 * GiB;
    overlap.repeat = 16;
    benchmarks.overlaps.push_back(overlap);
  }
}

void plan_power(Benchmarks& benchmarks, int gpus) {
  PowerBenchmark mix;
  mix.size = {8192, 8192, 8192, 1};
  mix.bytes = 512 * MiB;
  benchmarks.power.push_back(mix);
  for (double rest_ms : {0.5, 1.0, 1.5, 2.0, 40.0}) {
    mix.rest_ns = rest_ms * 1e6;
    benchmarks.power.push_back(mix);
  }
  mix.rest_ns = 0;
  for (int kernels : {12, 24}) {
    mix.kernels = kernels;
    benchmarks.power.push_back(mix);
  }
  mix.kernels = 0;
  for (int collectives : {2, 3}) {
    mix.collectives = collectives;
    if (gpus > 1) benchmarks.power.push_back(mix);
  }
}

// --- How a profile comes of it -------------------------------------------------------------------------

// The peak at which the small model gives this matmul its measured time.
double peak_of(const GemmBenchmark& gemm, GemmTable table, const DeviceCosts& device) {
  double low = 1e-3, high = 1e9;
  for (int halving = 0; halving < 100; ++halving) {
    table.peak_flops_per_ns = std::sqrt(low * high);
    (gemm_model_ns(gemm.size, gemm.dtype, table, device) > gemm.ns ? low : high) = table.peak_flops_per_ns;
  }
  return table.peak_flops_per_ns;
}

GemmTable fit_gemms(const std::vector<GemmBenchmark>& gemms, const DeviceCosts& device) {
  GemmTable table;
  double best = 0;
  for (const GemmBenchmark& gemm : gemms) {
    table.points.push_back({gemm.size, gemm.ns, gemm.beside_ns});
    best = std::max(best, gemm.flops() / gemm.ns);
  }
  // Fixed: what is left of the shortest when its products are taken off.
  const GemmBenchmark& shortest =
      *std::min_element(gemms.begin(), gemms.end(), [](const auto& a, const auto& b) { return a.ns < b.ns; });
  table.fixed_ns = std::max(0.0, shortest.ns - shortest.flops() / best);
  // Peak: the median over the matmuls that are long and come within a tenth of the best.
  std::vector<double> peaks;
  for (const GemmBenchmark& gemm : gemms) {
    if (gemm.flops() / gemm.ns >= 0.9 * best) peaks.push_back(peak_of(gemm, table, device));
  }
  std::nth_element(peaks.begin(), peaks.begin() + peaks.size() / 2, peaks.end());
  table.peak_flops_per_ns = peaks[peaks.size() / 2];
  return table;
}

// How much slower each of two goes while both run, from their ends alone and together: the one that ends
// first was slowed all the time, the other only until then.
struct Slowdowns {
  double first = 1, second = 1;
};
Slowdowns slowdowns_of(double first_alone, double second_alone, double first_together, double second_together) {
  if (first_together > second_together) {
    const Slowdowns swapped = slowdowns_of(second_alone, first_alone, second_together, first_together);
    return {swapped.second, swapped.first};
  }
  // `second` had this much of its work done when `first` ended.
  const double done = second_alone - (second_together - first_together);
  const double second = done > 0 ? first_together / done : 1;
  return {std::max(1.0, first_together / first_alone), std::max(1.0, second)};
}

std::vector<Contention> fit_contention(const std::vector<OverlapBenchmark>& overlaps) {
  std::map<int, Contention> by_ranks;
  for (const OverlapBenchmark& overlap : overlaps) {
    Contention& factors = by_ranks[overlap.ranks];
    factors.ranks = overlap.ranks;
    const Slowdowns slowdowns = slowdowns_of(overlap.compute_alone_ns, overlap.collectives_alone_ns,
                                             overlap.compute_together_ns, overlap.collectives_together_ns);
    const bool of_gemm = overlap.compute == OverlapBenchmark::Compute::gemm;
    (of_gemm ? factors.gemm_by_collective : factors.memory_by_collective) = slowdowns.first;
    (of_gemm ? factors.collective_by_gemm : factors.collective_by_memory) = slowdowns.second;
  }
  std::vector<Contention> contention;
  for (const auto& [ranks, factors] : by_ranks) contention.push_back(factors);
  return contention;
}

void put(Curve& curve, Bytes bytes, double ns) {
  const auto place = std::lower_bound(curve.begin(), curve.end(), bytes,
                                      [](const CurvePoint& point, Bytes wanted) { return point.bytes < wanted; });
  if (place != curve.end() && place->bytes == bytes) {
    place->ns = ns;
  } else {
    curve.insert(place, {bytes, ns});
  }
}

base::Error bad(const std::string& what, double ns) {
  return base::Error{base::text("calibration: ", what, " was measured as ", ns, " ns; measure it again")};
}

base::Status check_collectives(const Benchmarks& measured) {
  for (const CollectiveBenchmark& collective : measured.collectives) {
    if (collective.ns > 0) continue;
    return bad(base::text(program::name_of(collective.kind), " of ", collective.bytes, " bytes over ", collective.ranks), collective.ns);
  }
  for (const OverlapBenchmark& overlap : measured.overlaps) {
    const double least = std::min({overlap.compute_alone_ns, overlap.collectives_alone_ns, overlap.compute_together_ns,
                                   overlap.collectives_together_ns});
    if (!(least > 0)) return bad(base::text("an overlap over ", overlap.ranks, " ranks"), least);
  }
  for (const RoomBenchmark& room : measured.rooms) {
    const double least = std::min(room.matmul_ns, room.collective_ns);
    if (!(least > 0)) return bad(base::text(program::name_of(room.kind), " beside ", room.matmul), least);
  }
  return base::Done{};
}

base::Status check(const Benchmarks& measured) {
  std::map<DType, int> gemms;
  for (const GemmBenchmark& gemm : measured.gemms) {
    ++gemms[gemm.dtype];
    if (!(gemm.ns > 0)) {
      return bad(base::text("a matmul of ", gemm.size.m, " x ", gemm.size.n, " x ", gemm.size.k), gemm.ns);
    }
  }
  for (DType dtype : {DType::bf16, DType::f32}) {
    if (gemms[dtype] == 0) return base::Error{base::text("calibration: no matmul in ", base::name_of(dtype), " was measured")};
  }
  std::map<std::string, int> kernels;
  for (const KernelBenchmark& kernel : measured.kernels) {
    ++kernels[kernel.kernel];
    if (!(kernel.ns > 0)) return bad(base::text(kernel.kernel, " of ", kernel.bytes, " bytes"), kernel.ns);
  }
  for (OpKind kind : {OpKind::pointwise, OpKind::reduction, OpKind::lookup, OpKind::copy, OpKind::fill}) {
    if (kernels[program::name_of(kind)] > 0) continue;
    return base::Error{base::text("calibration: no kernel of kind ", program::name_of(kind), " was measured")};
  }
  for (const PowerBenchmark& mix : measured.power) {
    if (!(mix.matmuls_ns > 0 && mix.window_ns > 0)) return bad("a mix of matmuls and pauses", std::min(mix.matmuls_ns, mix.window_ns));
  }
  return check_collectives(measured);
}

}  // namespace

Benchmarks plan(int gpus) {
  Benchmarks benchmarks;
  benchmarks.network.ranks_per_node = std::max(gpus, 1);
  plan_gemms(benchmarks);
  for (OpKind kind : {OpKind::pointwise, OpKind::reduction, OpKind::lookup, OpKind::copy, OpKind::fill}) {
    for (Bytes bytes : {4 * KiB, 64 * KiB, 1 * MiB, 4 * MiB, 16 * MiB, 64 * MiB, 256 * MiB, 1 * GiB}) {
      benchmarks.kernels.push_back({program::name_of(kind), bytes, 0});
    }
  }
  plan_collectives(benchmarks, gpus);
  plan_power(benchmarks, gpus);
  return benchmarks;
}

Benchmarks plan_windows(int gpus) {
  Benchmarks benchmarks;
  plan_collectives(benchmarks, gpus);
  for (OverlapBenchmark& overlap : benchmarks.overlaps) {
    overlap.kind = OpKind::reduce_scatter;
    if (overlap.compute != OverlapBenchmark::Compute::gemm) continue;
    for (const char* matmul : {"linear_forward", "linear_input_gradient", "linear_weight_gradient", "linear_forward_gelu", "linear_input_gradient_gelu"}) {
      for (OpKind kind : {OpKind::all_reduce, OpKind::reduce_scatter}) benchmarks.rooms.push_back({matmul, {8192, 8192, 2048, 1}, kind, overlap.ranks, 32 * MiB});
    }
  }
  return benchmarks;
}

base::Result<Windows> fit_windows(const Benchmarks& measured) {
  if (base::Status status = check_collectives(measured); !status.ok()) return status.as_error();
  Windows windows;
  for (const CollectiveBenchmark& collective : measured.collectives) {
    put(windows.collectives[collective.kind][collective.ranks], collective.bytes, collective.ns);
  }
  windows.contention = fit_contention(measured.overlaps);
  // Where it was not found once, over whatever ranks, it is not there
  for (const RoomBenchmark& room : measured.rooms) {
    const bool found = std::all_of(measured.rooms.begin(), measured.rooms.end(), [&](const RoomBenchmark& other) { return other.matmul != room.matmul || other.kind != room.kind || other.finds_room(); });
    if (found) windows.fit[room.matmul].insert(room.kind);
  }
  return windows;
}

std::string told(const std::vector<RoomBenchmark>& rooms) {
  std::string out;
  const RoomBenchmark* before = nullptr;
  for (const RoomBenchmark& room : rooms) {
    const bool others = before == nullptr || before->ranks != room.ranks;
    if (others || before->matmul != room.matmul) {
      out += before == nullptr ? "" : "; ";
      if (others) out += base::text("over ", room.ranks, " ranks ");
      out += base::text(room.matmul, " ", std::llround(room.matmul_ns / 1e3));
    }
    out += base::text(", ", program::name_of(room.kind), " ", std::llround(room.collective_ns / 1e3));
    before = &room;
  }
  return out;
}

base::Result<Profile> fit(const Benchmarks& measured) {
  if (base::Status status = check(measured); !status.ok()) return status.as_error();
  Profile profile;
  profile.name = measured.name;
  profile.made_at = measured.made_at;
  profile.origin = measured.origin;
  profile.host = measured.host;
  profile.device = measured.device;
  profile.network = measured.network;
  // Kernels first: the largest pointwise one says what the memory sustains, which matmuls are bounded by.
  for (const KernelBenchmark& kernel : measured.kernels) {
    const double more_ns = kernel.kernel == program::name_of(OpKind::copy) ? 0 : measured.among_others_ns;   // no kernel copies from the host
    put(profile.kernels[kernel.kernel], kernel.bytes, kernel.ns + more_ns);
  }
  const CurvePoint& largest = profile.kernels.at(program::name_of(OpKind::pointwise)).back();
  profile.device.memory_bytes_per_ns = static_cast<double>(largest.bytes) / largest.ns;
  profile.power = fit_power(measured.power, measured.idle_power);
  std::vector<GemmBenchmark> settled = measured.gemms;
  const auto peak = [&](const std::vector<GemmBenchmark>& gemms) { return fit_gemms(gemms, profile.device).peak_flops_per_ns; };
  settle_clock(settled, measured.power, peak, profile.device.memory_bytes_per_ns, profile.power);
  std::map<DType, std::vector<GemmBenchmark>> by_dtype;
  for (GemmBenchmark gemm : settled) {
    gemm.ns += measured.among_others_ns;
    if (gemm.beside_ns > 0) gemm.beside_ns += measured.among_others_ns;
    by_dtype[gemm.dtype].push_back(gemm);
  }
  for (const auto& [dtype, gemms] : by_dtype) profile.gemm[dtype] = fit_gemms(gemms, profile.device);
  for (const CollectiveBenchmark& collective : measured.collectives) {
    put(profile.collectives[collective.kind][collective.ranks], collective.bytes, collective.ns);
  }
  profile.contention = fit_contention(measured.overlaps);
  return profile;
}

}  // namespace shardbook::simulate
