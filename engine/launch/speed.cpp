#include "engine/launch/speed.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/launch/resolve.hpp"

namespace shardbook::launch {

namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Of the times of `steps`, those of the ten steps nearest to a traced one: a GPU at its power limit takes two to three seconds to find
// its clock, and what was before is faster.
std::vector<double> nearest(const std::vector<double>& times, const std::vector<std::size_t>& steps, const std::vector<std::size_t>& traced) {
  constexpr std::size_t most = 10;
  std::vector<std::pair<std::size_t, double>> by_distance;
  for (std::size_t at = 0; at < times.size(); ++at) {
    std::size_t least = SIZE_MAX;
    for (const std::size_t step : traced) least = std::min(least, step > steps[at] ? step - steps[at] : steps[at] - step);
    by_distance.emplace_back(least, times[at]);
  }
  std::stable_sort(by_distance.begin(), by_distance.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<double> out;
  for (std::size_t at = 0; at < std::min(most, by_distance.size()); ++at) out.push_back(by_distance[at].second);
  return out;
}

}  // namespace

double peak_flops(std::string_view device) {
  // Data sheets: dense bf16 with f32 sums. The longer name first where one holds another.
  struct Sheet {
    std::string_view name;
    double teraflops;
  };
  static constexpr Sheet sheets[] = {{"GB200", 2500}, {"B200", 2250}, {"H200", 989.4}, {"H100 NVL", 835}, {"H100 PCIe", 756}, {"H100", 989.4}, {"GH200", 989.4},
                                     {"A100", 312},   {"A30", 165},   {"L40S", 362}, {"L4", 121}, {"RTX 4090", 165.2}, {"RTX 3090", 71}};
  for (const Sheet& sheet : sheets) {
    const std::size_t at = device.find(sheet.name);
    if (at == std::string_view::npos) continue;
    // "L4" is not "L40"
    const std::size_t behind = at + sheet.name.size();
    if (behind < device.size() && device[behind] >= '0' && device[behind] <= '9') continue;
    return sheet.teraflops * 1e12;
  }
  return 0;
}

base::Nanoseconds took_alone(const program::StepTimes& times) {
  const base::Nanoseconds begin = times.issued.empty() ? times.window.start : times.issued.front().start;
  base::Nanoseconds end = begin;
  for (const program::TimeSpan& ran : times.ran) end = std::max(end, ran.end);
  return end - begin;
}

Speed speed_of(const config::RunConfig& config, const RankOutcome& rank, double resolved_step_ns,
               double traced_step_ns) {
  Speed speed;
  speed.clock = config.clock;
  speed.peak_memory_bytes = rank.allocated_bytes;
  speed.tracing_pair_ns = rank.tracing_pair_ns;
  if (config.clock == config::Clock::measured) {
    // A traced step stands alone, so the plain one after it has nothing before it to hide its issue behind, and
    // the last one nothing after it: neither counts.
    using How = train::Trainer::How;
    speed.replayed = static_cast<int>(std::count(rank.step_how.begin(), rank.step_how.end(), How::replayed));
    speed.graph = rank.graph;
    speed.as_graph = speed.replayed > 0;
    // Where untraced steps are launched by one call, those before their capture, and the capture, are others.
    const auto is_plain = [&](std::size_t step) { return speed.replayed == 0 || rank.step_how[step] == How::replayed; };
    std::vector<double> plain, traced;
    std::vector<std::size_t> plain_steps, traced_steps;
    std::size_t traces = 0;
    for (std::size_t step = 0; step < rank.step_done.size(); ++step) {
      const bool timed = rank.step_timed[step], is_steady = step >= 2 && step + 1 < rank.step_done.size();
      const base::Nanoseconds alone = timed && traces < rank.traced_took.size() ? rank.traced_took[traces++] : 0;
      if (!is_steady) continue;
      if (alone > 0) {
        traced.push_back(static_cast<double>(alone));
        traced_steps.push_back(step);
      } else if (!timed && !rank.step_timed[step - 1] && is_plain(step) && is_plain(step - 1)) {
        plain.push_back(static_cast<double>(rank.step_done[step] - rank.step_done[step - 1]));
        plain_steps.push_back(step);
      }
    }
    const std::vector<double>& counted = plain.empty() ? traced : plain;
    speed.step_ns = median(counted);
    speed.steps_counted = static_cast<int>(counted.size());
    if (!counted.empty()) {
      speed.step_min_ns = *std::min_element(counted.begin(), counted.end());
      speed.step_max_ns = *std::max_element(counted.begin(), counted.end());
    }
    if (!plain.empty()) speed.traced_step_ns = median(traced);
    if (!traced.empty()) speed.near_traced_ns = median(nearest(plain, plain_steps, traced_steps));
  } else {
    speed.step_ns = speed.step_min_ns = speed.step_max_ns = resolved_step_ns;
    speed.steps_counted = 1;
    speed.traced_step_ns = traced_step_ns;
    speed.near_traced_ns = resolved_step_ns;
    speed.as_graph = config.clock == config::Clock::modelled && conditions_of(config).as_graph;
  }
  if (speed.step_ns <= 0) return speed;
  if (speed.traced_step_ns > 0 && speed.near_traced_ns > 0) speed.tracing_cost = speed.traced_step_ns / speed.near_traced_ns - 1;
  speed.tokens_per_second = static_cast<double>(config.global_tokens()) / speed.step_ns * 1e9;

  speed.peak_flops = config.device == config::DeviceKind::cuda ? peak_flops(rank.device) : 0;
  if (speed.peak_flops > 0) speed.mfu = speed.tokens_per_second * config::flops_per_token(config.model) / (config.ranks * speed.peak_flops);
  return speed;
}

}  // namespace shardbook::launch
