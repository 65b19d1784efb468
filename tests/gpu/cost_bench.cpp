// cost_bench: what does each way of issuing, timing and watching cost?
//
//   cost_bench step [MODEL SEQUENCES TURNS STEPS_A_TURN]    a step, to the host that issues it
//   cost_bench trace [MODEL SEQUENCES TURNS STEPS_A_TURN]   tracing, to a step
//   cost_bench gap                                          an op's period on a stream, and in a graph
//   cost_bench marks                                        a mark between two ops, by kind of mark
//   cost_bench calls                                        a collective, to the host that issues it: 2 GPUs, or SHARDBOOK_TEST_ONE_GPU=1
//   cost_bench log                                          a call that is written down for the watch; no GPU
//
// Figures, and no judgement: what can be counted (that nothing is allocated, or written down) tests count. What is compared is
// measured in turns within one run, and medians are said, since a machine's pace changes by more than what is looked for.
#include "tests/gpu/cost_bench.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "engine/comm/flight.hpp"
#include "engine/comm/nccl/nccl.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/device/host/host_device.hpp"
#include "engine/world/processes.hpp"
#include "engine/world/spawn.hpp"
#include "tests/gpu/training_rank.hpp"

namespace shardbook::cost {

using base::DType;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// ---- A call that is written down -------------------------------------------------------------------

// Beside it stands what the clock alone costs, which is read once a call.
void of_the_log() {
  comm::Flight flight;
  comm::FlightLog& log = flight.add({"tp", {0, 1}, 0, 0});
  device::HostDevice device({DType::f32, DType::f32}, 0, 0);
  device::Stream& stream = device.create_stream("comm");
  const program::OpDesc desc = program::OpDesc("all_reduce", program::OpKind::all_reduce, DType::f32).collective_of({0, 0, 64, -1});
  constexpr std::uint64_t times = 20000;
  const auto each_ns = [](auto act) {
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
      const base::Nanoseconds begin = program::host_now();
      for (std::uint64_t i = 0; i < times; ++i) act();
      best = std::min(best, static_cast<double>(program::host_now() - begin) / static_cast<double>(times));
    }
    return best;
  };
  std::uint64_t ticket = 0;
  std::int64_t step = 0;
  volatile base::Nanoseconds seen = 0;
  const double call = each_ns([&] { log.called(ticket, stream, desc, 0, {}), log.issued(ticket), ++ticket; });
  const double steps = each_ns([&] { flight.step_issued(step++); });
  const double clock = each_ns([&] { seen = program::host_now(); });
  std::printf("%.0f ns a call, of which the clock %.0f ns; %.1f ns a step and communicator (least of 5 rounds)\n", call, clock, steps);
}

// ---- A collective ----------------------------------------------------------------------------------

namespace {

void calls_of_a_rank(world::World& world) {
  const int calls = gpu_test::one_gpu_for_all() ? 30 : 200, rounds = 3;
  mesh::Group everyone{"tp", {}, world.rank(), 0};
  for (int rank = 0; rank < world.size(); ++rank) everyone.ranks.push_back(rank);
  for (const bool blocking : {false, true}) {
    for (const bool marks : {false, true}) {
      comm::NcclOptions options;
      options.blocking_calls = blocking;
      options.mark_ends = marks;
      const std::unique_ptr<device::Device> device = gpu_test::device_of(world);
      device::Stream& stream = device->create_stream("compute");
      const std::unique_ptr<comm::Backend> backend = comm::make_nccl_backend(world, *device, options);
      const world::FailureHook stop = world.on_failure([&backend] { backend->abort(); });
      device->set_watch([&backend] { backend->check(); });
      const auto all = backend->communicator(*device, everyone);
      const tensor::Tensor small = tensor::allocate(*device, {1024}, DType::f32, program::MemoryKind::activation, "small");
      device->seal();
      base::Nanoseconds least_issue = INT64_MAX, least_all = INT64_MAX;
      for (int round = 0; round < rounds; ++round) {
        world.barrier();
        const base::Nanoseconds begin = world::now();
        for (int i = 0; i < calls; ++i) all->all_reduce(stream, small, small);
        least_issue = std::min(least_issue, world::now() - begin);
        device->synchronize();
        least_all = std::min(least_all, world::now() - begin);
      }
      if (world.rank() > 0) continue;
      std::printf("%s calls, %s marks: %.2f us a call to issue, %.1f us until done (least of %d rounds)\n", blocking ? "blocking" : "non-blocking", marks ? "with" : "without",
                  1e-3 * static_cast<double>(least_issue) / calls, 1e-3 * static_cast<double>(least_all) / calls, rounds);
      std::fflush(stdout);
    }
  }
}

}  // namespace

int of_calls() {
  const base::Result<world::Launch> launch = world::from_environment(world::process_environment());
  if (!launch) throw base::Failure(launch.error());
  if (launch.value().launcher == world::Launcher::none) {
    if (!gpu_test::has_gpus_for(2)) throw base::Failure("calls needs 2 GPUs, or one and SHARDBOOK_TEST_ONE_GPU=1");
    const base::Result<world::SpawnOutcome> ended = world::spawn_processes(world::own_program(), {"calls"}, 2);
    if (!ended) throw base::Failure(ended.error());
    return ended.value().exit_code;
  }
  const base::Status ran = world::run_process(launch.value(), calls_of_a_rank);
  if (!ran) throw base::Failure(ran.error());
  return 0;
}

}  // namespace shardbook::cost

int main(int count, char** words) {
  using namespace shardbook;
  const std::string_view asked = count > 1 ? words[1] : "";
  try {
    if (asked == "step") cost::of_steps(count - 2, words + 2);
    else if (asked == "trace") cost::of_tracing(count - 2, words + 2);
    else if (asked == "gap") cost::of_gaps();
    else if (asked == "marks") cost::of_marks();
    else if (asked == "calls") return cost::of_calls();
    else if (asked == "log") cost::of_the_log();
    else throw base::Failure("ask for step, trace, gap, marks, calls or log");
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "cost_bench: %s\n", problem.what());
    return 1;
  }
  return 0;
}
