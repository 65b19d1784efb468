// timeline/from_program: one pass over the commands of each step; see from_program.hpp.
#include "engine/timeline/from_program.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "engine/timeline/memory.hpp"

namespace shardbook::timeline {
namespace {

using program::Command;
using program::CommandKind;
using program::Op;
using program::OpKind;
using SpanNumber = TimelineBuilder::SpanNumber;

constexpr SpanNumber no_span = ~SpanNumber{0};
constexpr std::int64_t host_thread = 1;

bool known(program::TimeSpan span) { return span.start <= span.end; }

CollectiveOp collective_op(OpKind kind) {
  switch (kind) {
    case OpKind::all_reduce: return CollectiveOp::all_reduce;
    case OpKind::all_gather: return CollectiveOp::all_gather;
    case OpKind::reduce_scatter: return CollectiveOp::reduce_scatter;
    case OpKind::all_to_all: return CollectiveOp::all_to_all;
    case OpKind::broadcast: return CollectiveOp::broadcast;
    case OpKind::send: return CollectiveOp::send;
    case OpKind::recv: return CollectiveOp::recv;
    case OpKind::shift: return CollectiveOp::shift;
    default: return CollectiveOp::other;
  }
}

Class span_class(OpKind kind) {
  switch (program::class_of(kind)) {
    case program::OpClass::communication: return Class::communication;
    case program::OpClass::memory: return Class::memory;
    case program::OpClass::host: return Class::host;
    case program::OpClass::compute: break;
  }
  return Class::compute;
}

// The call of the CUDA runtime that a command amounts to, by which trace readers know it.
const char* call_name(const Command& command, const program::Program& program) {
  switch (command.kind) {
    case CommandKind::record_event: return "cudaEventRecord";
    case CommandKind::wait_event: return "cudaStreamWaitEvent";
    case CommandKind::host_wait: return "cudaEventSynchronize";
    case CommandKind::read_back: return "cudaStreamSynchronize";
    case CommandKind::op: break;
  }
  switch (program.ops[command.op].desc.kind) {
    case OpKind::copy: return "cudaMemcpyAsync";
    case OpKind::fill: return "cudaMemsetAsync";
    case OpKind::host: return "cudaLaunchHostFunc";
    default: return "cudaLaunchKernel";
  }
}

class RankAdder {
 public:
  RankAdder(TimelineBuilder& builder, Rank rank, const program::Catalogue& catalogue)
      : builder_(builder), rank_(rank), catalogue_(catalogue), sequence_base_(catalogue.groups.size(), 0) {
    host_track_ = builder_.track(rank, TrackKind::host, host_thread, "host thread");
    for (program::StreamId id = 0; id < catalogue.streams.size(); ++id) {
      const std::int64_t number = stream_number(id);
      const std::string name = base::text("stream ", number, " ", catalogue.streams[id].name);
      stream_tracks_.push_back(builder_.track(rank, TrackKind::stream, number, name));
      mark_tracks_.push_back(builder_.track(rank, TrackKind::marks, number, name + " waits"));
    }
    for (const program::GroupInfo& group : catalogue.groups) groups_.push_back(builder_.group(group.axis, group.ranks));
  }

  // Returns when the step began and ended on the device.
  StepBounds add(const ProgramStep& step) {
    step_end_ = std::max(step_end_, step.device_free_at);
    program_ = step.program;
    times_ = step.times;
    wait_ns_ = step.wait_ns;
    start_step();
    for (std::uint32_t at = 0; at < program_->commands.size(); ++at) {
      const Command& command = program_->commands[at];
      ++correlation_;
      const SpanNumber call = add_call(at);
      switch (command.kind) {
        case CommandKind::op: add_op(command, at); break;
        case CommandKind::record_event:
          recorded_[{command.event, command.generation}] = {last_op_[command.stream], at, call};
          break;
        case CommandKind::wait_event: add_wait(command, at); break;
        case CommandKind::host_wait: {
          const auto record = recorded_.find({command.event, command.generation});
          if (record != recorded_.end()) edge(record->second.after, call, EdgeKind::host);
          break;
        }
        case CommandKind::read_back: edge(last_op_[command.stream], call, EdgeKind::host); break;
      }
    }
    return end_step();
  }

 private:
  // What a recorded event covers.
  struct Recorded {
    program::OpIndex after;     // the last op of its stream
    std::uint32_t command;
    SpanNumber call;
  };
  struct Waiting {
    program::OpIndex from;
    EdgeKind kind;
    std::uint32_t record_command;
  };

