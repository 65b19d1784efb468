#include "engine/program/program.hpp"

#include <cstring>
#include <map>

namespace shardbook::program {

const char* name_of(Phase phase) {
  static constexpr const char* names[] = {"setup", "forward", "backward", "reduce", "update"};
  return names[static_cast<int>(phase)];
}

const char* name_of(OpKind kind) {
  static constexpr const char* names[] = {"gemm",       "pointwise",      "reduction",  "lookup",    "copy",
                                          "fill",       "all_reduce",     "all_gather", "reduce_scatter",
                                          "all_to_all", "broadcast",      "send",       "recv",      "attention"};
  return names[static_cast<int>(kind)];
}

OpClass class_of(OpKind kind) {
  if (kind >= OpKind::all_reduce && kind <= OpKind::recv) return OpClass::communication;
  if (kind == OpKind::copy || kind == OpKind::fill) return OpClass::memory;
  return OpClass::compute;
}

const char* name_of(OpClass op_class) {
  static constexpr const char* names[] = {"compute", "communication", "memory"};
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

void add_op(Hash& sum, const Op& op, const Catalogue& catalogue) {
  sum.add(static_cast<std::uint64_t>(static_cast<std::uint16_t>(op.key.micro_batch)) << 48 |
          static_cast<std::uint64_t>(static_cast<std::uint16_t>(op.key.layer)) << 32 |
          static_cast<std::uint64_t>(static_cast<std::uint16_t>(op.key.chunk)) << 16 |
          static_cast<std::uint64_t>(op.key.phase));
  sum.add(op.key.n);
  sum.add(op.key.part);
  sum.add(op.desc.name);
  sum.add(static_cast<std::uint64_t>(op.desc.kind) << 8 | static_cast<std::uint64_t>(op.desc.dtype));
  sum.add(static_cast<std::uint64_t>(op.desc.flop_count));
  sum.add(static_cast<std::uint64_t>(op.desc.bytes_read));
  sum.add(static_cast<std::uint64_t>(op.desc.bytes_written));
  for (int use = 0; use < op.desc.use_count; ++use) {
    const BufferUse& range = op.desc.uses[use];
    sum.add(static_cast<std::uint64_t>(range.buffer) << 32 | range.generation);
    sum.add(static_cast<std::uint64_t>(range.begin));
    sum.add(static_cast<std::uint64_t>(range.end));
  }
  sum.add(op.desc.written_mask);
  if (op.desc.collective.group != no_group) add_collective(sum, op.desc, catalogue);
}

}  // namespace

std::uint64_t hash(const Program& program, const Catalogue& catalogue) {
  Hash sum;
  for (const Command& command : program.commands) {
    sum.add(static_cast<std::uint64_t>(command.kind) << 32 | static_cast<std::uint64_t>(command.stream) << 16 |
            static_cast<std::uint64_t>(command.reason));
    sum.add(static_cast<std::uint64_t>(command.event) << 32 | command.generation);
    sum.add(command.where.file);
    sum.add(command.where.line);
    if (command.kind == CommandKind::op) add_op(sum, program.ops[command.op], catalogue);
  }
  return sum.value();
}

std::uint64_t collective_order_hash(const Program& program, const Catalogue& catalogue) {
  Hash sum;
  for (const Op& op : program.ops) {
    if (op.desc.collective.group != no_group) add_collective(sum, op.desc, catalogue);
  }
  return sum.value();
}

std::vector<Edge> edges(const Program& program) {
  std::vector<Edge> found;
  found.reserve(program.ops.size() * 2);
  struct Recorded {
    OpIndex after = no_op;  // the last op that the event covers
    std::uint32_t command = ~0u;
  };
  std::map<std::pair<EventId, std::uint32_t>, Recorded> recorded;
  std::map<StreamId, OpIndex> last_on_stream;
  std::map<StreamId, std::vector<Edge>> pending;  // waits that the next op of a stream inherits
  std::map<GroupId, OpIndex> last_of_group;
  std::vector<Edge> host_pending;  // host waits bind every later op; one edge to the next op suffices

  for (std::uint32_t at = 0; at < program.commands.size(); ++at) {
    const Command& command = program.commands[at];
    switch (command.kind) {
      case CommandKind::record_event: {
        auto last = last_on_stream.find(command.stream);
        Recorded& entry = recorded[{command.event, command.generation}];
        entry = {last == last_on_stream.end() ? no_op : last->second, at};
        break;
      }
      case CommandKind::wait_event:
      case CommandKind::host_wait: {
        auto entry = recorded.find({command.event, command.generation});
        if (entry == recorded.end() || entry->second.after == no_op) break;
        EdgeKind kind = EdgeKind::event;
        if (command.reason == WaitReason::limiter) kind = EdgeKind::limiter;
        if (command.reason == WaitReason::buffer_reuse) kind = EdgeKind::buffer_reuse;
        if (command.kind == CommandKind::host_wait) kind = EdgeKind::host;
        const Edge edge{entry->second.after, no_op, kind, entry->second.command};
        (kind == EdgeKind::host ? host_pending : pending[command.stream]).push_back(edge);
        break;
      }
      case CommandKind::read_back: break;
      case CommandKind::op: {
        const Op& op = program.ops[command.op];
        if (auto last = last_on_stream.find(op.stream); last != last_on_stream.end()) {
          found.push_back({last->second, command.op, EdgeKind::stream});
        }
        if (op.desc.collective.group != no_group) {
          if (auto last = last_of_group.find(op.desc.collective.group); last != last_of_group.end()) {
            found.push_back({last->second, command.op, EdgeKind::communicator});
          }
          last_of_group[op.desc.collective.group] = command.op;
        }
        for (std::vector<Edge>* waits : {&pending[op.stream], &host_pending}) {
          for (Edge edge : *waits) {
            edge.to = command.op;
            found.push_back(edge);
          }
          waits->clear();
        }
        last_on_stream[op.stream] = command.op;
        break;
      }
    }
  }
  return found;
}

}  // namespace shardbook::program
