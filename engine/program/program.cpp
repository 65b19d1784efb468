#include "engine/program/program.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace shardbook::program {

const char* name_of(Phase phase) {
  static constexpr const char* names[] = {"setup", "forward", "backward", "reduce", "update"};
  return names[static_cast<int>(phase)];
}

const char* name_of(OpKind kind) {
  static constexpr const char* names[] = {"gemm",       "pointwise",      "reduction",  "lookup",    "copy",
                                          "fill",       "all_reduce",     "all_gather", "reduce_scatter",
                                          "all_to_all", "broadcast",      "send",       "recv",      "attention",      "host",      "shift"};
  return names[static_cast<int>(kind)];
}

OpClass class_of(OpKind kind) {
  if ((kind >= OpKind::all_reduce && kind <= OpKind::recv) || kind == OpKind::shift) return OpClass::communication;
  if (kind == OpKind::copy || kind == OpKind::fill) return OpClass::memory;
  if (kind == OpKind::host) return OpClass::host;
  return OpClass::compute;
}

const char* name_of(OpClass op_class) {
  static constexpr const char* names[] = {"compute", "communication", "memory", "host"};
  return names[static_cast<int>(op_class)];
}

const char* name_of(MemoryKind kind) {
  static constexpr const char* names[] = {"parameter", "gathered",  "gradient", "optimizer",
                                          "activation", "workspace", "input"};
  return names[static_cast<int>(kind)];
}

const char* name_of(EdgeKind kind) {
  static constexpr const char* names[] = {"stream",       "event",   "host",        "collective",
                                          "communicator", "limiter", "buffer_reuse"};
  return names[static_cast<int>(kind)];
}

void OpDesc::add(const BufferUse& use, bool written) {
  SHARDBOOK_CHECK(uses.size() < BufferUses::most, name, " names more than ", BufferUses::most, " buffers");
  if (written) written_mask |= static_cast<std::uint16_t>(1u << uses.size());
  uses.add(use);
}

bool SourceLine::operator==(const SourceLine& other) const {
  return line == other.line && (file == other.file || std::strcmp(file, other.file) == 0);
}

namespace {

// A word-wise mixer in the manner of MurmurHash3's finaliser: quick enough to run at each step's end.
class Hash {
 public:
  void add(std::uint64_t word) {
    word *= 0xff51afd7ed558ccdull;
    word ^= word >> 33;
    state_ = (state_ ^ word) * 0xc4ceb9fe1a85ec53ull;
    state_ ^= state_ >> 29;
  }
  void add(const char* words) {
    std::uint64_t sum = 1469598103934665603ull;
    for (; *words != 0; ++words) sum = (sum ^ static_cast<unsigned char>(*words)) * 1099511628211ull;
    add(sum);
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15ull;
};

void add_collective(Hash& sum, const OpDesc& desc, const Catalogue& catalogue) {
  const GroupInfo& group = catalogue.groups.at(desc.collective.group);
  sum.add(group.axis.c_str());
  sum.add(group.ranks.size());
  sum.add(static_cast<std::uint64_t>(desc.kind));
  sum.add(desc.collective.sequence);
  sum.add(static_cast<std::uint64_t>(desc.collective.bytes));
  sum.add(static_cast<std::uint64_t>(desc.collective.peer));
  sum.add(static_cast<std::uint64_t>(desc.dtype));
}

// Numbers as they are, or by when they are first seen.
class Numbering {
 public:
  explicit Numbering(bool by_first_use) : by_first_use_(by_first_use) {}
  std::uint64_t operator()(std::uint32_t number) {
    return by_first_use_ ? places_.try_emplace(number, places_.size()).first->second : number;
  }

