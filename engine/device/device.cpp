#include "engine/device/device.hpp"

#include <cstring>

#include "engine/device/copy.hpp"

namespace shardbook::device {

const char* name_of(Kind kind) {
  static constexpr const char* names[] = {"host", "cuda", "meta"};
  return names[static_cast<int>(kind)];
}

Device::Device(Kind kind, Storage storage, base::Rank rank) : kind_(kind), storage_(storage), recorder_(rank) {}
Device::~Device() = default;

void Device::set_watch(std::function<void()> watch) { watch_ = std::move(watch); }
void Device::leave_room(program::Beside::Rule rule) { beside_ = program::Beside(std::move(rule)); }
void Device::leave_out_waits(std::string event_ends_in) { left_out_ = std::move(event_ends_in); }
void Device::set_before_op(std::function<void(Lane, const program::OpDesc&)> before_op) { before_op_ = std::move(before_op); }

namespace host {
void copy(const CopyArgs& args) { std::memcpy(args.to, args.from, static_cast<std::size_t>(args.bytes)); }
}  // namespace host

Memory Device::allocate(std::int64_t elements, base::DType dtype, program::MemoryKind kind,
                        const std::string& name) {
  SHARDBOOK_CHECK(!sealed_, "'", name, "' is allocated after seal(): make all memory before the first step, ",
                  "an allocation can stall every peer that waits in a collective");
  Memory memory;
  const base::Bytes nominal_bytes = elements * base::size_of(dtype);
  memory.storage_bytes = elements * base::size_of(storage_.of(dtype));
  memory.use = {recorder_.add_buffer({name, kind, nominal_bytes}), 0, nominal_bytes};
  try {
    memory.data = allocate_storage(memory.storage_bytes);
  } catch (const std::exception& problem) {
    throw base::Failure(base::text("rank ", recorder_.rank(), ": no memory for '", name, "' (",
                                   memory.storage_bytes >> 20, " MiB, after ", allocated_bytes_ >> 20,
                                   " MiB): ", problem.what()));
  }
  allocated_bytes_ += memory.storage_bytes;
  note_place(memory.use.buffer, memory.data, dtype);
  return memory;
}

Stream& Device::create_stream(const std::string& name, Priority priority) {
  SHARDBOOK_CHECK(!sealed_, "stream '", name, "' is created after seal()");
  streams_.push_back(std::make_unique<Stream>(*this, recorder_.add_stream(name)));
  stream_created(streams_.back()->id(), priority);
  return *streams_.back();
}

Event Device::create_event(const std::string& name) {
  SHARDBOOK_CHECK(!sealed_, "event '", name, "' is created after seal()");
  const Event event{recorder_.add_event(name)};
  event_created(event.id);
  return event;
}

void Device::seal() { sealed_ = true; }

void stand_still(base::Nanoseconds ns) {
  const base::Nanoseconds end = program::host_now() + ns;
  while (program::host_now() < end) {
  }
}

void Device::launch_body(Lane lane, const program::OpDesc& desc, const Body& body) {
  op_desc_ = &desc;
  if (!in_step_) {
    run(lane.stream->id(), body, program::no_op);
    return;
  }
  if (before_op_) before_op_(lane, desc);
  const bool brings = checks_finite_ && desc.collective.group != program::no_group;
  if (brings) look_at_inputs(lane, desc);
  const bool recorded = recorder_.records();
  const program::OpIndex op = recorded ? recorder_.op(lane.stream->id(), desc, lane.where) : program::no_op;
  op_desc_ = &desc;   // those that look at its inputs were in between
  longer_ = program::class_of(desc.kind) == program::OpClass::compute ? slower_.kernel : 0;
  left_ = beside_.on() ? beside_.op(lane.stream->id(), desc) : 0;
  run(lane.stream->id(), body, timed_ ? op : program::no_op);
  longer_ = left_ = 0;
  if (slower_.call > 0) stand_still(slower_.call);
  if (recorded) recorder_.issued();
  if (checks_finite_) look_at_outputs(lane, desc, op);
}

void Device::record(Lane lane, Event event) {
  const bool recorded = recorder_.records();
  if (recorded) recorder_.record_event(lane.stream->id(), event.id, lane.where);
  if (in_step_ && beside_.on()) beside_.record(lane.stream->id(), event.id);
  run_record(lane.stream->id(), event.id);
  if (recorded) recorder_.issued();
}

void Device::wait(Lane lane, Event event, program::WaitReason reason) {
  if (!left_out_.empty() && recorder_.catalogue().events[event.id].ends_with(left_out_)) return;
  const bool recorded = recorder_.records();
  if (recorded) recorder_.wait_event(lane.stream->id(), event.id, reason, lane.where);
  if (in_step_ && beside_.on()) beside_.wait(lane.stream->id(), event.id);
  run_wait(lane.stream->id(), event.id);
  if (recorded) recorder_.issued();
}

void Device::host_wait(Event event, std::source_location where) {
  if (capturing_) {
    throw base::Failure(base::text("a step that waits on the host (", where.file_name(), ":", where.line(), ") cannot become a graph: leave out host.graph=on"));
  }
  const bool recorded = recorder_.records();
  if (recorded) recorder_.host_wait(event.id, {where.file_name(), where.line()});
  run_host_wait(event.id);
  if (recorded) recorder_.issued();
}

void Device::begin_capture(Stream& origin) {
  SHARDBOOK_CHECK(captures() && !capturing_ && !in_step_, "a capture begins between steps, where none is under way, on a device that captures");
  capturing_ = true;
  capture_begins(origin.id());
}

Graph Device::end_capture() {
  SHARDBOOK_CHECK(capturing_ && !in_step_, "a capture ends between steps");
  capturing_ = false;
  return capture_ends();
}

void Device::replay(Graph graph) {
  SHARDBOOK_CHECK(graph.exists() && !capturing_, "only what was captured can be issued again");
  run_graph(graph);
}

void Device::upload(Lane lane, const char* name, const void* from_host, const Memory& to) {
  program::OpDesc desc(name, program::OpKind::copy, base::DType::f32);
  desc.writes(to.use);
  launch(lane, desc, CopyArgs{from_host, to.data, to.storage_bytes}, &host::copy, &cuda::copy);
}

void Device::download(Lane lane, const char* name, const Memory& from, void* to_host) {
  program::OpDesc desc(name, program::OpKind::copy, base::DType::f32);
  desc.reads(from.use);
  launch(lane, desc, CopyArgs{from.data, to_host, from.storage_bytes}, &host::copy, &cuda::copy);
}

void Device::begin_step(std::int64_t step, bool timed) {
  timed_ = timed;
  in_step_ = true;
  if (beside_.on()) beside_.begin_step();
  step_begins(timed);
  // Of a long run nobody asks for another step that was not timed: nothing of it is written down. One that is captured shows
  // what the graph will do.
  const bool records = timed || capturing_ || checks_finite_ || !keeps_timed_alone_ || !any_recorded_;
  any_recorded_ = any_recorded_ || records;
  recorder_.begin_step(step, records);
}

program::StepTimes& Device::end_step() {
  in_step_ = false;
  program::StepTimes& times = recorder_.end_step();
  step_ends(timed_, times);
  timed_ = false;
  return times;
}

}  // namespace shardbook::device
