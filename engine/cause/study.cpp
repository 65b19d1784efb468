#include "engine/cause/study.hpp"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "engine/cause/recorded.hpp"
#include "engine/timeline/from_program.hpp"
#include "engine/timeline/run_info.hpp"

namespace shardbook::cause {

using base::Error;
using base::text;

namespace {

timeline::Clock clock_of(const std::string& name) {
  for (timeline::Clock clock : {timeline::Clock::measured, timeline::Clock::modelled, timeline::Clock::wall}) {
    if (name == timeline::name_of(clock)) return clock;
  }
  return timeline::Clock::unknown;
}

// The steps that all ranks have with all times known.
std::vector<std::size_t> whole_steps(const Recorded& recorded) {
  std::vector<std::size_t> whole;
  const auto known = [](const program::TimeSpan& span) { return span.start <= span.end; };
  for (std::size_t step = 0; step < recorded.records.front().steps.size(); ++step) {
    bool all = true;
    for (const program::Record& record : recorded.records) {
      if (step >= record.steps.size()) return whole;
      const program::StepTimes& times = record.steps[step];
      all = all && std::all_of(times.ran.begin(), times.ran.end(), known) && std::all_of(times.issued.begin(), times.issued.end(), known);
    }
    if (all) whole.push_back(step);
  }
  return whole;
}

Nanoseconds length_of(const Recorded& recorded, std::size_t step) {
  Nanoseconds begin = recorded.records.front().steps[step].window.start, end = begin;
  for (const program::Record& record : recorded.records) {
    begin = std::min(begin, record.steps[step].window.start);
    for (const program::TimeSpan& ran : record.steps[step].ran) end = std::max(end, ran.end);
  }
  return end - begin;
}

// As an index of the records' steps.
base::Result<std::size_t> choose_step(const Recorded& recorded, std::optional<int> asked) {
  std::vector<std::size_t> steps = whole_steps(recorded);
  if (steps.empty()) return Error{"no step of this run is recorded with all its times: --trace-steps A:B names the steps to record"};
  const auto& of_first = recorded.records.front().steps;
  if (asked) {
    for (std::size_t step : steps) {
      if (of_first[step].step == *asked) return step;
    }
    return Error{text("there is no step ", *asked, " in this run; it has ", of_first[steps.front()].step, " to ", of_first[steps.back()].step)};
  }
  std::stable_sort(steps.begin(), steps.end(), [&](std::size_t a, std::size_t b) { return length_of(recorded, a) < length_of(recorded, b); });
  return steps[(steps.size() - 1) / 2];
}

// What the run's switches made otherwise than its profile's machine has it.
simulate::Conditions conditions_of(const timeline::RunInfo& info) {
  const auto value = [&](const char* key) { return info.switches.is_object() ? info.switches.value(key, std::string()) : std::string(); };
  constexpr double us = 1000;
  simulate::Conditions conditions;
  conditions.ideal_network = value("network") == "ideal";
  conditions.as_graph = info.clock == timeline::name_of(timeline::Clock::modelled) && value("host.graph") == "on";
  conditions.windows = value("nccl.buffers") == "windows";
  conditions.call_ns = us * std::atof(value("host.delay").c_str());
  const std::string slow = value("rank.slow");
  if (const std::size_t colon = slow.find(':'); colon != std::string::npos) {
    conditions.slow_rank = std::atoi(slow.c_str());
    conditions.kernel_ns = us * std::atof(slow.c_str() + colon + 1);
  }
  return conditions;
}

base::Result<Study> modelled(const Recorded& recorded, Study study) {
  study.profile = recorded.info->profile;
  base::Result<simulate::Profile> profile = simulate::find_profile(study.profile);
  if (!profile) return profile.as_error();
  study.model.emplace(std::move(profile).value(), study.conditions);
  std::vector<simulate::RankProgram> ranks;
  for (const program::Record& record : recorded.records) {
    if (record.programs.empty()) return Error{text("rank ", record.rank, " recorded no step: --trace-steps A:B names the steps to record")};
    ranks.push_back({record.rank, &record.catalogue, record.programs.back().get()});
  }
  base::Result<simulate::Replay> replay = simulate::Replay::modelled(ranks, *study.model);
  if (!replay) return replay.as_error();
  study.replay = std::move(replay).value();
  return study;
}

base::Result<Study> measured(const Recorded& recorded, std::optional<int> asked, Study study) {
  const base::Result<std::size_t> step = choose_step(recorded, asked);
  if (!step) return step.as_error();
  // A profile of the machine that it ran on says what running together costs.
  if (base::Result<simulate::Profile> profile = simulate::find_profile(recorded.option("profile")); profile) {
    const nlohmann::json& device = recorded.info->hardware.value("device", nlohmann::json(""));
    if (device.is_string() && device == profile.value().device.name) {
      study.profile = profile.value().name;
      study.model.emplace(std::move(profile).value());
    }
  }
  std::vector<simulate::MeasuredRank> ranks;
  for (const program::Record& record : recorded.records) {
    const program::StepTimes& times = record.steps[step.value()];
    ranks.push_back({record.rank, &record.catalogue, record.programs[times.program].get(), &times});
  }
  study.step = static_cast<int>(ranks.front().times->step);
  base::Result<simulate::Replay> replay = simulate::Replay::measured(ranks, study.model ? &*study.model : nullptr);
  if (!replay) return replay.as_error();
  study.replay = std::move(replay).value();
  return study;
}

}  // namespace

Timeline timeline_of(const simulate::Replay& replay, const simulate::Replayed& replayed, timeline::Clock clock,
                     const std::string& profile) {
  timeline::TimelineBuilder builder;
  for (std::size_t at = 0; at < replayed.ranks.size(); ++at) {
    const simulate::RankSteps& rank = replay.steps()[at];
    const simulate::RankTimes& times = replayed.ranks[at];
    timeline::Provenance provenance;
    provenance.rank = rank.rank;
    provenance.world_size = static_cast<int>(replayed.ranks.size());
    provenance.clock = clock;
    provenance.profile = profile;
    std::vector<timeline::ProgramStep> steps;
    for (std::size_t step = 0; step < times.steps.size(); ++step) {
      steps.push_back({rank.steps[step].program, &times.steps[step], &times.wait_ns[step]});
    }
    timeline::add_program(builder, provenance, *rank.catalogue, steps);
  }
  return builder.finish();
}

base::Result<Study> study_of(const Recorded& recorded, std::optional<int> step) {
  if (!recorded.has_record()) {
    return Error{"this is not a run of ours with its record (run.json, rank0.program ... of all ranks), so nothing can be resolved again"};
  }
  Study study;
  study.clock = clock_of(recorded.info->clock);
  study.conditions = conditions_of(*recorded.info);
  study.others_as_graph = recorded.info->switches.is_object() && recorded.info->switches.value("host.graph", std::string()) == "on";
  const bool is_modelled = study.clock == timeline::Clock::modelled;
  base::Result<Study> made = is_modelled ? modelled(recorded, std::move(study)) : measured(recorded, step, std::move(study));
  if (!made) return made.as_error();
  study = std::move(made).value();
  const base::Result<simulate::Replayed> unchanged = study.replay.resolve();
  if (!unchanged) return unchanged.as_error();
  study.replayed_ns = unchanged.value().step_ns();
  study.error = static_cast<double>(study.replayed_ns - study.step_ns()) / static_cast<double>(std::max<Nanoseconds>(1, study.step_ns()));
  study.timeline = timeline_of(study.replay, unchanged.value(), study.clock, study.profile);
  study.window = {unchanged.value().begin, unchanged.value().end};
  return study;
}

}  // namespace shardbook::cause
