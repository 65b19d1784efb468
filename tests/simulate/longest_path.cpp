#include "tests/simulate/longest_path.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace shardbook::simulate {

namespace {

using base::Nanoseconds;
using program::CommandKind;
// (axis, first rank of the group, step, sequence): one collective over its ranks.
using CollectiveKey = std::tuple<std::string, base::Rank, std::size_t, std::uint32_t>;

struct Walk {
  const RankSteps& rank;
  const Machine& machine;
  bool drain;
  std::map<CollectiveKey, Nanoseconds>& last_arrival;
  std::vector<std::vector<program::TimeSpan>>& found;

  struct Recorded {
    Nanoseconds time;
    program::StreamId stream;
  };
  Nanoseconds host = 0;
  std::map<program::StreamId, Nanoseconds> ready, end;
  std::map<program::EventId, Recorded> events;
  std::map<program::GroupId, Nanoseconds> end_of_group;
  Nanoseconds last_start = 0, last_end = 0;

  // One pass over all steps of a rank; true if something came later than in the pass before.
  bool pass() {
    bool changed = false;
    host = rank.start_ns;
    for (std::size_t step = 0; step < rank.steps.size(); ++step) {
      const program::Program& program = *rank.steps[step].program;
      const Costs& costs = *rank.steps[step].costs;
      host += costs.step_ns;
      for (std::size_t at = 0; at < program.commands.size(); ++at) {
        changed = command(step, program, program.commands[at], costs, at) || changed;
      }
      if (!drain) continue;
      for (const auto& [stream, time] : end) host = std::max(host, time);
    }
    return changed;
  }

  bool command(std::size_t step, const program::Program& program, const program::Command& command, const Costs& costs,
               std::size_t at) {
    if (command.kind == CommandKind::host_wait || command.kind == CommandKind::read_back) {
      if (command.kind == CommandKind::read_back) {
        host = std::max({host, end[command.stream], ready[command.stream]});
      } else if (auto event = events.find(command.event); event != events.end()) {
        host = std::max(host, event->second.time);
      }
      host += costs.issue_ns[at];
      return false;
    }
    host += costs.issue_ns[at];
    if (command.kind == CommandKind::record_event) {
      events[command.event] = {std::max({host, end[command.stream], ready[command.stream]}), command.stream};
      return false;
    }
    if (command.kind == CommandKind::wait_event) {
      if (auto event = events.find(command.event); event != events.end()) {
        const Nanoseconds latency = event->second.stream == command.stream ? 0 : machine.event_latency_ns;
        ready[command.stream] = std::max(ready[command.stream], event->second.time + latency);
      }
      return false;
    }
    return op(step, program.ops[command.op], costs.op_ns[command.op], command.op);
  }

  bool op(std::size_t step, const program::Op& op, Nanoseconds ns, program::OpIndex index) {
    Nanoseconds start = std::max(host + machine.launch_latency_ns, ready[op.stream]);
    if (end.count(op.stream) != 0) start = std::max(start, end[op.stream] + machine.stream_gap_ns);
    Nanoseconds from = start;
    if (op.desc.collective.group != program::no_group) {
      const program::GroupInfo& group = rank.catalogue->groups[op.desc.collective.group];
      start = std::max(start, end_of_group[op.desc.collective.group]);
      if (machine.order == Machine::CollectiveOrder::launch) start = std::max(start, last_start);
      if (machine.order == Machine::CollectiveOrder::serial) start = std::max(start, last_end);
      Nanoseconds& arrival = last_arrival[{group.axis, group.ranks.front(), step, op.desc.collective.sequence}];
      arrival = std::max(arrival, start);
      from = arrival;
      end_of_group[op.desc.collective.group] = from + ns;
      last_start = start;
      last_end = std::max(last_end, from + ns);
    }
    end[op.stream] = from + ns;
    const bool changed = found[step][index].start != start || found[step][index].end != from + ns;
    found[step][index] = {start, from + ns};
    return changed;
  }
};

}  // namespace

std::vector<std::vector<std::vector<program::TimeSpan>>> longest_paths(const std::vector<RankSteps>& ranks,
                                                                       const Machine& machine, bool drain_each_step) {
  std::map<CollectiveKey, Nanoseconds> last_arrival;
  std::vector<std::vector<std::vector<program::TimeSpan>>> found(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const Step& step : ranks[rank].steps) found[rank].emplace_back(step.program->ops.size());
  }
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      Walk walk{ranks[rank], machine, drain_each_step, last_arrival, found[rank], 0, {}, {}, {}, {}, 0, 0};
      changed = walk.pass() || changed;
    }
  }
  return found;
}

}  // namespace shardbook::simulate
