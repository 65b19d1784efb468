#include "engine/launch/speed.hpp"

#include <algorithm>

#include "engine/launch/resolve.hpp"

namespace shardbook::launch {

namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

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
    for (std::size_t step = 2; step + 1 < rank.step_done.size(); ++step) {
      const double took = static_cast<double>(rank.step_done[step] - rank.step_done[step - 1]);
      if (rank.step_timed[step]) traced.push_back(took);
      else if (!rank.step_timed[step - 1] && is_plain(step) && is_plain(step - 1)) plain.push_back(took);
    }
    const std::vector<double>& counted = plain.empty() ? traced : plain;
    speed.step_ns = median(counted);
    speed.steps_counted = static_cast<int>(counted.size());
    if (!counted.empty()) {
      speed.step_min_ns = *std::min_element(counted.begin(), counted.end());
      speed.step_max_ns = *std::max_element(counted.begin(), counted.end());
    }
    if (!plain.empty()) speed.traced_step_ns = median(traced);
  } else {
    speed.step_ns = speed.step_min_ns = speed.step_max_ns = resolved_step_ns;
    speed.steps_counted = 1;
    speed.traced_step_ns = traced_step_ns;
    speed.as_graph = config.clock == config::Clock::modelled && conditions_of(config).as_graph;
  }
  if (speed.step_ns <= 0) return speed;
  if (speed.traced_step_ns > 0) speed.tracing_cost = speed.traced_step_ns / speed.step_ns - 1;
  speed.tokens_per_second = static_cast<double>(config.global_tokens()) / speed.step_ns * 1e9;

  // Model flops, causal: 6 N + 6 L S d a token, of the data sheet's 989 TFLOP/s dense bf16 a GPU.
  if (config.device == config::DeviceKind::cuda) {
    const config::ModelConfig& model = config.model;
    const double flops_per_token = 6.0 * static_cast<double>(config::parameter_count(model)) +
                                   6.0 * model.layers * static_cast<double>(model.sequence) * model.width;
    speed.mfu = speed.tokens_per_second * flops_per_token / (config.ranks * 989e12);
  }
  return speed;
}

}  // namespace shardbook::launch
