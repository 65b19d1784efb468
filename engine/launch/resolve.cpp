#include "engine/launch/resolve.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/launch/clocks.hpp"
#include "engine/metrics/partition.hpp"
#include "engine/simulate/resolver.hpp"
#include "engine/timeline/from_program.hpp"

namespace shardbook::launch {

namespace {

// Of steps that follow each other, the last one of so many has become regular.
constexpr int steady_steps = 3;

base::Result<std::vector<program::Record>> decode_all(const std::vector<std::string>& encoded) {
  std::vector<program::Record> records;
  for (std::size_t rank = 0; rank < encoded.size(); ++rank) {
    base::Result<program::Record> record = program::decode(encoded[rank], base::text("rank ", rank, "'s record"));
    if (!record) return record.as_error();
    records.push_back(std::move(record).value());
  }
  return records;
}

base::Result<simulate::Resolved> resolve_modelled(const config::RunConfig& config, const std::vector<program::Record>& records,
                                                  int steps, bool traced) {
  const base::Result<simulate::Profile> profile = simulate::find_profile(config.profile);
  if (!profile) return profile.as_error();
  const simulate::CostModel model(profile.value(), conditions_of(config));
  std::vector<simulate::RankProgram> ranks;
  for (const program::Record& record : records) {
    ranks.push_back({record.rank, &record.catalogue, record.programs.back().get()});
  }
  simulate::ResolveOptions options;
  options.traced = options.drain_each_step = traced;
  return simulate::resolve(ranks, model, steps, options);
}

// The wall clock: durations as this CPU took them, placed by the recorded edges. The first step stands twice, since
// a step that follows another is what is reported.
base::Result<simulate::Resolved> resolve_wall(const std::vector<program::Record>& records) {
  std::vector<simulate::RankSteps> ranks;
  for (const program::Record& record : records) {
    simulate::RankSteps& rank = ranks.emplace_back();
    rank.rank = record.rank;
    rank.catalogue = &record.catalogue;
    for (const program::StepTimes& times : record.steps) {
      const program::Program* program = record.programs[times.program].get();
      const std::shared_ptr<const simulate::Costs> costs = simulate::measured_costs(*program, times);
      if (rank.steps.empty()) rank.steps.push_back({program, costs});
      rank.steps.push_back({program, costs});
    }
  }
  return simulate::resolve(ranks, simulate::Machine{});
}

// When the last op of a step ended.
base::Nanoseconds end_of(const program::StepTimes& times) {
  base::Nanoseconds end = times.window.start;
  for (const program::TimeSpan& span : times.ran) end = std::max(end, span.end);
  return end;
}

// Of the step in the middle of three or more, which one goes before and one follows: the part of it, over all ranks, in which a
// collective ran and nothing computed.
double exposed_between(const simulate::Resolved& resolved, const std::vector<program::Record>& records) {
  const std::size_t steps = resolved.step_end.size();
  SHARDBOOK_CHECK(steps >= 3, "a step between two others, of ", steps);
  const metrics::Window window{resolved.step_end[steps - 3], resolved.step_end[steps - 2]};
  base::Nanoseconds exposed = 0;
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    std::vector<base::Interval> compute, communication;
    for (const program::StepTimes& step : resolved.ranks[rank].steps) {
      for (std::size_t op = 0; op < step.ran.size(); ++op) {
        const program::OpClass what = program::class_of(records[rank].programs.back()->ops[op].desc.kind);
        if (what == program::OpClass::compute) compute.push_back({step.ran[op].start, step.ran[op].end});
        if (what == program::OpClass::communication) communication.push_back({step.ran[op].start, step.ran[op].end});
      }
    }
    exposed += metrics::partition({base::union_of(std::move(compute)), base::union_of(std::move(communication)), {}}, window).exposed_communication_ns;
  }
  return static_cast<double>(exposed) / (static_cast<double>(window.length()) * static_cast<double>(records.size()));
}

// Replaces the records' times by resolved ones: the resolver's first step is lead-in and left out.
void take_times(const simulate::Resolved& resolved, std::vector<program::Record>& records) {
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    std::vector<program::StepTimes>& steps = records[rank].steps;
    for (std::size_t step = 0; step < steps.size(); ++step) {
      const program::StepTimes& times = resolved.ranks[rank].steps[step + 1];
      steps[step].window = times.window;
      steps[step].issued = times.issued;
      steps[step].ran = times.ran;
    }
  }
}

// Puts all times of a rank through `moved`.
template <class Moved>
void shift(std::vector<program::StepTimes>& steps, Moved moved) {
  auto move = [&moved](program::TimeSpan& span) {
    span.start = moved(span.start);
    span.end = moved(span.end);
  };
  for (program::StepTimes& step : steps) {
    move(step.window);
    for (program::TimeSpan& span : step.issued) move(span);
    for (program::TimeSpan& span : step.ran) move(span);
  }
}

timeline::Clock clock_of(config::Clock clock) {
  switch (clock) {
    case config::Clock::measured: return timeline::Clock::measured;
    case config::Clock::modelled: return timeline::Clock::modelled;
    case config::Clock::wall: return timeline::Clock::wall;
  }
  return timeline::Clock::unknown;
}

}  // namespace

