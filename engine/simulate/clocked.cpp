#include "engine/simulate/clocked.hpp"

#include <algorithm>
#include <cmath>

namespace shardbook::simulate {

using base::Nanoseconds;

namespace {

std::size_t stretch_of(const program::Op& op) {
  return op.key.phase == program::Phase::forward ? 0 : op.key.phase == program::Phase::backward ? 1 : 2;
}

}  // namespace

LookedAt looked_at(const Resolved& resolved, bool measured) {
  const std::size_t steps = resolved.step_end.size();
  if (!measured && steps >= 3) return {steps - 2, resolved.step_end[steps - 3], resolved.step_end[steps - 2]};
  LookedAt last{steps - 1, resolved.step_end.back() - resolved.step_ns, resolved.step_end.back()};
  if (measured) {
    last.begin = resolved.ranks.front().steps.back().window.start;
    for (const RankTimes& rank : resolved.ranks) last.begin = std::min(last.begin, rank.steps.back().window.start);
  }
  return last;
}

Loads loads_of(const Costs& costs, const program::Program& program, const RankTimes& times, const LookedAt& looked_at, Drawn drawn) {
  Loads loads;
  const std::vector<program::TimeSpan>& all = times.steps[looked_at.step].ran;
  std::vector<std::pair<Nanoseconds, std::size_t>> starts;
  for (std::size_t at = 0; at < program.ops.size(); ++at) {
    const program::OpDesc& desc = program.ops[at].desc;
    const double alone_ns = static_cast<double>(costs.op_ns[at]);
    Load& load = loads[stretch_of(program.ops[at])];
    if (program::class_of(desc.kind) == program::OpClass::communication) {
      const Nanoseconds span_ns = all[at].end - all[at].start;
      const auto wait_ns = static_cast<double>(std::clamp<Nanoseconds>(times.wait_ns[looked_at.step][at], 0, span_ns));
      const auto bytes_ns = [&] { return is_copied(costs, at) ? static_cast<double>(costs.drawn_ns[at]) : alone_ns; };
      load.communication_ns += drawn == Drawn::its_span ? static_cast<double>(span_ns) : std::min(static_cast<double>(span_ns), wait_ns + bytes_ns());
      load.waiting_ns += wait_ns;
      continue;
    }
    starts.emplace_back(all[at].start, stretch_of(program.ops[at]));
    if (is_matmul(desc)) {
      load.matmul_ns += alone_ns;
      load.matmul_power_ns += alone_ns * costs.power[at];
    } else if (!crosses_to_host(desc)) {
      load.memory_ns += alone_ns;
    }
  }
  std::sort(starts.begin(), starts.end());
  for (std::size_t at = 0; at < starts.size(); ++at) {
    const Nanoseconds from = at == 0 ? looked_at.begin : std::max(looked_at.begin, starts[at].first);
    const Nanoseconds to = at + 1 < starts.size() ? std::min(looked_at.end, starts[at + 1].first) : looked_at.end;
    loads[starts[at].second].window_ns += static_cast<double>(std::max<Nanoseconds>(0, to - from));
  }
  return loads;
}

base::Result<AtItsClock> at_its_clock(const std::vector<RankSteps>& ranks, const Machine& machine, const ResolveOptions& options,
                                      const std::vector<Speeds>& speeds, bool measured, Resolved first) {
  // A shorter step has a slower clock, which makes it longer: halfway there each time, until it no longer moves.
  constexpr int rounds = 8;
  constexpr double settled = 1e-3;
  const Drawn drawn = measured ? Drawn::its_span : Drawn::its_bytes;
  AtItsClock out{std::move(first), ranks, speeds};
  std::vector<Speeds> longer(ranks.size(), {1, 1, 1});
  for (int round = 0; round < rounds; ++round) {
    const LookedAt now = looked_at(out.resolved, measured);
    bool moves = false;
    for (std::size_t at = 0; at < ranks.size(); ++at) {
      const Step& step = ranks[at].steps.back();
      Loads loads = loads_of(*step.costs, *step.program, out.resolved.ranks[at], now, drawn);
      for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
        loads[stretch].memory_ns *= std::pow(longer[at][stretch], others_feel);   // as long as they are now; of matmuls speed_at_limit() knows
        const double wanted = speeds[at][stretch] / speed_at_limit(machine.power, loads[stretch], speeds[at][stretch]);
        moves = moves || std::abs(wanted - longer[at][stretch]) > settled;
        const bool depends_on_it = loads[stretch].matmul_power_ns > 0;
        longer[at][stretch] = depends_on_it ? std::sqrt(longer[at][stretch] * wanted) : wanted;
      }
    }
    if (!moves) break;
    for (std::size_t at = 0; at < ranks.size(); ++at) {
      const Step& step = ranks[at].steps.back();
      auto costs = std::make_shared<Costs>(*step.costs);
      for (program::OpIndex op = 0; op < costs->op_ns.size(); ++op) {
        const program::Op& one = step.program->ops[op];
        if (program::class_of(one.desc.kind) != program::OpClass::compute) continue;
        costs->op_ns[op] = std::llround(static_cast<double>(costs->op_ns[op]) * slowed_by(1 / longer[at][stretch_of(one)], one.desc));
      }
      out.steps[at].steps.assign(ranks[at].steps.size(), {step.program, std::move(costs)});
      for (std::size_t stretch = 0; stretch < stretches; ++stretch) out.speeds[at][stretch] = speeds[at][stretch] / longer[at][stretch];
    }
    base::Result<Resolved> again = resolve(out.steps, machine, options);
    if (!again) return again.as_error();
    out.resolved = std::move(again).value();
  }
  return out;
}

}  // namespace shardbook::simulate
