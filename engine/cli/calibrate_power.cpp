#include "engine/cli/calibrate_power.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace shardbook::cli {

using base::Nanoseconds;
using simulate::PowerBenchmark;

namespace {

using AllGather = std::function<void(base::Bytes)>;

// One mix; its spans are added up in `mix`.
void run(PowerBenchmark& mix, device::Device& device, device::Stream& compute, Benches& benches, Stopwatch& watch, const AllGather& all_gather) {
  const Nanoseconds begin = program::host_now();
  const base::Bytes bytes = std::min(mix.bytes, benches.largest_buffer());
  const program::StepTimes times = watch.timed([&] {
    for (int n = 0; n < mix.matmuls; ++n) benches.gemm({mix.size, base::DType::bf16, 0});
    for (int n = 0; n < mix.collectives; ++n) all_gather(bytes);
    for (int n = 0; n < mix.kernels; ++n) benches.pointwise(compute, mix.bytes);
  });
  device.synchronize();
  mix.clock += watch.clock();
  if (mix.rest_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(std::llround(mix.rest_ns)));
  for (std::size_t at = 0; at < times.ran.size(); ++at) {
    const double ns = static_cast<double>(times.ran[at].end - times.ran[at].start);
    const std::size_t computed = static_cast<std::size_t>(mix.matmuls), communicated = computed + static_cast<std::size_t>(mix.collectives);
    (at < computed ? mix.matmuls_ns : at < communicated ? mix.collectives_ns : mix.kernels_ns) += ns;
  }
  mix.window_ns += static_cast<double>(program::host_now() - begin);
}

}  // namespace

void measure_power(PowerBenchmark& mix, device::Device& device, device::Stream& compute, Benches& benches, Stopwatch& watch,
                   const AllGather& all_gather) {
  PowerBenchmark trial = mix;
  run(trial, device, compute, benches, watch, all_gather);
  const double one_ns = watch.over_ranks(trial.window_ns, Stopwatch::Over::largest);
  const auto times = [&](double ns) { return std::max(1, static_cast<int>(std::ceil(ns / one_ns))); };
  for (int n = times(mix.settled_after_ns); n > 0; --n) run(trial, device, compute, benches, watch, all_gather);
  const int mixes = times(mix.measured_ns);
  for (int n = 0; n < mixes; ++n) run(mix, device, compute, benches, watch, all_gather);
  for (double* sum : {&mix.window_ns, &mix.matmuls_ns, &mix.collectives_ns, &mix.kernels_ns, &mix.clock}) {
    *sum = watch.over_ranks(*sum, Stopwatch::Over::median) / mixes;
  }
}

}  // namespace shardbook::cli