  void start_step() {
    recorded_.clear();
    last_op_.assign(catalogue_.streams.size(), program::no_op);
    waiting_.assign(catalogue_.streams.size(), {});
    last_of_group_.assign(catalogue_.groups.size(), program::no_op);
    span_of_.assign(program_->ops.size(), no_span);
    step_number_ = static_cast<std::int32_t>(times_->step);
    last_end_ = times_->window.start;
    sequences_ = std::vector<std::int64_t>(catalogue_.groups.size(), 0);
  }

  StepBounds end_step() {
    Step step;
    step.rank = rank_;
    step.number = step_number_;
    step.host_start = times_->window.start;
    step.host_end = std::max(times_->window.end, times_->window.start);
    step.start = std::max(times_->window.start, step_end_);
    step.end = std::max(last_end_ > times_->window.start ? last_end_ : step.host_end, step.start);
    step_end_ = step.end;
    builder_.add_step(step);
    for (std::size_t g = 0; g < sequences_.size(); ++g) sequence_base_[g] += sequences_[g];
    return {step.start, step.end};
  }

  SpanNumber add_call(std::uint32_t at) {
    const program::TimeSpan issued = times_->issued[at];
    if (!known(issued)) return no_span;
    const Command& command = program_->commands[at];
    NewSpan span;
    span.start = issued.start;
    span.end = issued.end;
    span.label = builder_.intern(call_name(command, *program_));
    const bool blocks = command.kind == CommandKind::host_wait || command.kind == CommandKind::read_back;
    span.cls = blocks ? Class::sync : Class::host;
    span.correlation = correlation_;
    span.step = step_number_;
    if (command.kind == CommandKind::op) {
      span.detail = builder_.detail(detail_of(program_->ops[command.op], command));
    } else {
      Detail detail;
      if (command.kind != CommandKind::read_back) detail.op = builder_.intern(catalogue_.events[command.event]);
      detail.source = line_of(command.where);
      say_who_planned(detail, command);
      span.detail = builder_.detail(detail);
    }
    return builder_.add(host_track_, span);
  }

  void add_op(const Command& command, std::uint32_t at) {
    const Op& op = program_->ops[command.op];
    const program::TimeSpan ran = times_->ran[command.op];
    const program::OpIndex before = last_op_[op.stream];
    last_op_[op.stream] = command.op;
    std::vector<Waiting> waits = std::exchange(waiting_[op.stream], {});
    const bool communicates = op.desc.collective.group != program::no_group;
    if (communicates) {
      auto& sequence = sequences_[op.desc.collective.group];
      sequence = std::max<std::int64_t>(sequence, op.desc.collective.sequence + 1);
      // Collectives of one communicator follow each other; on one stream the stream says so already.
      program::OpIndex& last = last_of_group_[op.desc.collective.group];
      if (last != program::no_op && program_->ops[last].stream != op.stream) {
        waits.push_back({last, EdgeKind::communicator, ~0u});
      }
      last = command.op;
    }
    if (!known(ran)) return;

    // What held it back: the op before it on its stream, and what it awaited.
    Nanoseconds ready = before == program::no_op ? times_->window.start : end_of(before);
    Detail detail = detail_of(op, command);
    Nanoseconds awaited_until = times_->window.start - 1;
    for (const Waiting& wait : waits) {
      const Nanoseconds end = end_of(wait.from);
      ready = std::max(ready, end);
      if (wait.record_command != ~0u && end > awaited_until) {
        awaited_until = end;
        detail.awaits = line_of(program_->commands[wait.record_command].where);
      }
    }

    NewSpan span;
    span.start = ran.start;
    span.end = ran.end;
    const std::string part = op.key.part;
    span.label = builder_.intern(part.empty() ? std::string(op.desc.name) : base::text(op.desc.name, " ", part));
    span.cls = span_class(op.desc.kind);
    span.correlation = correlation_;
    span.step = step_number_;
    span.detail = builder_.detail(detail);
    span.launch_bound = known(times_->issued[at]) && times_->issued[at].start > ready;
    if (communicates) {
      Collective collective;
      collective.group = groups_[op.desc.collective.group];
      collective.seq = sequence_base_[op.desc.collective.group] + op.desc.collective.sequence;
      collective.op = collective_op(op.desc.kind);
      collective.dtype = builder_.intern(base::name_of(op.desc.dtype));
      collective.bytes = op.desc.collective.bytes;
      if (wait_ns_ != nullptr) collective.wait_ns = (*wait_ns_)[command.op];
      span.collective = builder_.collective(collective);
    }
    span_of_[command.op] = builder_.add(stream_tracks_[op.stream], span);
    for (const Waiting& wait : waits) edge(wait.from, span_of_[command.op], wait.kind);
    last_end_ = std::max(last_end_, ran.end);
  }

