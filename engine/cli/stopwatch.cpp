#include "engine/cli/stopwatch.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "engine/device/cuda/cuda_device.hpp"
#include "engine/kernels/initialize.hpp"

namespace shardbook::cli {

using base::Nanoseconds;
using program::host_now;

namespace {

constexpr double wanted_ns = 12e6;   // of ops a run
constexpr int fewest = 3, most = 150;
constexpr int queued = 900;   // a device queues 1024 ops; who waits for room in its queue is not ahead
constexpr int tries = 5;

}  // namespace

Stopwatch::Stopwatch(world::World& world, device::Device& device, device::Stream& stream, const tensor::Tensor& hold_up)
    : world_(world), device_(device), stream_(stream), hold_up_(hold_up) {
  const Issue fill = [&] { kernels::fill(stream_, hold_up_, 0.5f); };
  run_ns(fill, 2, 0);
  fill_ns_ = std::max(1.0, (run_ns(fill, 8, 0) - run_ns(fill, 2, 0)) / 6);
  fill_ns_ = over_ranks(fill_ns_, Over::median);
}

void Stopwatch::await_all() {
  device_.synchronize();
  world_.barrier();
}

double Stopwatch::run_ns(const Issue& issue, int count, int fills) {
  await_all();
  const Nanoseconds begin = host_now();
  for (int i = 0; i < fills; ++i) kernels::fill(stream_, hold_up_, 0.5f);
  for (int i = 0; i < count; ++i) issue();
  device_.synchronize();
  return static_cast<double>(host_now() - begin);
}

double Stopwatch::period_ns(const Issue& issue, Over over, int ops) { return period(issue, over, ops, 0).ns; }

Stopwatch::Settled Stopwatch::settled_period(const Issue& issue, double settled_after_ns) { return period(issue, Over::median, 1, settled_after_ns); }

Stopwatch::Settled Stopwatch::period(const Issue& issue, Over over, int ops, double settled_after_ns) {
  // A first look: what issuing costs the host, and what all of it takes.
  run_ns(issue, 2, 0);
  const Nanoseconds begin = host_now();
  for (int i = 0; i < 4; ++i) issue();
  const double issue_ns = static_cast<double>(host_now() - begin) / 4;
  device_.synchronize();
  const double whole_ns = static_cast<double>(host_now() - begin) / 4;

  // Rank 0 decides how often, how long the stream is held up, and how many runs go before.
  const int count = std::clamp(static_cast<int>(wanted_ns / 3 / whole_ns), fewest, std::max(fewest, std::min(most, queued / (3 * ops))));
  const int fills = whole_ns > 4 * issue_ns ? 0 : 1 + static_cast<int>(std::ceil(1.5 * 3 * count * issue_ns / fill_ns_));
  const int before = static_cast<int>(std::ceil(settled_after_ns / (3 * count * whole_ns)));
  std::istringstream decided(world_.broadcast(base::text(count, " ", fills, " ", before), 0));
  int n = 0, held = 0, settling = 0;
  decided >> n >> held >> settling;
  for (int i = 0; i < settling; ++i) run_ns(issue, 3 * n, 0);

  // On a busy machine noise may be larger than so few ops: then more of them.
  const auto clock = [&] { return settled_after_ns > 0 ? this->clock() : 0; };
  Settled period;
  for (int attempt = 0; attempt < 5 && period.ns <= 0; ++attempt, n *= 4, held *= 4) {
    std::vector<double> periods, cycles;
    double before_few = clock();
    for (int i = 0; i < tries; ++i) {
      const double few = run_ns(issue, n, held), between = clock();
      const double many = run_ns(issue, 3 * n, held), behind = clock();
      periods.push_back((many - few) / (2 * n));
      cycles.push_back((many * (between + behind) - few * (before_few + between)) / 2 / (2 * n));
      before_few = behind;
    }
    period = {over_ranks(median(periods), over), over_ranks(median(cycles), over)};
  }
  return period;
}

double Stopwatch::clock() { return device_.kind() == device::Kind::cuda ? device::cuda_clock(device_) : 0; }

double Stopwatch::host_ns(const Issue& issue, int count, int per_issue, int chosen) {
  await_all();
  device_.begin_step(step_++, false);
  for (int i = 0; i < count; ++i) issue();
  const std::vector<program::TimeSpan> issued = device_.end_step().issued;
  device_.synchronize();
  std::vector<double> between;
  for (std::size_t i = static_cast<std::size_t>(chosen); i + 1 < issued.size(); i += static_cast<std::size_t>(per_issue)) {
    between.push_back(static_cast<double>(issued[i + 1].start - issued[i].start));
  }
  return over_ranks(median(between), Over::median);
}

Stopwatch::CallCosts Stopwatch::call_costs(const Issue& issue, int steps) {
  using program::CommandKind;
  using program::OpKind;
  CallCosts costs;
  const std::vector<double CallCosts::*> kinds{&CallCosts::kernel, &CallCosts::gemm, &CallCosts::collective,
                                               &CallCosts::record, &CallCosts::wait};
  std::vector<std::vector<double>> by_kind(kinds.size());
  for (int step = 0; step < steps; ++step) {
    await_all();
    device_.begin_step(step_++, false);
    issue();
    const program::StepTimes times = device_.end_step();
    device_.synchronize();
    const program::Program& program = *device_.recorder().programs()[times.program];
    std::vector<double> sums(kinds.size(), 0), counts(kinds.size(), 0);
    for (std::size_t at = 0; at + 1 < times.issued.size(); ++at) {
      const program::Command& command = program.commands[at];
      std::size_t kind = 0;
      if (command.kind == CommandKind::record_event) kind = 3;
      else if (command.kind == CommandKind::wait_event) kind = 4;
      else if (program.ops[command.op].desc.kind == OpKind::gemm) kind = 1;
      else if (program::class_of(program.ops[command.op].desc.kind) == program::OpClass::communication) kind = 2;
      sums[kind] += static_cast<double>(times.issued[at + 1].start - times.issued[at].start);
      ++counts[kind];
    }
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      if (counts[kind] > 0) by_kind[kind].push_back(sums[kind] / counts[kind]);
    }
  }
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    costs.*kinds[kind] = over_ranks(by_kind[kind].empty() ? 0 : median(by_kind[kind]), Over::median);
  }
  return costs;
}

program::StepTimes Stopwatch::timed(const Issue& issue) {
  await_all();
  device_.begin_step(step_++, true);
  issue();
  return device_.end_step();
}

program::StepTimes Stopwatch::timed_among_untimed(const Issue& issue) {
  for (int untimed = 0; untimed < 2; ++untimed) {
    device_.synchronize();
    device_.begin_step(step_++, false);
    issue();
    device_.end_step();
  }
  return timed(issue);
}

double Stopwatch::median(std::vector<double> values) {
  SHARDBOOK_CHECK(!values.empty(), "the median of nothing");
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double Stopwatch::over_ranks(double mine, Over over) {
  std::vector<double> all;
  for (const std::string& text : world_.all_gather(base::text(mine))) all.push_back(std::stod(text));
  return over == Over::largest ? *std::max_element(all.begin(), all.end()) : median(all);
}

}  // namespace shardbook::cli
