#include "engine/simulate/clock.hpp"

#include <algorithm>
#include <cmath>

namespace shardbook::simulate {

namespace {

constexpr double slowest = 0.5;   // no mixture of kernels draws so much

// What all but the matmuls draw, over the step.
double drawn_beside_matmuls(const PowerCosts& power, const Load& load, double matmul_ns) {
  const double idle_ns = std::max(0.0, load.window_ns - matmul_ns - load.memory_ns);
  const double communication_ns = load.communication_ns - load.waiting_ns / 2;
  return power.memory * load.memory_ns + (power.communication - power.idle) * communication_ns + power.idle * idle_ns;
}

}  // namespace

double drawn_by_matmul(const PowerCosts& power, double of_peak, double of_bandwidth) {
  const double multiplying = power.multiplying > 0 ? power.multiplying : 1 - power.idle;
  return power.idle + multiplying * std::min(1.0, of_peak) + power.moving * std::min(1.0, of_bandwidth);
}

double speed_in_train(const PowerCosts& power, double drawn) { return std::min(power.fastest, power.train * std::pow(drawn, -1 / power.exponent)); }

double speed_of(const PowerCosts& power, const Load& load) {
  if (power.exponent <= 0 || load.matmul_power_ns <= 0) return power.fastest;
  const double left = load.window_ns - drawn_beside_matmuls(power, load, load.matmul_ns);
  if (left <= 0) return slowest;
  return std::clamp(std::pow(left / load.matmul_power_ns, 1 / power.exponent), slowest, power.fastest);
}

double speed_at_limit(const PowerCosts& power, const Load& load, double speed) {
  if (power.exponent <= 0 || load.matmul_power_ns <= 0) return power.fastest;
  const auto drawn = [&](double at) {
    const double longer = speed / at;
    return load.matmul_power_ns * longer * std::pow(at, power.exponent) + drawn_beside_matmuls(power, load, load.matmul_ns * longer);
  };
  double low = slowest, high = power.fastest;
  if (drawn(high) <= load.window_ns) return high;
  constexpr int halvings = 40;
  for (int halving = 0; halving < halvings; ++halving) {
    const double middle = (low + high) / 2;
    (drawn(middle) <= load.window_ns ? low : high) = middle;
  }
  return low;
}

}  // namespace shardbook::simulate
