// simulate/calibrate_clock: what does a GPU draw, and at which clock did it multiply, of what `calibrate` measured?
//
// Mixes of matmuls with what draws less tell the limit on power (clock.hpp). Matmuls of a train are measured within half a second, in which
// the clock is anywhere within a twentieth of its mean; so each tells its cycles, and mixes tell how fast a matmul is by the clock.
#pragma once

#include <functional>
#include <vector>

#include "engine/simulate/calibrate.hpp"
#include "engine/simulate/clock.hpp"

namespace shardbook::simulate {

// The exponent, and the speed of the fastest matmuls, with which the mixes that only rest come nearest to drawing the limit,
// of a grid; then what collectives and other kernels draw where they fill the pauses.
PowerCosts fit_power(const std::vector<PowerBenchmark>& mixes, double idle);

// What matmuls draw (power.multiplying, power.moving), of the clocks of their trains; and gives each bf16 matmul whose cycles are known the
// time that it takes at the speed that a settled clock has in its train, for which models take it (power.train is 1 then). `peak_of` says
// what peak such matmuls have, flops a nanosecond. Where no mix tells the clock, all stay as they were measured, and power.train is told
// by the time of the mixes' matmul; where fewer than eight trains were slowed down, what they draw is not told.
using PeakOf = std::function<double(const std::vector<GemmBenchmark>&)>;
void settle_clock(std::vector<GemmBenchmark>& gemms, const std::vector<PowerBenchmark>& mixes, const PeakOf& peak_of, double bytes_per_ns,
                  PowerCosts& power);

}  // namespace shardbook::simulate
