#include "engine/simulate/calibrate_clock.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

namespace shardbook::simulate {

using base::DType;
using program::GemmSize;

namespace {

// How much of the limit, times the mix's length, is left when matmuls and rest have drawn theirs.
double left_of(const PowerBenchmark& mix, double fastest_ns, const PowerCosts& power) {
  const double rest_ns = std::max(0.0, mix.window_ns - mix.matmuls_ns - mix.collectives_ns - mix.kernels_ns);
  const double speed = power.fastest * fastest_ns / mix.matmul_ns();
  return mix.window_ns - mix.matmuls_ns * std::pow(speed, power.exponent) - power.idle * rest_ns;
}

double fastest_matmul_ns(const std::vector<PowerBenchmark>& mixes) {
  double fastest_ns = mixes.front().matmul_ns();
  for (const PowerBenchmark& mix : mixes) fastest_ns = std::min(fastest_ns, mix.matmul_ns());
  return fastest_ns;
}

// A mix as fast as the fastest has power to spare, and says nothing of the limit.
bool is_limited(const PowerBenchmark& mix, double fastest_ns) {
  constexpr double clearly = 0.985;
  return fastest_ns / mix.matmul_ns() < clearly;
}

// The speed of the mixes' matmul by the GPU's clock: in proportion near the limit, and less above it (experiments/contention, "never-stays"). Of
// mixes that only rest: without a pause, the fastest that the limit still slows down, and the fastest of all. Empty where no clock is told.
using SpeedByClock = std::map<double, double>;
SpeedByClock speed_by_clock(const std::vector<PowerBenchmark>& mixes, const PowerCosts& power) {
  const double fastest_ns = fastest_matmul_ns(mixes);
  const PowerBenchmark *limited = nullptr, *fastest = nullptr;
  for (const PowerBenchmark& mix : mixes) {
    if (mix.collectives + mix.kernels > 0) continue;
    if (mix.matmul_ns() == fastest_ns) fastest = &mix;
    if (is_limited(mix, fastest_ns) && (limited == nullptr || mix.matmul_ns() < limited->matmul_ns())) limited = &mix;
  }
  SpeedByClock speeds;
  for (const PowerBenchmark* mix : {&mixes.front(), limited, fastest}) {
    if (mix == nullptr || mix->clock <= 0) return {};
    const double speed = power.fastest * fastest_ns / mix->matmul_ns();
    // Mixes too much alike to tell one from the other by noisy clocks
    if (!speeds.empty() && (mix->clock <= speeds.rbegin()->first || speed <= speeds.rbegin()->second)) continue;
    speeds[mix->clock] = speed;
  }
  return speeds;
}

double speed_at(const SpeedByClock& speeds, double clock) {
  const auto above = speeds.lower_bound(clock);
  if (above == speeds.end()) return speeds.rbegin()->second;
  if (above == speeds.begin()) return above->second * clock / above->first;
  const auto below = std::prev(above);
  const double part = std::log(clock / below->first) / std::log(above->first / below->first);
  return below->second * std::pow(above->second / below->second, part);
}

// At which speed a matmul's own train ran, and what it did meanwhile.
struct Train {
  std::size_t gemm;
  double speed, of_peak, of_bandwidth;
};

// A train that runs below the fastest draws just the limit at its speed, and so speed^-exponent of it at speed one: of many, least squares.
void fit_draws(const std::vector<Train>& trains, PowerCosts& power) {
  constexpr double clearly = 0.97;
  constexpr int fewest = 8;
  double rates = 0, both = 0, bytes = 0, by_rate = 0, by_bytes = 0;
  int limited = 0;
  for (const Train& one : trains) {
    if (one.speed >= clearly * power.fastest) continue;
    const double rate = std::min(1.0, one.of_peak), moved = std::min(1.0, one.of_bandwidth), beyond_idle = std::pow(one.speed, -power.exponent) - power.idle;
    rates += rate * rate, both += rate * moved, bytes += moved * moved;
    by_rate += rate * beyond_idle, by_bytes += moved * beyond_idle;
    ++limited;
  }
  const double determinant = rates * bytes - both * both;
  if (limited < fewest || determinant <= 1e-3 * rates * bytes) return;
  const double moving = (rates * by_bytes - both * by_rate) / determinant;
  power.moving = std::max(0.0, moving);
  power.multiplying = (by_rate - both * power.moving) / rates;
}

}  // namespace

PowerCosts fit_power(const std::vector<PowerBenchmark>& mixes, double idle) {
  PowerCosts power;
  if (mixes.empty()) return power;
  const double fastest_ns = fastest_matmul_ns(mixes);
  const auto rests = [](const PowerBenchmark& mix) { return mix.collectives + mix.kernels == 0; };
  if (std::count_if(mixes.begin(), mixes.end(), [&](const auto& mix) { return rests(mix) && is_limited(mix, fastest_ns); }) < 2) return power;
  power.idle = idle;
  double least = -1;
  PowerCosts best = power;
  for (power.exponent = 1.2; power.exponent < 3.51; power.exponent += 0.02) {
    for (power.fastest = 1; power.fastest < 1.5; power.fastest += 0.002) {
      double off = 0;
      for (const PowerBenchmark& mix : mixes) {
        if (rests(mix) && is_limited(mix, fastest_ns)) off += std::pow(left_of(mix, fastest_ns, power) / mix.window_ns, 2);
      }
      if (least >= 0 && off >= least) continue;
      least = off;
      best = power;
    }
  }
  power = best;
  const auto drawn = [&](double PowerBenchmark::*ns) {
    double left = 0, over = 0;
    for (const PowerBenchmark& mix : mixes) {
      if (mix.*ns <= 0 || !is_limited(mix, fastest_ns)) continue;
      left += left_of(mix, fastest_ns, power);
      over += mix.*ns;
    }
    return over > 0 ? std::clamp(left / over, power.idle, 1.0) : power.idle;
  };
  power.communication = drawn(&PowerBenchmark::collectives_ns);
  power.memory = drawn(&PowerBenchmark::kernels_ns);
  return power;
}

void settle_clock(std::vector<GemmBenchmark>& gemms, const std::vector<PowerBenchmark>& mixes, const PeakOf& peak_of, double bytes_per_ns,
                  PowerCosts& power) {
  if (power.exponent <= 0) return;
  const SpeedByClock speeds = speed_by_clock(mixes, power);
  const GemmSize size = mixes.front().size;
  const auto same = std::find_if(gemms.begin(), gemms.end(), [&](const GemmBenchmark& gemm) {
    return gemm.dtype == DType::bf16 && gemm.size.m == size.m && gemm.size.n == size.n && gemm.size.k == size.k && gemm.size.batch == size.batch;
  });
  if (same == gemms.end()) return;
  if (speeds.empty() || same->cycles <= 0) {
    power.train = std::min(power.fastest, power.fastest * fastest_matmul_ns(mixes) / same->ns);
    return;
  }
  power.train = 1;
  const std::vector<GemmBenchmark> measured = gemms;
  // What one draws is told by its rate, and that by the speed at which it draws so much: a few turns.
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<GemmBenchmark> alike;
    std::copy_if(gemms.begin(), gemms.end(), std::back_inserter(alike), [](const GemmBenchmark& gemm) { return gemm.dtype == DType::bf16; });
    const double peak = peak_of(alike);
    std::vector<Train> trains;
    for (std::size_t i = 0; i < gemms.size(); ++i) {
      const GemmBenchmark& was = measured[i];
      if (was.dtype != DType::bf16 || was.cycles <= 0) continue;
      trains.push_back({i, speed_at(speeds, was.cycles / was.ns), was.flops() / (gemms[i].ns * peak), was.bytes() / (gemms[i].ns * bytes_per_ns)});
    }
    fit_draws(trains, power);
    for (const Train& one : trains) {
      const double longer = one.speed / speed_in_train(power, drawn_by_matmul(power, one.of_peak, one.of_bandwidth));
      gemms[one.gemm].ns = measured[one.gemm].ns * longer;
      gemms[one.gemm].beside_ns = measured[one.gemm].beside_ns * longer;
    }
  }
}

}  // namespace shardbook::simulate
