// device: who owns this memory, stream, event?
//
// A Device is one rank's executor: memory from an arena, streams (FIFO queues), events between them.
// Three kinds stand behind one contract, and the same training code issues the same program to each:
//   cuda  kernels on a GPU, streams and events as CUDA has them;
//   host  (the embedded default) the CPU runs what the queues hold, when the host must wait for it;
//   meta  nothing runs; the program alone is of interest.
//
// Invariants
//   - No call here blocks but host_wait, synchronize, end_step, begin_step of a traced step, and the end of a capture.
//     Collectives never block the issuing thread.
//   - Memory, streams and events are made before seal(); afterwards asking for one is a check failure,
//     since an allocation can stall every peer that waits in a collective.
//   - Everything that is issued within a step is recorded with its caller's line (see Lane).
//   - A Device and all that it hands out belong to one host thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/device/cuda_queue.hpp"
#include "engine/device/finite.hpp"
#include "engine/device/host_function.hpp"
#include "engine/program/beside.hpp"
#include "engine/program/recorder.hpp"

namespace shardbook::device {

enum class Kind : std::uint8_t { host, cuda, meta };
const char* name_of(Kind kind);

class Device;

// A FIFO queue of a device. Owned by its device; address and id are stable.
class Stream {
 public:
  Stream(Device& device, program::StreamId id) : device_(device), id_(id) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Device& device() const { return device_; }
  program::StreamId id() const { return id_; }

 private:
  Device& device_;
  program::StreamId id_;
};

// Where and by whose line something is issued. Every op takes a Lane first, and a Stream becomes one at
// the call, so the line that is recorded is the caller's: `gelu_forward(compute, x, y)`.
struct Lane {
  Lane(Stream& stream, std::source_location where = std::source_location::current())  // NOLINT: implicit by design
      : stream(&stream), where{where.file_name(), where.line()} {}
  Stream* stream;
  program::SourceLine where;

  Device& device() const { return stream->device(); }
  program::Recorder& recorder() const;
};

// A point in a stream's queue that other streams, or the host, can wait for. A value: it names the
// device's event, which lives as long as the device.
struct Event {
  program::EventId id = 0;
};

// A range of a device's memory. `data` is null on meta. A value: the arena owns the memory.
struct Memory {
  void* data = nullptr;
  program::BufferUse use;  // nominal bytes
  base::Bytes storage_bytes = 0;
};

// An op's body in the forms that the devices run. `arguments` are copied, bit by bit, so they hold
// pointers and sizes, never owners. A host body that returns false has not been able to run yet (a
// collective whose peers have not come) and is asked again.
struct Body {
  static constexpr std::size_t max_bytes = 256;
  const void* arguments = nullptr;
  std::size_t bytes = 0;
  bool (*host)(const void* arguments) = nullptr;
  void (*cuda)(const void* arguments, const CudaQueue& queue) = nullptr;
};

// Returns so much later; the processor is busy meanwhile.
void stand_still(base::Nanoseconds ns);

// Lower starts first where the device has priorities.
enum class Priority : std::uint8_t { high, normal };

// A step that was captured: what it issued, to be issued again at once. A value: the device owns it.
struct Graph {
  int id = -1;
  bool exists() const { return id >= 0; }
};
struct GraphInfo {
  std::size_t nodes = 0;             // what it holds: ops, copies, collectives' kernels
  base::Nanoseconds made_in = 0;     // host time, from the end of the capture until it could be launched
};

// How a device's numbers are stored, given their nominal type.
struct Storage {
  base::DType bf16 = base::DType::f32;  // what nominal bf16 is stored as
  base::DType f32 = base::DType::f32;   // what nominal f32 is stored as
  base::DType of(base::DType nominal) const {
    if (nominal == base::DType::bf16) return bf16;
    if (nominal == base::DType::f32) return f32;
    return nominal;
  }
};

// By how much a lab's machine is slower than the real one: the host in issuing each op, the device in running each kernel
// that computes. ns.
struct Slower {
  base::Nanoseconds call = 0;
  base::Nanoseconds kernel = 0;
};

class Device {
 public:
  Device(Kind kind, Storage storage, base::Rank rank);
  virtual ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Kind kind() const { return kind_; }
  Storage storage() const { return storage_; }
  program::Recorder& recorder() { return recorder_; }

  // Set-up only: check failures after seal(). `elements` of nominal type `dtype`, 256-byte aligned and
  // zeroed. Throws Failure naming the buffer and what is left where memory does not suffice.
  Memory allocate(std::int64_t elements, base::DType dtype, program::MemoryKind kind, const std::string& name);
  Stream& create_stream(const std::string& name, Priority priority = Priority::normal);
  Event create_event(const std::string& name);
  virtual void seal();
  bool sealed() const { return sealed_; }

