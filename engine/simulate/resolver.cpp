#include "engine/simulate/resolver.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/simulate/clocked.hpp"
#include "engine/simulate/matching.hpp"
#include "engine/simulate/plan.hpp"
#include "engine/simulate/simulation.hpp"

namespace shardbook::simulate {

Machine machine_of(const Profile& profile) {
  Machine machine;
  machine.launch_latency_ns = std::llround(profile.device.launch_latency_ns);
  machine.stream_gap_ns = std::llround(profile.device.stream_gap_ns);
  machine.event_latency_ns = std::llround(profile.device.event_latency_ns);
  machine.shares = true;
  machine.contention = profile.contention;
  machine.power = profile.power;
  // Without a clock modelled steps come out too long as it is, and this makes them longer (experiments/speed, "last-blocks")
  machine.last_blocks = profile.power.says_its_speed();
  return machine;
}

Machine machine_of(const CostModel& model) {
  Machine machine = machine_of(model.profile());
  if (!model.conditions().windows) return machine;
  for (Contention& factors : machine.contention) {
    for (const Contention& measured : model.profile().windows.contention) {
      if (measured.ranks != factors.ranks) continue;
      // What a matmul of a known factor loses, too, by as much less as the large ones do; of few ranks, where there are several
      if (&factors == &machine.contention.front() && factors.gemm_by_collective > 1) machine.beside = std::clamp((measured.gemm_by_collective - 1) / (factors.gemm_by_collective - 1), 0.0, 1.0);
      factors = measured;
    }
  }
  return machine;
}

Machine scaled(Machine machine, const Scale& scale) {
  machine.launch_latency_ns = std::llround(static_cast<double>(machine.launch_latency_ns) * scale.launch);
  machine.event_latency_ns = std::llround(static_cast<double>(machine.event_latency_ns) * scale.launch);
  for (Contention& factors : machine.contention) {
    for (double* factor : {&factors.gemm_by_collective, &factors.collective_by_gemm, &factors.memory_by_collective,
                           &factors.collective_by_memory}) {
      *factor = 1 + (*factor - 1) * scale.contention;
    }
  }
  machine.beside *= scale.contention;
  return machine;
}

base::Result<Resolved> resolve(const std::vector<RankSteps>& ranks, const Machine& machine,
                               const ResolveOptions& options) {
  SHARDBOOK_CHECK(!ranks.empty() && !ranks.front().steps.empty(), "nothing to resolve");
  for (program::EdgeKind kind : options.without) {
    SHARDBOOK_CHECK(kind != program::EdgeKind::stream && kind != program::EdgeKind::collective, "edges of kind ",
                    program::name_of(kind), " cannot be left out");
  }
  // One plan for each distinct program and catalogue.
  std::map<std::pair<const program::Program*, const program::Catalogue*>, Plan> distinct;
  Simulation::Plans plans(ranks.size());
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    const RankSteps& rank = ranks[at];
    SHARDBOOK_CHECK_EQ(rank.steps.size(), ranks.front().steps.size(), "steps of rank ", rank.rank);
    for (const Step& step : rank.steps) {
      SHARDBOOK_CHECK_EQ(step.costs->op_ns.size(), step.program->ops.size(), "costs of ops of rank ", rank.rank);
      SHARDBOOK_CHECK_EQ(step.costs->issue_ns.size(), step.program->commands.size(), "costs of commands of rank ", rank.rank);
      const auto [plan, is_new] = distinct.try_emplace({step.program, rank.catalogue});
      if (is_new) plan->second = plan_of(*step.program, *rank.catalogue, options);
      plans[at].push_back(&plan->second);
    }
  }
  const base::Result<Matching> matching = match(ranks, plans);
  if (!matching.ok()) return matching.as_error();
  return Simulation(ranks, plans, matching.value(), machine, options).run();
}

base::Result<Resolved> resolve(const std::vector<RankProgram>& ranks, const CostModel& model, int steps,
                               const ResolveOptions& options, const Scale& scale) {
  std::vector<RankSteps> all;
  for (const RankProgram& rank : ranks) {
    for (const program::Op& op : rank.program->ops) {
      const bool communicates = program::class_of(op.desc.kind) == program::OpClass::communication;
      if (!communicates || !model.profile().collectives.empty()) continue;
      return base::Error{base::text("profile ", model.profile().name, " has no collectives and the program calls ",
                                    program::name_of(op.desc.kind), ": calibrate on a node of two GPUs or more")};
    }
    const Step step{rank.program, model.costs_at_speed_one(*rank.program, *rank.catalogue, scale, options.traced, rank.rank)};
    all.push_back({rank.rank, rank.catalogue, std::vector<Step>(static_cast<std::size_t>(steps), step)});
  }
  if (std::string problem = problem_of(model.profile(), model.conditions()); !problem.empty()) return base::Error{std::move(problem)};
  Machine machine = scaled(machine_of(model), scale);
  if (options.traced) machine.stream_gap_ns += std::llround(model.profile().device.trace_ns);
  base::Result<Resolved> resolved = resolve(all, machine, options);
  if (!resolved || !model.has_clock()) return resolved;
  base::Result<AtItsClock> clocked = at_its_clock(all, machine, options, std::vector<Speeds>(all.size(), {1, 1, 1}), false, std::move(resolved).value());
  if (!clocked) return clocked.as_error();
  return std::move(clocked.value().resolved);
}

}  // namespace shardbook::simulate
