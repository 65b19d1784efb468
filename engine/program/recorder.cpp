#include "engine/program/recorder.hpp"

#include <algorithm>
#include <ctime>

namespace shardbook::program {

namespace {

constexpr std::size_t ops_at_first = 256;   // that there is room for: a list that grows is copied

}  // namespace

base::Nanoseconds host_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<base::Nanoseconds>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

Recorder::Recorder(base::Rank rank) : rank_(rank) {}
Recorder::~Recorder() = default;

StreamId Recorder::add_stream(std::string name) {
  catalogue_.streams.push_back({std::move(name)});
  return static_cast<StreamId>(catalogue_.streams.size() - 1);
}

EventId Recorder::add_event(std::string name) {
  catalogue_.events.push_back(std::move(name));
  event_generations_.push_back(0);
  return static_cast<EventId>(catalogue_.events.size() - 1);
}

BufferId Recorder::add_buffer(BufferInfo info) {
  catalogue_.buffers.push_back(std::move(info));
  buffer_generations_.push_back(0);
  return static_cast<BufferId>(catalogue_.buffers.size() - 1);
}

GroupId Recorder::add_group(GroupInfo info) {
  for (std::size_t known = 0; known < catalogue_.groups.size(); ++known) {
    if (catalogue_.groups[known].axis == info.axis && catalogue_.groups[known].ranks == info.ranks) {
      return static_cast<GroupId>(known);
    }
  }
  catalogue_.groups.push_back(std::move(info));
  group_sequences_.push_back(0);
  return static_cast<GroupId>(catalogue_.groups.size() - 1);
}

void Recorder::begin_step(std::int64_t step, bool records) {
  SHARDBOOK_CHECK(!in_step_, "step ", step, " begins within step ", times_.step);
  in_step_ = true;
  records_ = records;
  host_waits_ = 0;
  key_ = OpKey{};
  current_.ops.clear();
  current_.commands.clear();
  times_.issued.clear();
  times_.ran.clear();
  std::fill(event_generations_.begin(), event_generations_.end(), 0);
  std::fill(buffer_generations_.begin(), buffer_generations_.end(), 0);
  std::fill(group_sequences_.begin(), group_sequences_.end(), 0);
  times_.step = step;
  if (records) {
    current_.ops.reserve(ops_at_first);
    current_.commands.reserve(2 * ops_at_first);
  }
  times_.window.start = host_now();
}

StepTimes& Recorder::end_step() {
  SHARDBOOK_CHECK(in_step_, "end_step without begin_step");
  in_step_ = false;
  times_.window.end = host_now();
  if (!records_) {
    times_.program = no_program;
    return times_;
  }
  times_.ran.assign(current_.ops.size(), TimeSpan{});
  // Find the program among those known, or keep it.
  const std::uint64_t this_hash = hash(current_, catalogue_);
  std::size_t index = 0;
  while (index < hashes_.size() && hashes_[index] != this_hash) ++index;
  times_.program = static_cast<std::uint32_t>(index);
  if (index < hashes_.size()) return times_;
  // It takes the list with it: the next step's has as much room.
  programs_.push_back(std::make_unique<Program>(std::move(current_)));
  hashes_.push_back(this_hash);
  current_ = {};
  current_.ops.reserve(programs_.back()->ops.size());
  current_.commands.reserve(programs_.back()->commands.size());
  return times_;
}

Command& Recorder::append(CommandKind kind, StreamId stream, SourceLine where) {
  SHARDBOOK_CHECK(records(), "a command outside of a step that is recorded");
  Command& command = current_.commands.emplace_back();
  command.kind = kind;
  command.stream = stream;
  command.where = where;
  command.planned = planned_;
  command.planned_leads = planned_leads_;
  const base::Nanoseconds now = host_now();
  times_.issued.push_back({now, now});
  return command;
}

OpIndex Recorder::op(StreamId stream, const OpDesc& desc, SourceLine where) {
  const OpIndex index = static_cast<OpIndex>(current_.ops.size());
  append(CommandKind::op, stream, where).op = index;
  Op& op = current_.ops.emplace_back(Op{key_, desc, stream, where});
  ++key_.n;
  // Give each buffer it touches its generation: reads see the last write, writes make the next.
  for (int use = 0; use < op.desc.uses.size(); ++use) {
    op.desc.uses[use].generation = buffer_generations_[op.desc.uses[use].buffer];
  }
  for (int use = 0; use < op.desc.uses.size(); ++use) {
    if (op.desc.written_mask >> use & 1) ++buffer_generations_[op.desc.uses[use].buffer];
  }
  return index;
}

void Recorder::record_event(StreamId stream, EventId event, SourceLine where) {
  Command& command = append(CommandKind::record_event, stream, where);
  command.event = event;
  command.generation = ++event_generations_[event];
}

void Recorder::wait_event(StreamId stream, EventId event, WaitReason reason, SourceLine where) {
  Command& command = append(CommandKind::wait_event, stream, where);
  command.event = event;
  command.generation = event_generations_[event];
  command.reason = reason;
}

void Recorder::host_wait(EventId event, SourceLine where) {
  Command& command = append(CommandKind::host_wait, 0, where);
  command.event = event;
  command.generation = event_generations_[event];
  ++host_waits_;
}

void Recorder::read_back(StreamId stream, SourceLine where) {
  append(CommandKind::read_back, stream, where);
}

std::uint32_t Recorder::next_sequence(GroupId group) { return group_sequences_[group]++; }

Scope::Scope(Recorder& recorder, Phase phase, int layer, int micro_batch)
    : recorder_(recorder), before_(recorder.key_) {
  recorder_.key_.phase = phase;
  if (layer != same) recorder_.key_.layer = static_cast<std::int16_t>(layer);
  if (micro_batch != same) recorder_.key_.micro_batch = static_cast<std::int16_t>(micro_batch);
  recorder_.key_.n = 0;
}

}  // namespace shardbook::program
