#include "engine/simulate/reorder.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace shardbook::simulate {

using program::Command;
using program::CommandKind;

namespace {

// The commands [begin, end) that belong to one collective.
struct Bundle {
  std::size_t begin = 0, end = 0, at = 0;
};

std::vector<Bundle> bundles_of(const program::Program& program, const program::SourceLine& line) {
  std::vector<Bundle> bundles;
  const std::vector<Command>& commands = program.commands;
  for (std::size_t at = 0; at < commands.size(); ++at) {
    if (commands[at].kind != CommandKind::op) continue;
    const program::Op& op = program.ops[commands[at].op];
    if (program::class_of(op.desc.kind) != program::OpClass::communication || !(op.where == line)) continue;
    Bundle bundle{at, at + 1, at};
    const auto is = [&](std::size_t place, CommandKind kind) {
      return commands[place].kind == kind && commands[place].stream == op.stream;
    };
    while (bundle.begin > 0 && is(bundle.begin - 1, CommandKind::wait_event)) --bundle.begin;
    while (bundle.end < commands.size() && is(bundle.end, CommandKind::record_event)) ++bundle.end;
    bundles.push_back(bundle);
  }
  return bundles;
}

bool reads_what_it_writes(const program::OpDesc& reader, const program::OpDesc& writer) {
  for (int read = 0; read < reader.uses.size(); ++read) {
    for (int written = 0; written < writer.uses.size(); ++written) {
      if (!(writer.written_mask >> written & 1)) continue;
      const program::BufferUse& a = reader.uses[read];
      const program::BufferUse& b = writer.uses[written];
      const bool is_only_written = reader.written_mask >> read & 1;
      if (!is_only_written && a.buffer == b.buffer && a.begin < b.end && b.begin < a.end) return true;
    }
  }
  return false;
}

// The first place at which the bundle may be issued, not before `from`.
std::size_t earliest(const program::Program& program, const Bundle& bundle, std::size_t from) {
  const program::OpDesc& desc = program.ops[program.commands[bundle.at].op].desc;
  const auto awaits = [&](const Command& record) {
    for (std::size_t at = bundle.begin; at < bundle.at; ++at) {
      const Command& wait = program.commands[at];
      if (wait.reason == program::WaitReason::data && wait.event == record.event && wait.generation == record.generation) return true;
    }
    return false;
  };
  for (std::size_t at = bundle.begin; at-- > from;) {
    const Command& command = program.commands[at];
    if (command.kind == CommandKind::record_event && awaits(command)) return at + 1;
    if (command.kind == CommandKind::op && reads_what_it_writes(desc, program.ops[command.op].desc)) return at + 1;
  }
  return from;
}

}  // namespace

Reordered issued_earlier(const program::Program& program, const std::vector<program::SourceLine>& lines) {
  // Where each command goes: behind the command before `place`, in the order of the old places.
  struct Place {
    std::size_t place = 0;
    bool stays = true;       // what is moved to a place comes before what stays there
    std::uint32_t was_at = 0;
  };
  Reordered out;
  std::vector<Place> places(program.commands.size());
  for (std::uint32_t at = 0; at < places.size(); ++at) places[at] = {at, true, at};
  std::vector<Command> commands = program.commands;
  for (const program::SourceLine& line : lines) {
    const std::vector<Bundle> bundles = bundles_of(program, line);
    for (std::size_t number = 1; number < bundles.size(); ++number) {
      const Bundle& bundle = bundles[number];
      const std::size_t to = earliest(program, bundle, bundles[number - 1].end);
      if (to >= bundle.begin) continue;
      ++out.moved;
      for (std::size_t at = bundle.begin; at < bundle.end; ++at) {
        places[at] = {to, false, static_cast<std::uint32_t>(at)};
        Command& command = commands[at];
        if (command.kind != CommandKind::wait_event || command.reason == program::WaitReason::data) continue;
        // What was recorded by then.
        std::uint32_t generation = 0;
        for (std::size_t before = 0; before < to; ++before) {
          const Command& record = program.commands[before];
          const bool is_it = record.kind == CommandKind::record_event && record.event == command.event;
          if (is_it) generation = std::max(generation, record.generation);
        }
        command.generation = generation;
      }
    }
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tie(a.place, a.stays, a.was_at) < std::tie(b.place, b.stays, b.was_at);
  });
  out.program.ops = program.ops;
  for (const Place& place : places) {
    out.program.commands.push_back(commands[place.was_at]);
    out.was_at.push_back(place.was_at);
  }
  return out;
}

}  // namespace shardbook::simulate
