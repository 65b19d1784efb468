// cause/causes_of_machines: the host, its waits, a late rank, copies, contention; see without.hpp.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "engine/cause/remedies.hpp"
#include "engine/cause/text.hpp"
#include "engine/cause/without.hpp"
#include "engine/metrics/exposure.hpp"
#include "engine/base/intervals.hpp"
#include "engine/simulate/sources.hpp"

namespace shardbook::cause {

using base::text;
using program::Command;
using program::CommandKind;
using program::OpClass;
using simulate::Change;

namespace {

class Machines {
 public:
  Machines(const Without& without, const Remedies& remedies, const Findings& found) : without_(without), remedies_(remedies), found_(found) {}

  std::vector<Cause> run() {
    add_host_waits();
    add_rank();
    add_memory();
    add_contention();
    return std::move(causes_);
  }

 private:
  void add_host_waits() {
    std::map<std::string, std::pair<program::SourceLine, std::int64_t>> lines;
    const simulate::Step& step = without_.study().replay.steps().front().steps.back();
    for (const Command& command : step.program->commands) {
      if (command.kind != CommandKind::host_wait && command.kind != CommandKind::read_back) continue;
      auto& [where, count] = lines[line_of(command.where)];
      where = command.where;
      ++count;
    }
    for (const auto& [name, found] : lines) {
      Change change;
      change.without_waits = {found.first};
      Cause cause;
      cause.regime = Regime::host;
      cause.count = found.second;
      cause.gain_ns = without_.gain(change);
      cause.line = name;
      cause.what = "the host waits for the device " + (cause.count == 1 ? std::string("once") : text(cause.count, " times")) + " a step";
      cause.is_host_wait = true;
      cause.because = "nothing is issued meanwhile, so the device runs dry";
      cause.remedy = "taking the wait out, or letting a stream wait in the host's place";
      cause.note = "04";
      causes_.push_back(std::move(cause));
    }
  }

  void add_rank() {
    if (!without_.is_worth(found_.rank_ns)) return;
    // Whose kernels, or whose host, take longest beside the one in the middle?
    const std::vector<simulate::RankSteps>& ranks = without_.study().replay.steps();
    std::vector<std::pair<Nanoseconds, Rank>> compute, host;
    for (const simulate::RankSteps& rank : ranks) {
      compute.emplace_back(simulate::device_ns(rank), rank.rank);
      host.emplace_back(simulate::host_ns(rank), rank.rank);
    }
    std::sort(compute.begin(), compute.end());
    std::sort(host.begin(), host.end());
    const std::optional<bool> is_host = is_by_host(host, compute);
    Cause cause;
    cause.regime = Regime::rank;
    cause.gain_ns = found_.rank_ns;
    if (!is_host) {
      // Two that are late alike, or each for a while
      cause.avoidable = false;
      cause.what = "ranks wait for each other";
      cause.because = "a collective begins with the last of its ranks, and no single one accounts for half of it";
      causes_.push_back(std::move(cause));
      return;
    }
    const auto& slow = *is_host ? host : compute;
    const Nanoseconds usual = std::max<Nanoseconds>(1, slow[(slow.size() - 1) / 2].first);
    char times[32];
    std::snprintf(times, sizeof times, "%.2f", static_cast<double>(slow.back().first) / static_cast<double>(usual));
    cause.what = text("all wait for rank ", slow.back().second, ", ", *is_host ? "whose host takes " : "whose kernels take ", times,
                      " times as long as those of the rank in the middle");
    cause.because = *is_host ? "it comes late to every collective" : "every collective begins with the last rank";
    // Less than a twentieth more: machines of one sort differ by as much
    cause.avoidable = 20 * (slow.back().first - usual) >= usual;
    if (cause.avoidable) cause.remedy = *is_host ? "look for what else runs on that rank's CPU" : "look for what else runs on that GPU, for its clocks, or an uneven cut";
    causes_.push_back(std::move(cause));
  }