 private:
  bool by_first_use_;
  std::map<std::uint32_t, std::uint64_t> places_;
};

void add_op(Hash& sum, const Op& op, const Catalogue& catalogue, bool structure_only, Numbering& buffers) {
  sum.add(static_cast<std::uint64_t>(static_cast<std::uint16_t>(op.key.micro_batch)) << 48 |
          static_cast<std::uint64_t>(static_cast<std::uint16_t>(op.key.layer)) << 32 |
          static_cast<std::uint64_t>(static_cast<std::uint16_t>(op.key.chunk)) << 16 |
          static_cast<std::uint64_t>(op.key.phase));
  if (!structure_only) sum.add(op.key.n);
  sum.add(op.key.part);
  sum.add(op.desc.name);
  sum.add(static_cast<std::uint64_t>(op.desc.kind) << 8 | static_cast<std::uint64_t>(op.desc.dtype));
  sum.add(static_cast<std::uint64_t>(op.desc.flop_count));
  sum.add(static_cast<std::uint64_t>(op.desc.bytes_read));
  sum.add(static_cast<std::uint64_t>(op.desc.bytes_written));
  for (int use = 0; use < op.desc.uses.size(); ++use) {
    const BufferUse& range = op.desc.uses[use];
    sum.add(buffers(range.buffer) << 32 | range.generation);
    sum.add(static_cast<std::uint64_t>(range.begin));
    sum.add(static_cast<std::uint64_t>(range.end));
  }
  sum.add(op.desc.written_mask);
  if (op.desc.collective.group != no_group) add_collective(sum, op.desc, catalogue);
}

std::uint64_t hash_of_program(const Program& program, const Catalogue& catalogue, bool structure_only) {
  Hash sum;
  Numbering streams(structure_only), events(structure_only), buffers(structure_only);
  for (const Command& command : program.commands) {
    sum.add(static_cast<std::uint64_t>(command.kind) << 32 | streams(command.stream) << 16 | static_cast<std::uint64_t>(command.reason));
    const bool of_event = command.kind == CommandKind::record_event || command.kind == CommandKind::wait_event || command.kind == CommandKind::host_wait;
    sum.add((of_event ? events(command.event) : 0) << 32 | command.generation);
    if (!structure_only) {
      for (const SourceLine& line : {command.where, command.planned}) {
        sum.add(line.file);
        sum.add(line.line);
      }
      sum.add(command.planned_leads);
    }
    if (command.kind == CommandKind::op) add_op(sum, program.ops[command.op], catalogue, structure_only, buffers);
  }
  return sum.value();
}

}  // namespace

std::uint64_t hash(const Program& program, const Catalogue& catalogue) { return hash_of_program(program, catalogue, false); }

std::uint64_t structure_hash(const Program& program, const Catalogue& catalogue) { return hash_of_program(program, catalogue, true); }

std::uint64_t collective_order_hash(const Program& program, const Catalogue& catalogue) {
  Hash sum;
  for (const Op& op : program.ops) {
    if (op.desc.collective.group == no_group || is_pair(op.desc.kind)) continue;
    OpDesc desc = op.desc;
    desc.collective.sequence = 0;   // counts pairs as well
    if (desc.kind == OpKind::all_to_all) desc.collective.bytes = 0;
    add_collective(sum, desc, catalogue);
  }
  return sum.value();
}

namespace {

// Walks over one program, or two in a row, and finds the edges whose `to` is in the last. Ops and commands are
// counted through: those of the last program come after those of the one before.
class EdgeFinder {
 public:
  static std::vector<Edge> within(const Program& program) {
    EdgeFinder finder;
    finder.walk(program, 0, 0);
    return std::move(finder.found_);
  }

  static std::vector<Edge> across(const Program& before, const Program& program) {
    EdgeFinder finder;
    finder.walk(before, 0, 0);
    finder.found_.clear();
    finder.keep_last_records();
    const OpIndex border = static_cast<OpIndex>(before.ops.size());
    finder.walk(program, border, static_cast<std::uint32_t>(before.commands.size()));
    std::erase_if(finder.found_, [border](const Edge& edge) { return edge.from >= border; });
    for (Edge& edge : finder.found_) edge.to -= border;
    return std::move(finder.found_);
  }