  // Issues one op: recorded if within a step, then run by whatever this device is. Returns at once.
  //   lane.device().launch(lane, desc, args, &host::gelu_forward, &cuda::gelu_forward);
  // Args must be trivially copyable and at most Body::max_bytes. The host form may return void or bool.
  template <class Args, class HostForm>
  void launch(Lane lane, const program::OpDesc& desc, const Args& args, HostForm host_form,
              void (*cuda_form)(const Args&, const CudaQueue&));
  void launch_body(Lane lane, const program::OpDesc& desc, const Body& body);
  // Issues the CPU's own work in its place among the lane's ops, of OpKind::host, on host memory alone: it runs when what
  // the lane holds before it has run, and no thread waits for it. `form` gets the processors to share it among, or null for
  // this thread alone; it must not throw.
  template <class Args>
  void launch_on_host(Lane lane, const program::OpDesc& desc, const Args& args, void (*form)(const Args&, Crew* crew));
  // Set-up: threads for it, as many as the rank may use processors. Where there is none, the host device's own thread does it.
  virtual void set_up_crew() {}

  // The event completes when all that was issued to the lane before it has run.
  void record(Lane lane, Event event);
  // What is issued to the lane from here on runs after the event's last record has completed.
  void wait(Lane lane, Event event, program::WaitReason reason = program::WaitReason::data);
  // The host waits for the event. Counted, and shown: a step should need none.
  void host_wait(Event event, std::source_location where = std::source_location::current());

  // Copies all of a Memory from or to host memory, in stream order: ops of class memory. The host memory
  // must stay as it is until the copy has run: use pinned() memory that is not touched again before an
  // event says so. `name` is a literal.
  void upload(Lane lane, const char* name, const void* from_host, const Memory& to);
  void download(Lane lane, const char* name, const Memory& from, void* to_host);
  // Host memory that copies fast (page-locked on cuda). Set-up only; zeroed; owned by the device.
  virtual void* pinned(base::Bytes bytes) = 0;

  // Waits until everything issued so far has run. Outside of steps, or at the end of one.
  virtual void synchronize() = 0;

  // A step begins and ends. `timed` asks for device times. end_step of a timed step waits for the device
  // and fills `ran` where this device can tell times (cuda: measured; host: measured on this CPU,
  // durations only, see HostDevice); of an untimed step it does not wait.
  void begin_step(std::int64_t step, bool timed);
  program::StepTimes& end_step();

  // Graphs. What is issued from begin_capture to end_capture, to any stream, does not run but becomes a graph; `replay` issues
  // all of it again with one call on `origin`, behind all that was issued before, to any stream, and before all that is issued
  // later. Arguments of ops are those of the capture, bit by bit: what changes from step to step lies in memory. Events that
  // were recorded before the capture count as complete in it, and those recorded within it are seen by it alone. A host_wait
  // in between is refused (Failure). REQUIRES of all three: captures().
  virtual bool captures() const { return false; }
  void begin_capture(Stream& origin);
  Graph end_capture();
  void replay(Graph graph);
  virtual GraphInfo info(Graph) const { return {}; }
  // Before communicators go whose calls are in one.
  virtual void drop_graphs() {}
  bool capturing() const { return capturing_; }

  // Called every so often while the host waits, so that the failure of a peer can end the wait (by an
  // exception). Set once, before the first step.
  void set_watch(std::function<void()> watch);

  // Of a long run: nobody will ask for the programs of steps that are not timed. The first step's is kept; those after it are
  // issued without being written down, at no cost.
  void keep_timed_programs_alone() { keeps_timed_alone_ = true; }

  // Set before the first step: a matmul leaves multiprocessors to the collectives that start beside it (program/beside.hpp). On cuda it
  // is planned for the rest; other devices have none.
  void leave_room(program::Beside::Rule rule);

  // Of labs, set before the first step: a slower machine; and a mistake, that no stream waits for events whose name ends so.
  void make_slower(Slower by) { slower_ = by; }
  void leave_out_waits(std::string event_ends_in);

  // Set-up: from the first step on an op more, "check_finite", goes through whatever numbers an op has written (finite.hpp).
  // That costs a pass over memory for each, and is recorded as any op is.
  void check_finite();
  // The first op of that step that wrote a number which is not finite (or read one, of a collective), if there was none
  // in an earlier step. When the host has awaited the step.
  std::optional<Ticket> first_not_finite(std::int64_t step) const;
  // Where a buffer is that allocate() did not make: what it holds is checked, too.
  void note_place(program::BufferId buffer, void* data, base::DType nominal);
  // The numbers in a range; nothing where it holds none. `data` is null on meta.
  struct Numbers {
    void* data = nullptr;
    std::int64_t elements = 0;
    base::DType stored = base::DType::f32;
  };
  std::optional<Numbers> numbers_in(const program::BufferUse& use) const;
  // The same of whole numbers, too; nothing where no place was noted. Null where it is not known, as on meta.
  std::optional<Numbers> range_of(const program::BufferUse& use) const;

  // Of tests: called with each op of a step before it is issued.
  void set_before_op(std::function<void(Lane, const program::OpDesc&)> before_op);