  // Is it the slow rank's host, or its kernels? Each is made to be the usual rank's, and what gains more is the cause: a host that
  // stands behind its own slow GPU takes long, too. None where neither gains half of it.
  std::optional<bool> is_by_host(const std::vector<std::pair<Nanoseconds, Rank>>& host, const std::vector<std::pair<Nanoseconds, Rank>>& compute) const {
    Change host_as_usual, device_as_usual;
    host_as_usual.usual_host = host.back().second;
    device_as_usual.usual_device = compute.back().second;
    const Nanoseconds by_host = without_.gain(host_as_usual), by_compute = without_.gain(device_as_usual);
    if (2 * std::max(by_host, by_compute) < found_.rank_ns) return std::nullopt;
    return by_host > by_compute;
  }

  // Copies and fills, and which of them: those that cross to host memory where the step gains most of it without these alone.
  // How long they take does not say so: long ones may lie beside compute, and short ones alone.
  void add_memory() {
    if (!without_.is_worth(found_.memory_ns)) return;
    const simulate::RankSteps& rank = without_.study().replay.steps().front();
    const program::Program& program = *rank.steps.back().program;
    const bool crosses = 2 * gain_without_crossing() > found_.memory_ns;
    const std::vector<Nanoseconds> open = open_of_memory(program);
    Cause cause;
    base::Bytes bytes = 0;
    bool are_states = true;
    std::map<std::string, Nanoseconds> open_of_line;
    for (program::OpIndex op = 0; op < program.ops.size(); ++op) {
      const program::Op& one = program.ops[op];
      if (!is(one, OpClass::memory) || simulate::crosses_to_host(one.desc) != crosses) continue;
      ++cause.count;
      bytes += one.desc.bytes_read + one.desc.bytes_written;
      are_states = are_states && moves_states(one, *rank.catalogue);
      open_of_line[line_of(one.where)] += open[op];
    }
    if (cause.count == 0) return;
    cause.regime = Regime::memory;
    cause.gain_ns = found_.memory_ns;
    cause.line = std::ranges::max_element(open_of_line, {}, [](const auto& of) { return of.second; })->first;
    if (crosses) {
      char size[32];
      std::snprintf(size, sizeof size, "%.3g GB", static_cast<double>(bytes) / 1e9);
      cause.what = text(cause.count, cause.count == 1 ? " copy" : " copies", " between host memory and the device, which not everything hides");
      cause.because = text(are_states ? "optimizer states in host memory cross the bus, " : remedies_.offloads() ? "what lies in host memory crosses the bus, " : "they cross the bus, ", size, " a step");
    } else {
      cause.what = text(cause.count, cause.count == 1 ? " copy or fill" : " copies and fills", ", which not everything hides");
    }
    if (crosses && (are_states || remedies_.offloads())) {
      cause.remedy = "--set fsdp.offload=none, where there is room";
      cause.note = "06";
    }
    causes_.push_back(std::move(cause));
  }

  Nanoseconds gain_without_crossing() const {
    std::map<Rank, const program::Program*> programs;
    for (const simulate::RankSteps& rank : without_.study().replay.steps()) programs[rank.rank] = rank.steps.back().program;
    Change change;
    change.factor = [&](Rank rank, program::OpIndex op) { return simulate::crosses_to_host(programs.at(rank)->ops[op].desc) ? 0.0 : 1.0; };
    return without_.gain(change);
  }

  // Of each copy or fill of the first rank what neither compute nor communication covers; of other ops 0.
  std::vector<Nanoseconds> open_of_memory(const program::Program& program) const {
    std::vector<Nanoseconds> open(program.ops.size());
    const base::Result<simulate::Replayed> unchanged = without_.study().replay.resolve();
    if (!unchanged) return open;
    const std::vector<program::TimeSpan>& ran = unchanged.value().ranks.front().steps.back().ran;
    std::vector<base::Interval> others;
    for (program::OpIndex op = 0; op < program.ops.size(); ++op) {
      if (!is(program.ops[op], OpClass::memory)) others.push_back({ran[op].start, ran[op].end});
    }
    const base::Intervals covered = base::union_of(std::move(others));
    for (program::OpIndex op = 0; op < program.ops.size(); ++op) {
      if (is(program.ops[op], OpClass::memory)) open[op] = ran[op].end - ran[op].start - base::length_within(covered, {ran[op].start, ran[op].end});
    }
    return open;
  }

  // Whether all that a copy touches is masters and moments.
  static bool moves_states(const program::Op& op, const program::Catalogue& catalogue) {
    return std::all_of(op.desc.uses.begin(), op.desc.uses.end(),
                       [&](const program::BufferUse& use) { return use.buffer < catalogue.buffers.size() && catalogue.buffers[use.buffer].kind == program::MemoryKind::optimizer; });
  }

