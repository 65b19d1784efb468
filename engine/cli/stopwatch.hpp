// cli/stopwatch: how long does an op take, as a machine profile wants it?
//
// A *period* is the time from start to start of one op issued back to back on one stream with the host far ahead
// (simulate/profile.hpp). It is measured without marks on the device: n ops and 3n ops are issued and awaited, and
// the difference of the two times over 2n is the period; what starting and awaiting cost is in both. Where issuing
// takes longer than running, the stream is first held up by large fills, so that the ops run back to back behind them.
//
// Every rank of the world calls everything here alike: numbers of repetitions are rank 0's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/device/device.hpp"
#include "engine/tensor/tensor.hpp"
#include "engine/world/world.hpp"

namespace shardbook::cli {

// From the end of one op to the start of the next on its stream. No call of the device tells it: marks between two ops
// would stand in the gap. Periods hold it, so a wrong figure here moves the end of a span, not the time of a step.
inline constexpr double assumed_gap_ns = 800;

class Stopwatch {
 public:
  using Issue = std::function<void()>;

  // `hold_up` is what the fills fill, on `stream`. Measures a fill. REQUIRES: the device is sealed.
  Stopwatch(world::World& world, device::Device& device, device::Stream& stream, const tensor::Tensor& hold_up);

  // Period of one `issue()` on the stream, in ns: the median over ranks, or the largest for what ranks do together. It makes `ops` ops,
  // of which the device must be able to queue some dozens of issues.
  enum class Over { median, largest };
  double period_ns(const Issue& issue, Over over = Over::median, int ops = 1);
  // The same of one op that runs for about `settled_after_ns` before it is measured: what draws much power slows the clock down, but not at
  // once. And of how many cycles it is, by the clock between runs of it.
  struct Settled {
    double ns = 0, cycles = 0;
  };
  Settled settled_period(const Issue& issue, double settled_after_ns);

  // Cycles a nanosecond of this device's clock now; 0 of one that tells none. REQUIRES: it is idle.
  double clock();

  // The host's time from the entry of one call to the entry of the next, in ns, while a step is recorded: the median
  // over `count` commands that issue() makes. `per_issue` commands belong to one issue(); the chosen one counts.
  double host_ns(const Issue& issue, int count, int per_issue = 1, int chosen = 0);

  // The host's time by kind of call, in ns, in steps of what issue() makes: the mean within a step, from the entry of
  // each call to that of the next; the median over `steps` steps; the median over ranks. 0 for kinds that issue()
  // does not make. The device is idle when a step begins, so its queue never holds the host up.
  struct CallCosts {
    double kernel = 0, gemm = 0, collective = 0, record = 0, wait = 0;
  };
  CallCosts call_costs(const Issue& issue, int steps);

  // One timed step of what `issue` issues: device times of its ops, in the order of issue. Its marks are events as likely as not, which
  // hold the stream up longer than a training step's: where spans are compared with each other, or are long, that makes no difference.
  program::StepTimes timed(const Issue& issue);
  // The same behind two untimed ones, of which the device learns how far its host is ahead, as it does in training.
  program::StepTimes timed_among_untimed(const Issue& issue);

  // Until this device is idle, and every rank is here.
  void await_all();
  // The middle of several, and over ranks.
  static double median(std::vector<double> values);
  double over_ranks(double mine, Over over);

 private:
  double run_ns(const Issue& issue, int count, int fills);
  Settled period(const Issue& issue, Over over, int ops, double settled_after_ns);

  world::World& world_;
  device::Device& device_;
  device::Stream& stream_;
  tensor::Tensor hold_up_;
  double fill_ns_ = 1e9;
  std::int64_t step_ = 0;
};

}  // namespace shardbook::cli
