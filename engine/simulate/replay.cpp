#include "engine/simulate/replay.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "engine/simulate/reorder.hpp"
#include "engine/simulate/sources.hpp"

namespace shardbook::simulate {

using base::Nanoseconds;
using program::Command;
using program::CommandKind;

namespace {

constexpr int steady_steps = 3;   // of steps that follow each other, the last one of so many has become regular

bool communicates(const program::Op& op) { return program::class_of(op.desc.kind) == program::OpClass::communication; }

// The one in the middle: of two the lower, of any other even count the upper.
Nanoseconds middle_of(std::vector<Nanoseconds> values) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() == 2 ? 0 : values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Whether one rank does for all: equal programs, groups that cost the same, no pairs.
bool all_do_the_same(const std::vector<RankProgram>& ranks, const CostModel& model) {
  const RankProgram& first = ranks.front();
  if (model.conditions().slow_rank >= 0) return false;
  const std::uint64_t hash = program::hash(*first.program, *first.catalogue);
  constexpr base::Bytes probe = 1 << 20;
  for (const RankProgram& rank : ranks) {
    if (program::hash(*rank.program, *rank.catalogue) != hash) return false;
    for (std::size_t group = 0; group < rank.catalogue->groups.size(); ++group) {
      const std::vector<base::Rank>& here = rank.catalogue->groups[group].ranks;
      const std::vector<base::Rank>& there = first.catalogue->groups[group].ranks;
      if (model.profile().collectives.empty() || here.size() < 2) continue;
      if (model.collective_ns(program::OpKind::all_gather, probe, here) !=
          model.collective_ns(program::OpKind::all_gather, probe, there)) {
        return false;
      }
    }
  }
  return std::none_of(first.program->ops.begin(), first.program->ops.end(), [](const program::Op& op) { return program::is_pair(op.desc.kind); });
}

// --- Measured steps -----------------------------------------------------------------------------------

// What a collective takes once all are there: its span on the rank that came last, which is the shortest.
using Transfers = std::map<std::pair<std::vector<base::Rank>, std::pair<std::string, std::uint32_t>>, Nanoseconds>;

Transfers transfers_of(const std::vector<MeasuredRank>& ranks) {
  Transfers transfers;
  for (const MeasuredRank& rank : ranks) {
    for (std::size_t at = 0; at < rank.program->ops.size(); ++at) {
      const program::Op& op = rank.program->ops[at];
      if (!communicates(op)) continue;
      const program::GroupInfo& group = rank.catalogue->groups[op.desc.collective.group];
      const Nanoseconds ns = rank.times->ran[at].end - rank.times->ran[at].start;
      const auto [found, is_new] = transfers.try_emplace({group.ranks, {group.axis, op.desc.collective.sequence}}, ns);
      if (!is_new) found->second = std::min(found->second, ns);
    }
  }
  return transfers;
}

// What kind of call a command is, for comparison with its like.
int call_kind(const Command& command, const program::Program& program) {
  if (command.kind != CommandKind::op) return static_cast<int>(command.kind);
  return 16 + static_cast<int>(program.ops[command.op].desc.kind);
}

// Where the host stood because the device's queue was full, a call takes what its kind usually takes.
void take_out_full_queues(const program::Program& program, Costs& costs) {
  constexpr Nanoseconds long_ns = 50'000;
  constexpr Nanoseconds many_times = 8;
  std::map<int, std::vector<Nanoseconds>> of_kind;
  for (std::size_t at = 0; at < program.commands.size(); ++at) {
    of_kind[call_kind(program.commands[at], program)].push_back(costs.issue_ns[at]);
  }
  std::map<int, Nanoseconds> usual;
  for (const auto& [kind, values] : of_kind) usual[kind] = middle_of(values);
  for (std::size_t at = 0; at < program.commands.size(); ++at) {
    const Nanoseconds ordinary = usual[call_kind(program.commands[at], program)];
    if (costs.issue_ns[at] > long_ns && costs.issue_ns[at] > many_times * ordinary) costs.issue_ns[at] = ordinary;
  }
}

// From what an op follows to its start, by what it followed last.
struct Delays {
  std::vector<Nanoseconds> gap, event, launch;
};

void add_delays(const MeasuredRank& rank, Delays& delays) {
  constexpr Nanoseconds clear = 10'000;   // one cause decides where the others were over so long before
  const program::Program& program = *rank.program;
  const program::StepTimes& times = *rank.times;
  std::map<std::pair<program::EventId, std::uint32_t>, program::OpIndex> covered;
  std::vector<program::OpIndex> last(rank.catalogue->streams.size(), program::no_op);
  std::vector<Nanoseconds> awaited(rank.catalogue->streams.size(), std::numeric_limits<Nanoseconds>::min());
  constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::min() / 2;
  for (std::size_t at = 0; at < program.commands.size(); ++at) {
    const Command& command = program.commands[at];
    if (command.kind == CommandKind::record_event) covered[{command.event, command.generation}] = last[command.stream];
    if (command.kind == CommandKind::wait_event) {
      const auto found = covered.find({command.event, command.generation});
      if (found != covered.end() && found->second != program::no_op && program.ops[found->second].stream != command.stream) {
        awaited[command.stream] = std::max(awaited[command.stream], times.ran[found->second].end);
      }
    }
    if (command.kind != CommandKind::op) continue;
    const program::StreamId stream = program.ops[command.op].stream;
    const Nanoseconds start = times.ran[command.op].start;
    const Nanoseconds before = last[stream] == program::no_op ? never : times.ran[last[stream]].end;
    const Nanoseconds event = std::exchange(awaited[stream], never);
    const Nanoseconds issued = at + 1 < times.issued.size() ? times.issued[at + 1].start : times.issued[at].end;
    last[stream] = command.op;
    const auto decides = [&](Nanoseconds one, Nanoseconds other, Nanoseconds third) {
      return one <= start && one > other + clear && one > third + clear;
    };
    if (decides(before, event, issued)) delays.gap.push_back(start - before);
    if (decides(event, before, issued)) delays.event.push_back(start - event);
    if (decides(issued, before, event)) delays.launch.push_back(start - issued);
  }
}

// A matmul that was there when a collective began, or that followed at once, and took as long as beside one does: it did not hold
// the collective up, whatever the profile says of its size.
void find_room_that_was_there(const MeasuredRank& rank, const Costs& modelled, Costs& costs) {
  constexpr Nanoseconds at_once = 10'000;
  const std::vector<program::TimeSpan>& ran = rank.times->ran;
  std::vector<program::OpIndex> holding;
  for (program::OpIndex op = 0; op < ran.size(); ++op) {
    if (costs.fills[op] && costs.beside[op] > 1) holding.push_back(op);
  }
  std::sort(holding.begin(), holding.end(), [&](program::OpIndex one, program::OpIndex other) { return ran[one].start < ran[other].start; });
  for (program::OpIndex op = 0; op < ran.size(); ++op) {
    if (!communicates(rank.program->ops[op])) continue;
    const auto after = std::upper_bound(holding.begin(), holding.end(), ran[op].start + at_once, [&](Nanoseconds time, program::OpIndex one) { return time < ran[one].start; });
    if (after == holding.begin()) continue;
    const program::OpIndex there = *std::prev(after);
    if (ran[there].end <= ran[op].start) continue;
    // Nearer to its time beside a collective than to that alone
    const double times_as_long = static_cast<double>(ran[there].end - ran[there].start) / static_cast<double>(std::max<Nanoseconds>(1, modelled.op_ns[there]));
    if (times_as_long > std::sqrt(costs.beside[there])) costs.fills[there] = false;
  }
}

Replayed reported(Resolved resolved, bool measured) {
  const Nanoseconds end = resolved.step_end.back(), begin = measured ? looked_at(resolved, true).begin : end - resolved.step_ns;
  return {std::move(resolved.ranks), begin, end};
}

}  // namespace

base::Result<Replay> Replay::modelled(const std::vector<RankProgram>& ranks, const CostModel& model) {
  SHARDBOOK_CHECK(!ranks.empty(), "nothing to replay");
  Replay replay;
  const bool one_for_all = ranks.size() > 1 && all_do_the_same(ranks, model);
  for (const RankProgram& rank : ranks) {
    const Step step{rank.program, model.costs_at_speed_one(*rank.program, *rank.catalogue, {}, false, rank.rank)};
    RankSteps& added = replay.steps_.emplace_back();
    added.rank = rank.rank;
    added.catalogue = rank.catalogue;
    added.steps.assign(steady_steps, step);
    added.for_all = one_for_all;
    if (one_for_all) break;
  }
  replay.machine_ = machine_of(model);
  if (model.has_clock()) {
    // Durations as they are at the speeds of the unchanged step
    base::Result<Resolved> first = simulate::resolve(replay.steps_, replay.machine_, {});
    if (!first) return first.as_error();
    base::Result<AtItsClock> clocked = at_its_clock(replay.steps_, replay.machine_, {}, std::vector<Speeds>(replay.steps_.size(), {1, 1, 1}), false, std::move(first).value());
    if (!clocked) return clocked.as_error();
    replay.steps_ = std::move(clocked.value().steps);
    for (std::size_t at = 0; at < replay.steps_.size(); ++at) replay.speed_[replay.steps_[at].rank] = clocked.value().speeds[at];
  }
  const base::Result<Replayed> unchanged = replay.resolve();
  if (!unchanged) return unchanged.as_error();
  replay.step_ns_ = unchanged.value().step_ns();
  return replay;
}

base::Result<Replay> Replay::measured(const std::vector<MeasuredRank>& ranks, const CostModel* model) {
  SHARDBOOK_CHECK(!ranks.empty(), "nothing to replay");
  Replay replay;
  replay.measured_ = true;
  const Transfers transfers = transfers_of(ranks);
  Delays delays;
  Nanoseconds end = std::numeric_limits<Nanoseconds>::min();
  Nanoseconds first = std::numeric_limits<Nanoseconds>::max();
  for (const MeasuredRank& rank : ranks) first = std::min(first, rank.times->window.start);
  std::vector<std::shared_ptr<Costs>> all;
  for (const MeasuredRank& rank : ranks) {
    const auto& costs = all.emplace_back(std::make_shared<Costs>(*measured_costs(*rank.program, *rank.times)));
    if (model != nullptr) {
      const std::shared_ptr<const Costs> modelled = model->costs(*rank.program, *rank.catalogue);
      costs->fixed_ns = modelled->fixed_ns;
      costs->shared_part = modelled->shared_part;
      costs->beside = modelled->beside;
      costs->fills = modelled->fills;
      costs->lets_in = modelled->lets_in;
      costs->copied = modelled->copied;
      costs->power = model->powers(*rank.program, *rank.catalogue);
      find_room_that_was_there(rank, *modelled, *costs);
    }
    for (std::size_t at = 0; at < rank.program->ops.size(); ++at) {
      const program::Op& op = rank.program->ops[at];
      if (!communicates(op)) continue;
      const program::GroupInfo& group = rank.catalogue->groups[op.desc.collective.group];
      costs->op_ns[at] = transfers.at({group.ranks, {group.axis, op.desc.collective.sequence}});
    }
    take_out_full_queues(*rank.program, *costs);
    add_delays(rank, delays);
    for (const program::TimeSpan& ran : rank.times->ran) end = std::max(end, ran.end);
    RankSteps& added = replay.steps_.emplace_back();
    added.rank = rank.rank;
    added.catalogue = rank.catalogue;
    added.steps.push_back({rank.program, costs});
    added.start_ns = rank.times->window.start - first;
  }
  replay.machine_.stream_gap_ns = middle_of(delays.gap);
  replay.machine_.event_latency_ns = middle_of(delays.event);
  replay.machine_.launch_latency_ns = middle_of(delays.launch);
  replay.step_ns_ = end - first;
  if (model == nullptr) return replay;
  replay.machine_.shares = true;
  replay.machine_.contention = model->profile().contention;
  if (base::Status found = replay.find_durations_alone(all); !found) return found.as_error();
  replay.machine_.power = model->profile().power;
  if (replay.machine_.power.exponent <= 0) return replay;
  const base::Result<Replayed> unchanged = replay.resolve();
  if (!unchanged) return unchanged.as_error();
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    const Costs& costs = *replay.steps_[at].steps.back().costs;
    const Loads loads = loads_of(costs, *ranks[at].program, unchanged.value().ranks[at], {unchanged.value().ranks[at].steps.size() - 1, unchanged.value().begin, unchanged.value().end}, Drawn::its_span);
    for (std::size_t stretch = 0; stretch < stretches; ++stretch) replay.speed_[ranks[at].rank][stretch] = speed_of(replay.machine_.power, loads[stretch]);
  }
  return replay;
}

