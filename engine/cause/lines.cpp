#include "engine/cause/lines.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/cause/around.hpp"
#include "engine/cause/text.hpp"
#include "engine/cause/without.hpp"
#include "engine/base/intervals.hpp"

namespace shardbook::cause {

using base::text;
using program::Command;
using program::CommandKind;
using program::OpClass;

namespace {

// Where its time can be changed: the line of the plan for what a plan decides, else the one that issued it.
std::string leading_line(const Command& command, const program::Op& op) {
  return line_of(command.planned_leads && *command.planned.file != '\0' ? command.planned : op.where);
}

base::Intervals compute_of(const program::Program& program, const program::StepTimes& times) {
  std::vector<base::Interval> computing;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (is(program.ops[op], OpClass::compute)) computing.push_back({times.ran[op].start, times.ran[op].end});
  }
  return base::union_of(std::move(computing));
}

// Of one rank's.
void add_of_rank(const simulate::RankSteps& rank, const program::StepTimes& times, bool is_first, CollectivesByLine& lines) {
  const program::Program& program = *rank.steps.back().program;
  // Between which times is there compute to hide behind?
  std::optional<Nanoseconds> first, last;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (!is(program.ops[op], OpClass::compute)) continue;
    const program::Phase phase = program.ops[op].key.phase;
    if (phase == program::Phase::forward) first = std::min(first.value_or(times.ran[op].start), times.ran[op].start);
    if (phase == program::Phase::backward) last = std::max(last.value_or(times.ran[op].end), times.ran[op].end);
  }
  const base::Intervals compute = compute_of(program, times);
  const Calls calls(program);
  for (std::uint32_t at = 0; at < program.commands.size(); ++at) {
    const Command& command = program.commands[at];
    if (command.kind != CommandKind::op || !is(program.ops[command.op], OpClass::communication)) continue;
    const program::Op& op = program.ops[command.op];
    Collectives& line = lines[{op.desc.kind, op.where, rank.catalogue->groups[op.desc.collective.group].axis}];
    const program::TimeSpan& ran = times.ran[command.op];
    const bool is_edge = (first && ran.end <= *first) || (last && ran.start >= *last && op.key.phase != program::Phase::update);
    Members& members = line.of_rank[rank.rank];
    (is_edge ? members.edge : members.inside).insert(command.op);
    const Around around = calls.around(at);
    members.commands.insert(around.commands.begin(), around.commands.end());
    if (!is_first) continue;
    ++(is_edge ? line.edge : line.inside);
    const Nanoseconds covered_ns = base::length_within(compute, {ran.start, ran.end});
    if (!is_edge) line.inside_at[op.key.phase].push_back(op.key.layer);
    if (!is_edge && 2 * covered_ns < ran.end - ran.start) {
      ++line.open;
      ++line.lines_open[leading_line(command, op)];
      line.open_at[op.key.phase].push_back(op.key.layer);
    }
    line.open_ns += is_edge ? 0 : ran.end - ran.start - covered_ns;
    ++(is_edge ? line.lines_at_edge : line.lines_inside)[leading_line(command, op)];
    line.needed_at_once += around.kernels_until_needed == 0;
    line.made_just_before += around.kernels_since_made == 0;
  }
}

}  // namespace

CollectivesByLine collectives_of(const Study& study) {
  CollectivesByLine lines;
  const base::Result<simulate::Replayed> unchanged = study.replay.resolve();
  if (!unchanged) return lines;
  const std::vector<simulate::RankSteps>& ranks = study.replay.steps();
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    add_of_rank(ranks[at], unchanged.value().ranks[at].steps.back(), at == 0, lines);
  }
  return lines;
}

void measure_what_is_open(const Study& study, const simulate::Change& change, CollectivesByLine& lines) {
  const base::Result<simulate::Replayed> changed = study.replay.resolve(change);
  if (!changed) return;
  const simulate::RankSteps& rank = study.replay.steps().front();
  const program::StepTimes& times = changed.value().ranks.front().steps.back();
  const base::Intervals compute = compute_of(*rank.steps.back().program, times);
  for (auto& [line, collectives] : lines) {
    const auto members = collectives.of_rank.find(rank.rank);
    if (members == collectives.of_rank.end()) continue;
    collectives.open_ns = 0;
    for (program::OpIndex op : members->second.inside) {
      const program::TimeSpan& ran = times.ran[op];
      collectives.open_ns += ran.end - ran.start - base::length_within(compute, {ran.start, ran.end});
    }
  }
}

void name_places(const Places& places, Cause& cause) {
  std::set<int> all;
  std::size_t number = 0;
  for (const auto& [phase, of] : places) number += of.size();
  for (const auto& [phase, of] : places) {
    if (10 * of.size() < number) continue;
    cause.where += (cause.where.empty() ? "" : " and ") + std::string(program::name_of(phase));
    cause.phases.push_back(phase);
    all.insert(of.begin(), of.end());
  }
  const bool others = all.erase(-1) > 0;
  if (all.empty()) return;
  const bool in_a_row = static_cast<std::size_t>(*all.rbegin() - *all.begin()) + 1 == all.size();
  if (all.size() == 1) cause.where += text(" of layer ", *all.begin());
  else if (in_a_row) cause.where += text(" of layers ", *all.begin(), " to ", *all.rbegin());
  else cause.where += text(" of ", all.size(), " of layers ", *all.begin(), " to ", *all.rbegin());
  if (others) cause.where += " and outside of layers";
}

void name_lines(const Lines& lines, Cause& cause) {
  std::vector<std::pair<std::int64_t, std::string>> by_number;
  for (const auto& [line, number] : lines) by_number.push_back({-number, line});
  std::ranges::sort(by_number);
  for (const auto& [number, line] : by_number) {
    if (cause.line.empty()) cause.line = line;
    else cause.also.push_back(line);
  }
}

}  // namespace shardbook::cause
