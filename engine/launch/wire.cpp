#include "engine/launch/wire.hpp"

#include "engine/world/wire.hpp"

namespace shardbook::launch {

std::string to_bytes(const RankOutcome& outcome) {
  world::Writer writer;
  writer.string(outcome.device);
  for (const world::ClockOffset& clock : {outcome.clock, outcome.clock_at_end}) writer.integer(clock.offset).integer(clock.error).integer(clock.at);
  writer.integer(outcome.device_clock_error).integer(outcome.stopped_early);
  writer.integer(outcome.saves.count).integer(outcome.saves.bytes).integer(outcome.saves.writing).integer(outcome.saves.waited).string(outcome.saves.left);
  writer.number(outcome.allocated_bytes).number(outcome.tracing_pair_ns).string(outcome.not_finite);
  writer.integer(static_cast<std::int64_t>(outcome.results.size()));
  for (const train::StepResult& result : outcome.results) {
    writer.integer(result.step).number(result.loss).number(result.gradient_norm).number(result.learning_rate);
  }
  writer.integer(static_cast<std::int64_t>(outcome.step_done.size()));
  for (const base::Nanoseconds time : outcome.step_done) writer.integer(time);
  writer.string({outcome.step_timed.data(), outcome.step_timed.size()});
  writer.integer(static_cast<std::int64_t>(outcome.traced_took.size()));
  for (const base::Nanoseconds time : outcome.traced_took) writer.integer(time);
  std::string how;
  for (const train::Trainer::How one : outcome.step_how) how += static_cast<char>(one);
  writer.string(how).integer(static_cast<std::int64_t>(outcome.graph.nodes)).integer(outcome.graph.made_in);
  writer.string(outcome.record);
  return writer.bytes();
}

RankOutcome from_bytes(std::string_view bytes) {
  world::Reader reader(bytes);
  RankOutcome outcome;
  outcome.device = reader.string();
  for (world::ClockOffset* clock : {&outcome.clock, &outcome.clock_at_end}) {
    clock->offset = reader.integer();
    clock->error = reader.integer();
    clock->at = reader.integer();
  }
  outcome.device_clock_error = reader.integer();
  outcome.stopped_early = reader.integer() != 0;
  outcome.saves.count = static_cast<int>(reader.integer());
  outcome.saves.bytes = reader.integer();
  outcome.saves.writing = reader.integer();
  outcome.saves.waited = reader.integer();
  outcome.saves.left = reader.string();
  outcome.allocated_bytes = reader.number();
  outcome.tracing_pair_ns = reader.number();
  outcome.not_finite = reader.string();
  outcome.results.resize(reader.count(4 * 8));
  for (train::StepResult& result : outcome.results) {
    result.step = reader.integer();
    result.loss = reader.number();
    result.gradient_norm = reader.number();
    result.learning_rate = reader.number();
  }
  outcome.step_done.resize(reader.count());
  for (base::Nanoseconds& time : outcome.step_done) time = reader.integer();
  const std::string timed = reader.string();
  outcome.step_timed.assign(timed.begin(), timed.end());
  outcome.traced_took.resize(reader.count());
  for (base::Nanoseconds& time : outcome.traced_took) time = reader.integer();
  for (const char one : reader.string()) outcome.step_how.push_back(static_cast<train::Trainer::How>(one));
  outcome.graph.nodes = static_cast<std::size_t>(reader.integer());
  outcome.graph.made_in = reader.integer();
  outcome.record = reader.string();
  SHARDBOOK_CHECK(reader.ended(), "a rank's outcome came damaged");
  return outcome;
}

}  // namespace shardbook::launch