simulate::Conditions conditions_of(const config::RunConfig& config) {
  const train::Choices choices = train::choices_of(config);
  const train::LabMachine& machine = choices.machine;
  constexpr double us = 1000;
  return {machine.ideal_network, us * machine.call_us, machine.slow_rank, us * machine.kernel_us, choices.graph,
          machine.buffers == comm::Buffers::windows};
}

program::Beside::Rule room_rule(const config::RunConfig& config, const program::Catalogue& catalogue) {
  const int left = train::choices_of(config).machine.sms_beside;
  if (left == 0) return {};
  base::Result<simulate::Profile> profile = simulate::find_profile(config.profile);
  if (!profile) throw base::Failure(profile.error());
  const std::vector<simulate::Contention>& together = profile.value().contention;
  const double longer = together.empty() ? 1 : together.front().collective_by_gemm;   // a collective, beside matmuls
  auto model = std::make_shared<const simulate::CostModel>(std::move(profile).value());
  return {left, [model, longer, &catalogue](const program::OpDesc& desc) {
            const bool moves = program::class_of(desc.kind) == program::OpClass::communication;
            return model->op_ns(desc, catalogue) * (moves ? longer : 1);
          }};
}

double modelled_step_ns(const config::RunConfig& config, const std::vector<std::string>& encoded) {
  base::Result<std::vector<program::Record>> records = decode_all(encoded);
  if (!records) throw base::Failure(records.error());
  const base::Result<simulate::Resolved> resolved = resolve_modelled(config, records.value(), steady_steps, false);
  if (!resolved) throw base::Failure(resolved.error());
  return static_cast<double>(resolved.value().step_ns);
}

base::Result<ResolvedRun> resolve_run(const config::RunConfig& config, const std::vector<RankOutcome>& ranks, bool make_timeline) {
  std::vector<std::string> encoded;
  for (const RankOutcome& rank : ranks) encoded.push_back(rank.record);
  base::Result<std::vector<program::Record>> decoded = decode_all(encoded);
  if (!decoded) return decoded.as_error();
  ResolvedRun run;
  run.records = std::move(decoded).value();
  std::vector<program::Record>& records = run.records;

  // Who tells the time?
  const int traced = records[0].steps.empty() ? 0 : static_cast<int>(records[0].steps.size());
  std::vector<std::vector<std::vector<base::Nanoseconds>>> waits(records.size());
  std::vector<base::Nanoseconds> free_at(records.size(), std::numeric_limits<base::Nanoseconds>::min());
  if (config.clock != config::Clock::measured && traced > 0) {
    base::Result<simulate::Resolved> resolved =
        config.clock == config::Clock::modelled ? resolve_modelled(config, records, traced + 1, true) : resolve_wall(records);
    if (!resolved) return resolved.as_error();
    take_times(resolved.value(), records);
    for (std::size_t rank = 0; rank < records.size(); ++rank) {
      free_at[rank] = end_of(resolved.value().ranks[rank].steps[0]);
      waits[rank] = {resolved.value().ranks[rank].wait_ns.begin() + 1, resolved.value().ranks[rank].wait_ns.end()};
    }
    run.step_ns = static_cast<double>(resolved.value().step_ns);
    if (config.clock == config::Clock::modelled) {
      base::Result<simulate::Resolved> plain = resolve_modelled(config, records, steady_steps, false);
      if (!plain) return plain.as_error();
      run.traced_step_ns = std::exchange(run.step_ns, static_cast<double>(plain.value().step_ns));
      if (conditions_of(config).as_graph) run.exposed_as_graph = exposed_between(plain.value(), records);
    }
  } else {
    for (std::size_t rank = 0; rank < records.size(); ++rank) {
      shift(records[rank].steps, [line = clock_line_of(ranks[rank])](base::Nanoseconds own) { return line.at(own); });
    }
  }

  for (const program::Record& record : records) run.program_hashes.push_back(program::hash(*record.programs.back(), record.catalogue));
  if (!make_timeline) return run;

  // One base for all ranks: the first thing that happened.
  base::Nanoseconds first = std::numeric_limits<base::Nanoseconds>::max();
  for (const program::Record& record : records) {
    if (!record.steps.empty()) first = std::min(first, record.steps[0].window.start);
  }
  timeline::TimelineBuilder builder;
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    program::Record& record = records[rank];
    if (traced > 0) shift(record.steps, [first](base::Nanoseconds time) { return time - first; });
    const bool led_in = free_at[rank] != std::numeric_limits<base::Nanoseconds>::min();
    timeline::Provenance provenance;
    provenance.rank = record.rank;
    provenance.world_size = config.ranks;
    provenance.clock = clock_of(config.clock);
    provenance.profile = config.clock == config::Clock::modelled ? config.profile : "";
    provenance.clock_error_ns = clock_error_of(ranks[rank]);
    provenance.device = ranks[rank].device;
    std::vector<timeline::ProgramStep> steps;
    for (std::size_t step = 0; step < record.steps.size(); ++step) {
      steps.push_back({record.programs[record.steps[step].program].get(), &record.steps[step],
                       waits[rank].empty() ? nullptr : &waits[rank][step]});
      if (step == 0 && led_in) steps.back().device_free_at = free_at[rank] - first;
    }
    timeline::add_program(builder, provenance, record.catalogue, steps);
  }
  run.timeline = builder.finish();
  return run;
}

}  // namespace shardbook::launch
