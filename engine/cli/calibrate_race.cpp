#include "engine/cli/calibrate_race.hpp"

#include <algorithm>

namespace shardbook::cli {

using base::Bytes;
using program::GemmSize;
using program::OpKind;

namespace {

constexpr int attempts = 16;
constexpr double clearly = 0.1, clearly_ns = 3e3;   // how much longer it must take, of its time alone, and at least
constexpr Bytes least = Bytes{1} << 20, most = Bytes{1} << 27;

}  // namespace

double part_that_came_second(const std::vector<double>& took_ns, double alone_ns, double longer_ns) {
  const auto second = std::count_if(took_ns.begin(), took_ns.end(), [&](double ns) { return ns > alone_ns + longer_ns / 2; });
  return static_cast<double>(second) / static_cast<double>(took_ns.size());
}

double Race::once(GemmSize weight_gradient, Bytes sum) {
  const program::StepTimes times = watch_.timed_among_untimed([&] {
    // All is issued before the first may begin
    collective_(OpKind::all_gather, comm_, std::min(most, benches_.largest_buffer()));
    device_.record(comm_, begin_);
    device_.wait(compute_, begin_);
    benches_.input_gradient(weight_gradient);
    device_.record(compute_, ready_);
    device_.wait(comm_, ready_);
    if (sum > 0) collective_(OpKind::all_reduce, comm_, sum);
    benches_.weight_gradient(weight_gradient);
  });
  return static_cast<double>(times.ran.back().end - times.ran.back().start);
}

double Race::sum_ns(Bytes bytes) {
  const auto [found, is_new] = sums_ns_.try_emplace(bytes);
  if (is_new) found->second = watch_.period_ns([&] { collective_(OpKind::all_reduce, compute_, bytes); }, Stopwatch::Over::largest);
  return found->second;
}

double Race::comes_second(GemmSize weight_gradient, double factor) {
  if (!benches_.has_room_for_backward(weight_gradient)) return -1;
  std::vector<double> alone;
  for (int attempt = 0; attempt < attempts / 2; ++attempt) alone.push_back(once(weight_gradient, 0));
  const double alone_ns = watch_.over_ranks(Stopwatch::median(alone), Stopwatch::Over::median);
  // The sum of the input gradient, but no shorter than half of the weight gradient
  const Bytes largest = std::min(most, benches_.largest_buffer());
  Bytes sum = std::clamp<Bytes>(2 * weight_gradient.k * weight_gradient.n, std::min(least, largest), largest);
  while (sum_ns(sum) < alone_ns / 2 && sum < largest) sum = std::min(2 * sum, largest);
  // While the sum lasts it is `factor` times as slow; half of what that makes it longer decides
  const double longer_ns = std::min(sum_ns(sum), alone_ns * factor) * (1 - 1 / factor);
  if (longer_ns < std::max(clearly_ns, clearly * alone_ns)) return -1;
  std::vector<double> took;
  for (int attempt = 0; attempt < attempts; ++attempt) took.push_back(once(weight_gradient, sum));
  return watch_.over_ranks(part_that_came_second(took, alone_ns, longer_ns), Stopwatch::Over::mean);
}

}  // namespace shardbook::cli