base::Status Replay::find_durations_alone(const std::vector<std::shared_ptr<Costs>>& costs) {
  constexpr int rounds = 6;
  std::vector<std::vector<Nanoseconds>> together;
  for (const auto& of_rank : costs) together.push_back(of_rank->op_ns);
  for (int round = 0; round < rounds; ++round) {
    const base::Result<Replayed> replayed = resolve();
    if (!replayed) return replayed.as_error();
    for (std::size_t rank = 0; rank < costs.size(); ++rank) {
      const RankTimes& times = replayed.value().ranks[rank];
      for (std::size_t op = 0; op < together[rank].size(); ++op) {
        const program::TimeSpan& ran = times.steps.back().ran[op];
        const double now = static_cast<double>(std::max<Nanoseconds>(1, ran.end - ran.start - times.wait_ns.back()[op]));
        const double wanted = static_cast<double>(together[rank][op]);
        const double alone = static_cast<double>(costs[rank]->op_ns[op]) * wanted / now;
        costs[rank]->op_ns[op] = std::clamp<Nanoseconds>(std::llround(alone), 1, std::max<Nanoseconds>(1, together[rank][op]));
      }
    }
  }
  return base::Done{};
}

std::vector<RankSteps> Replay::changed(const Change& change, Reorderings& reorderings) const {
  std::vector<RankSteps> ranks = taken_from(steps_, sources_of(steps_, change));
  for (RankSteps& rank : ranks) {
    const Step& step = rank.steps.back();
    Costs costs = scaled(*step.costs, *step.program, change.scale);
    if (const auto own = change.of_rank.find(rank.rank); own != change.of_rank.end()) {
      costs = scaled(costs, *step.program, own->second);
    }
    if (change.factor) {
      for (program::OpIndex op = 0; op < costs.op_ns.size(); ++op) {
        const double factor = change.factor(rank.rank, op);
        if (factor == 1) continue;
        const double period_ns = static_cast<double>(costs.op_ns[op] + costs.gap_ns);
        costs.op_ns[op] = std::max<Nanoseconds>(1, std::llround(period_ns * factor) - costs.gap_ns);
      }
    }
    for (std::uint32_t at = 0; change.issue_factor && at < costs.issue_ns.size(); ++at) {
      costs.issue_ns[at] = std::llround(static_cast<double>(costs.issue_ns[at]) * change.issue_factor(rank.rank, at));
    }
    const program::Program* program = step.program;
    if (!change.earlier.empty()) {
      const auto [found, is_new] = reorderings.try_emplace(program);
      if (is_new) found->second = issued_earlier(*program, change.earlier);
      const std::vector<Nanoseconds> issue_ns = costs.issue_ns;
      for (std::size_t at = 0; at < issue_ns.size(); ++at) costs.issue_ns[at] = issue_ns[found->second.was_at[at]];
      program = &found->second.program;
    }
    const Step made{program, std::make_shared<const Costs>(std::move(costs))};
    rank.steps.assign(rank.steps.size(), made);
  }
  return ranks;
}

