#include "engine/launch/wire.hpp"

#include <nlohmann/json.hpp>

namespace shardbook::launch {

std::string to_bytes(const RankOutcome& outcome) {
  nlohmann::json results = nlohmann::json::array();
  for (const train::StepResult& result : outcome.results) {
    results.push_back({result.step, result.loss, result.gradient_norm, result.learning_rate});
  }
  const nlohmann::json head = {{"device", outcome.device}, {"offset", outcome.clock.offset}, {"error", outcome.clock.error},
                               {"device_error", outcome.device_clock_error}, {"results", results},
                               {"step_done", outcome.step_done}, {"step_timed", outcome.step_timed},
                               {"stopped_early", outcome.stopped_early}, {"allocated_bytes", outcome.allocated_bytes},
                               {"tracing_pair_ns", outcome.tracing_pair_ns}};
  // The record is binary and goes behind the head, which ends with a line feed.
  return head.dump() + "\n" + outcome.record;
}

RankOutcome from_bytes(std::string_view bytes) {
  const std::size_t end = bytes.find('\n');
  const nlohmann::json head = nlohmann::json::parse(bytes.substr(0, end), nullptr, false);
  SHARDBOOK_CHECK(end != std::string_view::npos && head.is_object(), "a rank's outcome came damaged");
  RankOutcome outcome;
  outcome.device = head["device"];
  outcome.clock = {head["offset"], head["error"]};
  outcome.device_clock_error = head["device_error"];
  for (const nlohmann::json& result : head["results"]) {
    outcome.results.push_back({result[0], result[1], result[2], result[3]});
  }
  outcome.step_done = head["step_done"].get<std::vector<base::Nanoseconds>>();
  outcome.step_timed = head["step_timed"].get<std::vector<char>>();
  outcome.stopped_early = head["stopped_early"];
  outcome.allocated_bytes = head["allocated_bytes"];
  outcome.tracing_pair_ns = head["tracing_pair_ns"];
  outcome.record = bytes.substr(end + 1);
  return outcome;
}

}  // namespace shardbook::launch