  // A row of no length where the wait is over, and what the next op of this stream inherits.
  void add_wait(const Command& command, std::uint32_t at) {
    const auto found = recorded_.find({command.event, command.generation});
    if (found == recorded_.end() || found->second.after == program::no_op) return;
    const Recorded& record = found->second;
    EdgeKind kind = EdgeKind::event;
    if (command.reason == program::WaitReason::limiter) kind = EdgeKind::limiter;
    if (command.reason == program::WaitReason::buffer_reuse) kind = EdgeKind::buffer;
    waiting_[command.stream].push_back({record.after, kind, record.command});
    if (!known(times_->issued[at]) || record.call == no_span || span_of_[record.after] == no_span) return;

    NewSpan mark;
    mark.start = std::max(times_->issued[at].end, end_of(record.after));
    if (last_op_[command.stream] != program::no_op) mark.start = std::max(mark.start, end_of(last_op_[command.stream]));
    mark.end = mark.start;
    mark.label = builder_.intern("Stream Wait Event");
    mark.cls = Class::sync;
    mark.correlation = correlation_;
    mark.step = step_number_;
    Detail detail;
    detail.op = builder_.intern(catalogue_.events[command.event]);
    detail.source = line_of(command.where);
    detail.awaits = line_of(program_->commands[record.command].where);
    say_who_planned(detail, command);
    mark.detail = builder_.detail(detail);
    const SpanNumber number = builder_.add(mark_tracks_[command.stream], mark);
    builder_.add_edge(record.call, number, EdgeKind::event);
    builder_.add_edge(span_of_[record.after], number, EdgeKind::event);
  }

  void edge(program::OpIndex from, SpanNumber to, EdgeKind kind) {
    if (from == program::no_op || span_of_[from] == no_span || to == no_span) return;
    builder_.add_edge(span_of_[from], to, kind);
  }

  Nanoseconds end_of(program::OpIndex op) const {
    return known(times_->ran[op]) ? times_->ran[op].end : times_->window.start;
  }

  Line line_of(program::SourceLine where) {
    Line line;
    line.file = builder_.intern(where.file);
    line.line = static_cast<std::int32_t>(where.line);
    return line;
  }

  void say_who_planned(Detail& detail, const Command& command) {
    if (*command.planned.file == 0) return;
    detail.planned = line_of(command.planned);
    detail.planned_leads = command.planned_leads;
  }

  Detail detail_of(const Op& op, const Command& command) {
    Detail detail;
    detail.op = builder_.intern(op.desc.name);
    detail.part = builder_.intern(op.key.part);
    detail.phase = builder_.intern(program::name_of(op.key.phase));
    detail.micro_batch = op.key.micro_batch;
    detail.chunk = op.key.chunk;
    detail.layer = op.key.layer;
    detail.n = op.key.n;
    detail.source = line_of(op.where);
    say_who_planned(detail, command);
    detail.flops = op.desc.flop_count;
    detail.bytes = op.desc.bytes_read + op.desc.bytes_written;
    return detail;
  }

  TimelineBuilder& builder_;
  Rank rank_;
  const program::Catalogue& catalogue_;
  std::uint32_t host_track_ = 0;
  std::vector<std::uint32_t> stream_tracks_, mark_tracks_, groups_;
  std::uint32_t correlation_ = 0;
  std::vector<std::int64_t> sequence_base_, sequences_;      // per group: before this step, in it
  Nanoseconds step_end_ = std::numeric_limits<Nanoseconds>::min();   // of the step before

  // Of the step being added.
  const program::Program* program_ = nullptr;
  const program::StepTimes* times_ = nullptr;
  const std::vector<Nanoseconds>* wait_ns_ = nullptr;
  std::int32_t step_number_ = 0;
  Nanoseconds last_end_ = 0;
  std::map<std::pair<program::EventId, std::uint32_t>, Recorded> recorded_;
  std::vector<program::OpIndex> last_op_, last_of_group_;
  std::vector<std::vector<Waiting>> waiting_;                // per stream
  std::vector<SpanNumber> span_of_;                          // per op
};

}  // namespace

void add_program(TimelineBuilder& builder, const Provenance& provenance, const program::Catalogue& catalogue,
                 const std::vector<ProgramStep>& steps) {
  builder.add_rank(provenance);
  RankAdder adder(builder, provenance.rank, catalogue);
  std::vector<StepBounds> bounds;
  for (const ProgramStep& step : steps) bounds.push_back(adder.add(step));
  add_memory(builder, provenance.rank, catalogue, steps, bounds);
}

}  // namespace shardbook::timeline
