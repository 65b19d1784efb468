// Small programs by hand: streams, events and buffers by number, a byte range for each use.
#pragma once

#include <string>
#include <vector>

#include "engine/check/races.hpp"

namespace shardbook::tests {

// Streams of a program by hand.
inline constexpr program::StreamId a = 0, b = 1, c = 2;

// Bytes that an op reads or writes.
struct Use {
  program::BufferId buffer;
  base::Bytes begin, end;
  bool writes;
};
inline Use reads(program::BufferId buffer, base::Bytes begin = 0, base::Bytes end = 8) { return {buffer, begin, end, false}; }
inline Use writes(program::BufferId buffer, base::Bytes begin = 0, base::Bytes end = 8) { return {buffer, begin, end, true}; }

// What is issued, command by command. Lines count from 1, in a file of the test's own.
struct Issued {
  explicit Issued(int streams = 3, int events = 4, int buffers = 3) {
    for (int at = 0; at < streams; ++at) catalogue.streams.push_back({std::string(1, static_cast<char>('a' + at))});
    for (int at = 0; at < events; ++at) catalogue.events.push_back("event" + std::to_string(at));
    for (int at = 0; at < buffers; ++at) catalogue.buffers.push_back({"buffer" + std::to_string(at), program::MemoryKind::workspace, 8});
  }

  program::OpIndex op(program::StreamId stream, const std::vector<Use>& uses, const char* name = "op") {
    program::OpDesc desc(name, program::OpKind::pointwise, base::DType::f32);
    for (const Use& use : uses) {
      const program::BufferUse range{use.buffer, use.begin, use.end};
      if (use.writes) desc.writes(range);
      else desc.reads(range);
    }
    const program::OpIndex index = static_cast<program::OpIndex>(program.ops.size());
    program::Command& command = add(program::CommandKind::op, stream);
    command.op = index;
    program::Op& op = program.ops.emplace_back(program::Op{{}, desc, stream, command.where});
    op.key.phase = program::Phase::forward;
    return index;
  }
  void record(program::StreamId stream, program::EventId event) { add(program::CommandKind::record_event, stream).event = event; }
  void wait(program::StreamId stream, program::EventId event) { add(program::CommandKind::wait_event, stream).event = event; }
  void host_wait(program::EventId event) { add(program::CommandKind::host_wait, 0).event = event; }
  void read_back(program::StreamId stream) { add(program::CommandKind::read_back, stream); }

  // Issued once, or as often as it is said.
  std::vector<check::Race> races(std::size_t steps = 1) const { return check::races(catalogue, check::Steps(steps, &program)); }
  std::string said(const check::Race& race, std::size_t steps = 1) const { return check::sentence(race, catalogue, check::Steps(steps, &program)); }

  program::Catalogue catalogue;
  program::Program program;

 private:
  program::Command& add(program::CommandKind kind, program::StreamId stream) {
    program::Command& command = program.commands.emplace_back();
    command.kind = kind;
    command.stream = stream;
    command.where = {"test.cpp", static_cast<std::uint32_t>(program.commands.size())};
    return command;
  }
};

}  // namespace shardbook::tests
