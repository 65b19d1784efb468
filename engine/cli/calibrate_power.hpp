// cli/calibrate_power: mixes of large matmuls with what draws less power, for simulate/clock.hpp.
#pragma once

#include <functional>

#include "engine/cli/calibrate_benches.hpp"
#include "engine/cli/stopwatch.hpp"

namespace shardbook::cli {

// Runs the mix until the clock has settled, and then for as long as it asks, and puts into it what that took. `all_gather` is one of so many bytes
// over all ranks, on `compute`; every rank calls alike.
void measure_power(simulate::PowerBenchmark& mix, device::Device& device, device::Stream& compute, Benches& benches, Stopwatch& watch,
                   const std::function<void(base::Bytes)>& all_gather);

}  // namespace shardbook::cli
