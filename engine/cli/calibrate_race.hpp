// cli/calibrate_race: a sum over ranks and a weight gradient become ready at one event; which of them is let in first?
//
// As in the backward of a linear that is cut by columns: the input gradient, its sum, and the weight gradient, which needs nothing of
// that. Either may be first, and differs from one time to the next (experiments/contention, "Leaving room"). Who comes second is seen
// by how long the weight gradient takes: as alone, or slowed while the sum lasts.
#pragma once

#include <functional>
#include <map>

#include "engine/cli/calibrate_benches.hpp"
#include "engine/cli/stopwatch.hpp"

namespace shardbook::cli {

// Of what weight gradients took beside a sum, the part that came second: was slowed by half of `longer_ns` at least.
double part_that_came_second(const std::vector<double>& took_ns, double alone_ns, double longer_ns);

class Race {
 public:
  // A collective over the largest group, of so many bytes. Every rank calls all of this alike.
  using Collective = std::function<void(program::OpKind kind, device::Lane lane, base::Bytes bytes)>;
  Race(device::Device& device, device::Stream& compute, device::Stream& comm, device::Event first, device::Event second, Benches& benches, Stopwatch& watch,
       Collective collective)
      : device_(device), compute_(compute), comm_(comm), begin_(first), ready_(second), benches_(benches), watch_(watch), collective_(std::move(collective)) {}

  // In which part of all attempts the weight gradient came second, the mean over ranks; −1: it would not be seen. `factor`: by how
  // much it takes longer beside a collective that lasts as long. In bf16, its sizes outputs x inputs x tokens.
  double comes_second(program::GemmSize weight_gradient, double factor);

 private:
  // What the weight gradient takes, in ns, with the sum or without.
  double once(program::GemmSize weight_gradient, base::Bytes sum);
  double sum_ns(base::Bytes bytes);

  device::Device& device_;
  device::Stream& compute_;
  device::Stream& comm_;
  device::Event begin_, ready_;
  Benches& benches_;
  Stopwatch& watch_;
  Collective collective_;
  std::map<base::Bytes, double> sums_ns_;
};

}  // namespace shardbook::cli