  void add_contention() {
    Cause cause;
    cause.regime = Regime::bandwidth;
    cause.avoidable = false;
    cause.gain_ns = without_.gain_of(&simulate::Scale::contention);
    cause.what = "kernels and collectives slow each other where they run together";
    cause.because = "they share multiprocessors and memory: hidden is not free";
    cause.remedy = remedies_.of_contention();
    if (!cause.remedy.empty()) cause.note = "07";
    causes_.push_back(std::move(cause));
  }

  const Without& without_;
  const Remedies& remedies_;
  const Findings& found_;
  std::vector<Cause> causes_;
};

}  // namespace

Nanoseconds Without::gain(const Change& change) const {
  const base::Result<simulate::Replayed> changed = study_.replay.resolve(change);
  return changed ? study_.replayed_ns - changed.value().step_ns() : 0;
}

Nanoseconds Without::gain_of(double simulate::Scale::*factor) const {
  Change change;
  change.scale.*factor = 0;
  return gain(change);
}

// The CPU's own work among a stream's ops: the update of shards that lie in host memory.
std::optional<Cause> cause_of_cpu(const Without& without) {
  const simulate::Step& step = without.study().replay.steps().front().steps.back();
  Nanoseconds all_ns = 0;
  std::int64_t bytes = 0, ops = 0;
  std::map<std::string, Nanoseconds> of_line;
  for (std::size_t op = 0; op < step.program->ops.size(); ++op) {
    const program::Op& one = step.program->ops[op];
    if (!is(one, OpClass::host)) continue;
    ++ops;
    all_ns += step.costs->op_ns[op];
    bytes += one.desc.bytes_read + one.desc.bytes_written;
    of_line[line_of(one.where)] += step.costs->op_ns[op];
  }
  if (ops == 0) return std::nullopt;
  std::map<Rank, const program::Program*> programs;
  for (const simulate::RankSteps& rank : without.study().replay.steps()) programs[rank.rank] = rank.steps.back().program;
  Change change;
  change.factor = [&](Rank rank, program::OpIndex op) { return is(programs.at(rank)->ops[op], OpClass::host) ? 0.0 : 1.0; };
  Cause cause;
  cause.regime = Regime::host;
  cause.count = ops;
  cause.gain_ns = without.gain(change);
  char size[32];
  std::snprintf(size, sizeof size, "%.3g GB", static_cast<double>(bytes) / 1e9);
  cause.what = text("the CPU works for ", metrics::duration_text(all_ns), " on what lies in host memory, and the device waits for it");
  cause.because = text("it goes through ", size, " there each step");
  cause.remedy = "--set fsdp.offload=optimizer, which updates on the device, or more ranks to share it";
  cause.note = "06";
  cause.line = std::max_element(of_line.begin(), of_line.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
  return cause;
}

Cause cause_of_host(const Without& without, const Remedies& remedies, const Findings& found) {
  const simulate::RankSteps& rank = without.study().replay.steps().front();
  const simulate::Step& step = rank.steps.back();
  Nanoseconds all_ns = step.costs->step_ns;
  std::map<std::string, Nanoseconds> of_line;
  for (std::size_t at = 0; at < step.program->commands.size(); ++at) {
    const Command& command = step.program->commands[at];
    all_ns += step.costs->issue_ns[at];
    of_line[line_of(command.kind == CommandKind::op ? step.program->ops[command.op].where : command.where)] += step.costs->issue_ns[at];
  }
  Cause cause;
  cause.regime = Regime::host;
  cause.count = static_cast<std::int64_t>(step.program->commands.size());
  cause.gain_ns = found.host_ns;
  cause.what = text("the host takes ", metrics::duration_text(all_ns), " to issue ", cause.count, " calls, and the device waits for it");
  cause.because = "each call does too little work";
  cause.remedy = remedies.fewer_calls();
  cause.note = "02";
  const auto most = std::max_element(of_line.begin(), of_line.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != of_line.end()) cause.line = most->first;
  return cause;
}

std::vector<Cause> causes_of_machines(const Without& without, const Remedies& remedies, const Findings& found) {
  return Machines(without, remedies, found).run();
}

}  // namespace shardbook::cause
