#include "engine/check/races.hpp"

#include <algorithm>

#include "engine/check/accesses.hpp"
#include "engine/check/order.hpp"
#include "engine/check/words.hpp"

namespace shardbook::check {

using base::text;
using program::Command;
using program::CommandKind;
using program::Op;
using program::Program;

namespace {

class Finder {
 public:
  explicit Finder(const program::Catalogue& catalogue)
      : certain_(catalogue.streams.size(), catalogue.events.size()), mended_(certain_), buffers_(catalogue.buffers.size()) {}

  void walk(const Program& program, std::uint32_t step) {
    for (const Command& command : program.commands) {
      switch (command.kind) {
        case CommandKind::op: issue(program.ops[command.op], {step, command.op}); break;
        case CommandKind::record_event: both([&](Order& order) { order.record(command.stream, command.event); }); break;
        case CommandKind::wait_event: both([&](Order& order) { order.wait(command.stream, command.event); }); break;
        case CommandKind::host_wait: both([&](Order& order) { order.host_wait(command.event); }); break;
        case CommandKind::read_back: both([&](Order& order) { order.read_back(command.stream); }); break;
      }
    }
  }

  std::vector<Race> found;

 private:
  struct Issued {
    Place place;
    Stamp stamp;
    Clock mended;  // what has ended once this op has
  };
  struct Conflict {
    OpNumber with;
    Race race;
  };

  template <class Act>
  void both(Act act) {
    act(certain_);
    act(mended_);
  }

  void issue(const Op& op, Place place) {
    const OpNumber number = static_cast<OpNumber>(issued_.size());
    conflicts_.clear();
    // What it reads must have been written
    for (int use = 0; use < op.desc.uses.size(); ++use) {
      if (op.desc.written_mask >> use & 1) continue;
      const program::BufferUse& range = op.desc.uses[use];
      buffers_[range.buffer].read(range.begin, range.end, {op.stream, number}, [&](OpNumber writer, base::Bytes begin, base::Bytes end) {
        meet(writer, op.stream, {range.buffer, begin, end, {}, place, true, false});
      });
    }
    // What it writes must have been read, and written, by all before
    for (int use = 0; use < op.desc.uses.size(); ++use) {
      if ((op.desc.written_mask >> use & 1) == 0) continue;
      const program::BufferUse& range = op.desc.uses[use];
      buffers_[range.buffer].write(range.begin, range.end, number, [&](OpNumber other, bool wrote, base::Bytes begin, base::Bytes end) {
        meet(other, op.stream, {range.buffer, begin, end, {}, place, wrote, true});
      });
    }
    tell(op.stream);

    both([&](Order& order) { order.op(op.stream); });
    issued_.push_back({place, {op.stream, certain_.clock(op.stream)[op.stream]}, mended_.clock(op.stream)});
  }

  // Notes a conflict with an earlier op, if nothing orders the two.
  void meet(OpNumber with, program::StreamId stream, Race race) {
    if (with == issued_.size() || certain_.ended(issued_[with].stamp, stream)) return;
    for (Conflict& known : conflicts_) {
      if (known.with != with || known.race.buffer != race.buffer) continue;
      known.race.begin = std::min(known.race.begin, race.begin);
      known.race.end = std::max(known.race.end, race.end);
      known.race.first_writes |= race.first_writes;
      known.race.second_writes |= race.second_writes;
      return;
    }
    race.first = issued_[with].place;
    conflicts_.push_back({with, race});
  }

  // The conflicts of one op: the latest op that it should have awaited first, since a wait for that one covers
  // what its stream did before.
  void tell(program::StreamId stream) {
    std::sort(conflicts_.begin(), conflicts_.end(), [](const Conflict& a, const Conflict& b) {
      return a.with != b.with ? a.with > b.with : a.race.buffer < b.race.buffer;
    });
    for (Conflict& conflict : conflicts_) {
      const Issued& other = issued_[conflict.with];
      conflict.race.follows = mended_.ended(other.stamp, stream);
      if (!conflict.race.follows) mended_.assume(stream, other.mended);
      found.push_back(conflict.race);
    }
  }

  Order certain_;  // by what was issued
  Order mended_;   // and by the waits that the races found so far ask for
  std::vector<Accesses> buffers_;
  std::vector<Issued> issued_;
  std::vector<Conflict> conflicts_;  // of the op at hand
};

// The command that issued an op.
std::size_t command_of(const Program& program, program::OpIndex op) {
  std::size_t at = 0;
  while (at < program.commands.size() && (program.commands[at].kind != CommandKind::op || program.commands[at].op != op)) ++at;
  return at;
}

// The first event that a stream records after one op and before another is issued, or null: what could be awaited.
const Command* recorded_between(const Steps& steps, Place first, Place second, program::StreamId stream) {
  for (std::uint32_t step = first.step; step <= second.step; ++step) {
    const std::vector<Command>& commands = steps[step]->commands;
    const std::size_t begin = step == first.step ? command_of(*steps[step], first.op) : 0;
    const std::size_t end = step == second.step ? command_of(*steps[step], second.op) : commands.size();
    for (std::size_t at = begin; at < end; ++at) {
      if (commands[at].kind == CommandKind::record_event && commands[at].stream == stream) return &commands[at];
    }
  }
  return nullptr;
}

}  // namespace

std::vector<Race> races(const program::Catalogue& catalogue, const Steps& steps) {
  Finder finder(catalogue);
  for (std::uint32_t step = 0; step < steps.size(); ++step) finder.walk(*steps[step], step);
  return std::move(finder.found);
}

Steps steps_to_check(const std::vector<const Program*>& traced) {
  Steps steps;
  for (const Program* program : traced) {
    const std::size_t size = steps.size();
    if (size < 2 || steps[size - 1] != program || steps[size - 2] != program) steps.push_back(program);
  }
  if (!steps.empty() && (steps.size() == 1 || steps[steps.size() - 2] != steps.back())) steps.push_back(steps.back());
  return steps;
}

std::string sentence(const Race& race, const program::Catalogue& catalogue, const Steps& steps) {
  const Op& first = steps[race.first.step]->ops[race.first.op];
  const Op& second = steps[race.second.step]->ops[race.second.op];
  const std::string waiting = stream_name(catalogue, second.stream), awaited = stream_name(catalogue, first.stream);
  const std::uint32_t steps_apart = race.second.step - race.first.step;
  std::string sentence =
      text(waiting, " ", race.second_writes ? "overwrites " : "reads ", buffer_name(catalogue, race.buffer), " (bytes ", race.begin, " to ",
           race.end, ") in ", op_text(second), " while ", awaited, " may still be ", race.first_writes ? "writing" : "reading", " it in ",
           op_text(first), steps_apart == 0 ? "" : steps_apart == 1 ? " of the step before" : " of an earlier step", ": ", waiting,
           " must wait for an event that ", awaited, " records after that");
  if (const Command* record = recorded_between(steps, race.first, race.second, first.stream)) {
    sentence += text(", as ", event_name(catalogue, record->event), " (", line_text(record->where), ")");
  }
  return sentence;
}

}  // namespace shardbook::check