  // Storage bytes of all that was allocated.
  base::Bytes allocated_bytes() const { return allocated_bytes_; }

 protected:
  virtual void* allocate_storage(base::Bytes bytes) = 0;  // null on meta
  virtual void stream_created(program::StreamId id, Priority priority) = 0;
  virtual void event_created(program::EventId id) = 0;
  // `op` is no_op outside of a timed step.
  virtual void run(program::StreamId stream, const Body& body, program::OpIndex op) = 0;
  virtual void run_record(program::StreamId stream, program::EventId event) = 0;
  virtual void run_wait(program::StreamId stream, program::EventId event) = 0;
  virtual void run_host_wait(program::EventId event) = 0;
  virtual void capture_begins(program::StreamId) {}
  virtual Graph capture_ends() { return {}; }
  virtual void run_graph(Graph) {}
  virtual void step_begins(bool timed) = 0;
  virtual void step_ends(bool timed, program::StepTimes& times) = 0;

  bool timed() const { return timed_; }
  // So much longer than its body takes the op that run() is given shall keep the device.
  base::Nanoseconds longer() const { return longer_; }
  // Whether the host stands still behind each op.
  bool host_is_slower() const { return slower_.call > 0; }
  // The op that run() is given.
  const program::OpDesc& op_desc() const { return *op_desc_; }
  // So many multiprocessors the op that run() is given shall leave to others.
  int left() const { return left_; }
  void watch() const { if (watch_) watch_(); }

 private:
  void look_at_inputs(Lane lane, const program::OpDesc& read);
  void look_at(Lane lane, const program::BufferUse& range, const Numbers& numbers, std::uint64_t ticket);
  void look_at_outputs(Lane lane, const program::OpDesc& written, program::OpIndex op);

  // Where a buffer's numbers are; by its id. What none was noted of holds no numbers.
  struct Place {
    void* data = nullptr;
    base::DType nominal = base::DType::i32;
  };

  Kind kind_;
  Storage storage_;
  program::Recorder recorder_;
  std::vector<Place> places_;
  bool checks_finite_ = false;
  std::uint64_t* least_ticket_ = nullptr;
  std::vector<std::unique_ptr<Stream>> streams_;
  bool sealed_ = false;
  bool timed_ = false;
  bool in_step_ = false;
  bool capturing_ = false;
  bool any_recorded_ = false;
  bool keeps_timed_alone_ = false;
  Slower slower_;
  base::Nanoseconds longer_ = 0;
  program::Beside beside_;
  int left_ = 0;
  const program::OpDesc* op_desc_ = nullptr;
  std::string left_out_;
  base::Bytes allocated_bytes_ = 0;
  std::function<void()> watch_;
  std::function<void(Lane, const program::OpDesc&)> before_op_;
};

inline program::Recorder& Lane::recorder() const { return stream->device().recorder(); }

template <class Args, class HostForm>
void Device::launch(Lane lane, const program::OpDesc& desc, const Args& args, HostForm host_form,
                    void (*cuda_form)(const Args&, const CudaQueue&)) {
  static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) + 2 * sizeof(void*) <= Body::max_bytes);
  // Both forms travel with the arguments, so that one untyped pair of functions can unpack them.
  struct Packed {
    Args args;
    HostForm host_form;
    void (*cuda_form)(const Args&, const CudaQueue&);
  } packed{args, host_form, cuda_form};
  Body body;
  body.arguments = &packed;
  body.bytes = sizeof(Packed);
  body.host = [](const void* raw) -> bool {
    const Packed& unpacked = *static_cast<const Packed*>(raw);
    if constexpr (std::is_same_v<decltype(unpacked.host_form(unpacked.args)), bool>) {
      return unpacked.host_form(unpacked.args);
    } else {
      unpacked.host_form(unpacked.args);
      return true;
    }
  };
  body.cuda = [](const void* raw, const CudaQueue& queue) {
    const Packed& unpacked = *static_cast<const Packed*>(raw);
    unpacked.cuda_form(unpacked.args, queue);
  };
  launch_body(lane, desc, body);
}

template <class Args>
void Device::launch_on_host(Lane lane, const program::OpDesc& desc, const Args& args, void (*form)(const Args&, Crew* crew)) {
  static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) + sizeof(void*) <= Body::max_bytes);
  struct Packed {
    Args args;
    void (*form)(const Args&, Crew* crew);
  } packed{args, form};
  Body body;
  body.arguments = &packed;
  body.bytes = sizeof(Packed);
  body.host = [](const void* raw) -> bool {
    const Packed& unpacked = *static_cast<const Packed*>(raw);
    unpacked.form(unpacked.args, nullptr);
    return true;
  };
  body.cuda = [](const void* raw, const CudaQueue& queue) {
    cuda::call_on_host([unpacked = *static_cast<const Packed*>(raw), crew = queue.crew] { unpacked.form(unpacked.args, crew); }, queue);
  };
  launch_body(lane, desc, body);
}

}  // namespace shardbook::device