 private:
  // What an event covers: the last op of its stream, and what that stream had awaited since then.
  struct Recorded {
    std::vector<OpIndex> after;
    std::uint32_t command = ~0u;
  };

  // A wait for generation 0 is for what the step before recorded last.
  void keep_last_records() {
    std::map<std::pair<EventId, std::uint32_t>, Recorded> last;
    for (auto& [key, entry] : recorded_) last[{key.first, 0}] = std::move(entry);
    recorded_ = std::move(last);
  }

  void walk(const Program& program, OpIndex ops_before, std::uint32_t commands_before) {
    for (std::uint32_t at = 0; at < program.commands.size(); ++at) {
      const Command& command = program.commands[at];
      switch (command.kind) {
        case CommandKind::record_event: record(command, commands_before + at); break;
        case CommandKind::wait_event:
        case CommandKind::host_wait: wait(command); break;
        case CommandKind::read_back: break;
        case CommandKind::op: issue(program.ops[command.op], ops_before + command.op); break;
      }
    }
  }

  void record(const Command& command, std::uint32_t at) {
    Recorded& entry = recorded_[{command.event, command.generation}];
    entry = {{}, at};
    const auto last = last_on_stream_.find(command.stream);
    if (last != last_on_stream_.end()) entry.after.push_back(last->second);
    // A wait that no op has followed yet is passed on. Of each stream the last op that was awaited will do.
    std::map<StreamId, OpIndex> passed_on;
    for (const Edge& waits : pending_[command.stream]) {
      OpIndex& latest = passed_on.try_emplace(stream_of_[waits.from], waits.from).first->second;
      latest = std::max(latest, waits.from);
    }
    for (const auto& [stream, op] : passed_on) entry.after.push_back(op);
  }

  void wait(const Command& command) {
    const auto entry = recorded_.find({command.event, command.generation});
    if (entry == recorded_.end()) return;
    EdgeKind kind = EdgeKind::event;
    if (command.reason == WaitReason::limiter) kind = EdgeKind::limiter;
    if (command.reason == WaitReason::buffer_reuse) kind = EdgeKind::buffer_reuse;
    if (command.kind == CommandKind::host_wait) kind = EdgeKind::host;
    for (OpIndex from : entry->second.after) {
      (kind == EdgeKind::host ? host_pending_ : pending_[command.stream]).push_back({from, no_op, kind, entry->second.command});
    }
  }

  void issue(const Op& op, OpIndex number) {
    const auto [last, is_first_op] = last_on_stream_.try_emplace(op.stream, number);
    if (!is_first_op) found_.push_back({last->second, number, EdgeKind::stream});
    if (op.desc.collective.group != no_group) {
      const auto [of_group, is_first] = last_of_group_.try_emplace(op.desc.collective.group, number);
      if (!is_first) found_.push_back({of_group->second, number, EdgeKind::communicator});
      of_group->second = number;
    }
    for (std::vector<Edge>* waits : {&pending_[op.stream], &host_pending_}) {
      for (Edge edge : *waits) {
        edge.to = number;
        found_.push_back(edge);
      }
      waits->clear();
    }
    last->second = number;
    stream_of_.resize(std::size_t{number} + 1);
    stream_of_[number] = op.stream;
  }

  std::vector<Edge> found_;
  std::map<std::pair<EventId, std::uint32_t>, Recorded> recorded_;
  std::map<StreamId, OpIndex> last_on_stream_;
  std::map<StreamId, std::vector<Edge>> pending_;  // waits that the next op of a stream inherits
  std::map<GroupId, OpIndex> last_of_group_;
  std::vector<Edge> host_pending_;  // host waits bind every later op; one edge to the next op suffices
  std::vector<StreamId> stream_of_;  // by op
};

}  // namespace

std::vector<Edge> edges(const Program& program) { return EdgeFinder::within(program); }

std::vector<Edge> edges_across(const Program& before, const Program& program) {
  return EdgeFinder::across(before, program);
}

}  // namespace shardbook::program
