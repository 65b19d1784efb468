#include "engine/simulate/plan.hpp"

#include <algorithm>
#include <map>

namespace shardbook::simulate {

using program::Command;
using program::CommandKind;
using program::EdgeKind;

namespace {

EdgeKind edge_of(program::WaitReason reason) {
  if (reason == program::WaitReason::limiter) return EdgeKind::limiter;
  if (reason == program::WaitReason::buffer_reuse) return EdgeKind::buffer_reuse;
  return EdgeKind::event;
}

}  // namespace

Plan plan_of(const program::Program& program, const program::Catalogue& catalogue, const ResolveOptions& options) {
  const auto left_out = [&](EdgeKind kind, const Command& wait, const Command* record) {
    const std::vector<EdgeKind>& kinds = options.without;
    const std::vector<program::SourceLine>& lines = options.without_waits;
    const auto names = [&](const program::SourceLine& where) { return std::find(lines.begin(), lines.end(), where) != lines.end(); };
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end() || names(wait.where) || (record && names(record->where));
  };
  // What recorded each event last, in a step before.
  std::vector<const Command*> recorded_earlier(catalogue.events.size(), nullptr);
  for (const Command& command : program.commands) {
    if (command.kind == CommandKind::record_event) recorded_earlier[command.event] = &command;
  }
  Plan plan;
  plan.streams.resize(catalogue.streams.size());
  plan.last_slot.assign(catalogue.events.size(), none);
  plan.collective_of_op.assign(program.ops.size(), none);
  plan.group_collectives.assign(catalogue.groups.size(), 0);
  std::map<std::pair<program::EventId, std::uint32_t>, std::uint32_t> slots;
  std::vector<std::uint32_t> slot_command;   // which command records it
  const auto record = [&](program::StreamId stream, std::uint32_t command) {
    plan.streams[stream].push_back({ItemKind::record, command, plan.slots});
    plan.slot_stream.push_back(stream);
    slot_command.push_back(command);
    return plan.slots++;
  };

  for (std::uint32_t at = 0; at < program.commands.size(); ++at) {
    const Command& command = program.commands[at];
    switch (command.kind) {
      case CommandKind::op: {
        const program::Op& op = program.ops[command.op];
        plan.streams[op.stream].push_back({ItemKind::op, at, command.op});
        if (program::class_of(op.desc.kind) != program::OpClass::communication) break;
        plan.collective_of_op[command.op] = static_cast<std::uint32_t>(plan.collectives.size());
        plan.collectives.push_back({command.op, plan.group_collectives[op.desc.collective.group]++});
        break;
      }
      case CommandKind::record_event: {
        const std::uint32_t slot = record(command.stream, at);
        slots[{command.event, command.generation}] = slot;
        plan.last_slot[command.event] = slot;
        break;
      }
      case CommandKind::wait_event:
      case CommandKind::host_wait: {
        const bool of_host = command.kind == CommandKind::host_wait;
        const auto slot = slots.find({command.event, command.generation});
        const bool earlier = slot == slots.end();
        const Command* record = earlier ? recorded_earlier[command.event] : &program.commands[slot_command[slot->second]];
        if (left_out(of_host ? EdgeKind::host : edge_of(command.reason), command, record)) break;
        const std::uint32_t target = earlier ? command.event : slot->second;
        if (of_host) {
          plan.host_waits.push_back({at, earlier, target});
        } else {
          plan.streams[command.stream].push_back({earlier ? ItemKind::wait_earlier : ItemKind::wait, at, target});
        }
        break;
      }
      case CommandKind::read_back: {
        if (left_out(EdgeKind::host, command, nullptr)) break;
        plan.host_waits.push_back({at, false, record(command.stream, at)});
        break;
      }
    }
  }
  return plan;
}

}  // namespace shardbook::simulate