base::Result<Replayed> Replay::resolve(const Change& change) const {
  Reorderings reorderings;
  const std::vector<RankSteps> ranks = changed(change, reorderings);
  ResolveOptions options;
  options.without = change.without;
  options.without_waits = change.without_waits;
  const Machine machine = scaled(machine_, change.scale);
  base::Result<Resolved> resolved = simulate::resolve(ranks, machine, options);
  if (resolved && !speed_.empty() && !change.same_clock) {
    // The speeds at which these durations were measured: those of the rank that they are taken from
    std::vector<Speeds> speeds;
    for (const Source& source : sources_of(steps_, change)) speeds.push_back(speed_.at(steps_[source.device].rank));
    base::Result<AtItsClock> clocked = at_its_clock(ranks, machine, options, speeds, measured_, std::move(resolved).value());
    if (!clocked) return clocked.as_error();
    resolved = std::move(clocked.value().resolved);
  }
  if (!resolved) return resolved.as_error();
  // Calls are told in the recorded order.
  for (std::size_t rank = 0; rank < steps_.size() && !reorderings.empty(); ++rank) {
    const Reordered& order = reorderings.at(steps_[rank].steps.back().program);
    for (program::StepTimes& times : resolved.value().ranks[rank].steps) {
      const std::vector<program::TimeSpan> issued = times.issued;
      for (std::size_t at = 0; at < issued.size(); ++at) times.issued[order.was_at[at]] = issued[at];
    }
  }
  return reported(std::move(resolved).value(), measured_);
}

}  // namespace shardbook::simulate
