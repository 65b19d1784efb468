// device/cuda/span_timer: when did each op run on this GPU, in the host's time?
//
// Idea: a mark stands on the op's own stream behind the op, made beforehand; none is read before the step has ended. An op begins
// where the last of what it stands behind ended: the op before it on its stream, and the ops before the events for which its stream
// waited since. So nothing is marked where an op begins, and a wait costs no mark.
//
// A mark is a timed event, or a kernel of one thread that writes down the GPU's clock. An event that keeps the time holds its
// stream up for 1.3 to 2.8 us; such a kernel for a quarter to one, if it is let in while the op before it still ends
// (early.cuh; experiments/cupti, "What a mark costs"). It wants room on a multiprocessor, though, so it stands only behind
// kernels of a stream that goes last where the device has priorities: there the op before it has just made room. A collective's
// mark would wait for a matmul that fills the device; it is an event, and where the stream is recorded behind the collective, the
// mark stands behind that record: what waits there is not held up. It races whoever waits, though, and of some pairs of streams it
// tells little; once such a wait for an event was seen, the mark stands on the way, in front of the record.
// A mark kernel costs the host 3 us, an event one, so in a step whose host is not ahead of its device all marks are events. Where a
// step has more ops than the device queues, the host waits as it issues untimed steps; then the pace at which it issues the first ops
// of this one, to a queue that is empty, tells, and their marks alone are events; in the next step of as many ops not even theirs.
//
// Best is no mark at all. A kernel that is let in early and comes next on the stream waits for the op anyway, and many can write the
// clock down then (TimedKernelBefore). One that is launched late would tell that end too late, so only while the host is far
// ahead: every 16 ops the device is asked whether it is past the place where it was asked before; if so, the next 16 have marks.
// What is asked with is an event behind the mark, so one op in 16 may begin later than its lead says; by how much was not measured.
// And a host that then stops for longer than it is ahead tells an end as late as it stops.
//
// An event tells GPU time only as a distance from another. Two anchors, before the first op and after the last, tie both kinds
// of mark to the host's clock. An anchor is an event on a stream of its own, recorded when the GPU is idle. The host notes its
// clock before the record and once it sees the event done: the event's time lies between. The narrowest of 16 tries is kept,
// and half its width is its error. Behind it stand pairs of a mark kernel and an event, which tell what the clock that kernels
// read said at the anchor. Between two anchors time is interpolated, so drift cancels and the error is that of the worse anchor.
//
// A span starts behind its mark or when its launch call returned, whichever is later: a stream that ran dry stands still until the
// launch has come through. Between a mark and the first instruction of the kernel behind it pass some microseconds, in which the
// stream does nothing: they belong to no op. A kernel that says itself how long it took tells how many, for each mark before it and
// behind it, each way of launching the kernel, and each way from the one to the other: straight, past a wait that was over, or by a
// wait. How long a wait takes is the two streams' own (experiments/cupti, "Two kinds of waits"), so it is measured of each two, and
// where it takes now the one time and now another, a span begins in the middle of both. A collective that finds no multiprocessor free
// counts as begun.
//
// Invariants: spans of a stream do not overlap; what waited begins no sooner than what it waited for ended; a mark recorded within
// a step is not reused within it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/device/cuda/owners.hpp"
#include "engine/device/cuda_queue.hpp"
#include "engine/program/times.hpp"
#include "engine/program/program.hpp"

namespace shardbook::device::cuda {

class SpanTimer {
 public:
  // What the method costs and how exact it is, in nanoseconds.
  struct Quality {
    base::Nanoseconds clock_error = 0;  // of the last timed step: device times against the host's clock
    base::Nanoseconds host_cost = 0;    // of the mark between two kernels of a step whose host is ahead, on the host
    base::Nanoseconds device_cost = 0;  // of the same, on the stream
    base::Nanoseconds lead = 0;         // from such a mark to the start of a library's kernel behind it
    std::size_t without_marks = 0;      // ops of the last timed step whose ends the next kernels told
  };

  explicit SpanTimer(std::string context);

  // Makes marks for so many ops. Set-up, or between steps.
  void reserve(std::size_t ops);

  // How untimed steps went: how long the host issued one for, what one took, and its ops. 0: not known.
  struct Untimed {
    base::Nanoseconds issue = 0, period = 0;
    std::size_t ops = 0;
  };
  // REQUIRES: the device is idle. Throws Failure where a call fails, like all that follows.
  void begin_step(const Untimed& untimed);
  // One op: begin, then its launch, then end. `stream` counts from 0. What the op is made of decides the mark behind it and when it
  // begins behind the one before: kernels of a stream that goes last where the device has priorities, launched early (early.cuh)
  // or as a library launches them, or anything else.
  enum class Of : std::uint8_t { early_kernels, kernels, anything };
  // Returns where the first kernel of early ones shall write down when the one before it ended (CudaQueue), or null.
  std::uint64_t* begin_op(program::OpIndex op, std::size_t stream_index, cudaStream_t stream, Of of);
  // `before`: what became of that place; still there if the op launched nothing. A mark that the next kernel may make is left to the
  // next begin_op(); an event, if `leave_to_record`, to recorded(), which has it behind the record. Any other call makes it.
  void end_op(BeforeEnded before, bool leave_to_record);
  // The event is about to be recorded, or was, on the stream, or the stream is about to wait for it. Of untimed steps as well, which
  // tell for which events somebody races a mark.
  void records(program::EventId event);
  void recorded(std::size_t stream_index, program::EventId event);
  void waits(std::size_t stream_index, program::EventId event);
  // The host does something else before its next call: what is left to mark is marked.
  void mark_now();
  // REQUIRES: mark_now() was the last call, and the device is idle. Fills times.ran for the ops of this step.
  void end_step(program::StepTimes& times);

  // Measures both costs on `stream`, the least of a few tries, and leads, of many, with kernels that time themselves; those
  // by a wait of each two of `streams`, in the order of their indices. REQUIRES: idle. Set-up, of half a second for four.
  struct Timed {
    cudaStream_t stream;
    bool goes_last;   // where the device has priorities: only there marks are kernels, and kernels are early
  };
  void measure_cost(cudaStream_t stream, const std::vector<Timed>& streams);
  const Quality& quality() const { return quality_; }
  // Whether marks of the last timed step were kernels where they may be; in the first long step, all but the first.
  bool by_kernels() const { return by_kernels_; }

 private:
  // What the clock that kernels read says is `kernel_clock` when an event's time is that of the anchor.
  struct Anchor {
    OwnedEvent event;
    base::Nanoseconds host = 0;   // middle of the bracket
    base::Nanoseconds error = 0;  // half its width
    std::uint64_t kernel_clock = 0;
  };
  // An event behind the op, and so on the way to whoever waits for what the stream records next; one behind that record; a kernel
  // behind the op; or the next op's own.
  enum class Place : std::uint8_t { behind_op, behind_record, kernel, next_kernel };
  struct Mark {
    std::uint32_t at = none;      // of events_, or of clocks_
    Place place = Place::behind_op;
    std::uint32_t stream = 0;
    std::uint32_t number = 0;     // of two marks of a stream the later has the greater
    bool by_clock() const { return place == Place::kernel || place == Place::next_kernel; }
    static constexpr std::uint32_t none = ~0u;
  };
  // What stands behind these begins when the last of them has ended: at most one of a stream, for a later one has all before it behind it.
  using Marks = std::vector<Mark>;
  static void add(Marks& to, const Mark& mark);

  struct OfStream {
    cudaStream_t stream = nullptr;
    Marks behind;                 // what its next op stands behind
    bool waited = false;          // since its last op
    OwnedEvent passed;            // recorded when the device was asked last
    std::size_t ops = 0;          // of this step, marked by kernels
    bool far_behind = false;      // the device was, when asked
  };
  // The way from the mark to the op: nothing between them; the stream waited, and was past that when the op before ended; or what it
  // waited for came last.
  enum class Way : std::uint8_t { straight, past_wait, by_wait };
  struct Span {
    program::OpIndex op;
    std::uint32_t stream;
    Of of;
    bool waited;
    std::uint32_t first, end;     // of firsts_: what it stands behind
    Mark last;
    base::Nanoseconds launched;
  };
  struct Times {
    std::vector<base::Nanoseconds> events, clocks;  // GPU time after the first anchor
    base::Nanoseconds end = 0;                      // of the second anchor
    base::Nanoseconds& of(const Mark& mark) { return mark.by_clock() ? clocks[mark.at] : events[mark.at]; }
  };

  bool host_is_ahead(base::Nanoseconds issue) const;
  // Whether marks behind the records that the one waits for tell no closer than 2 us, of nine in ten, when it goes on.
  bool races(std::size_t waits, std::size_t waited_for) const;
  OfStream& of_stream(std::size_t stream_index);
  Mark mark(std::size_t stream_index, Place place);
  void mark_end(Place place);
  // Whether a kernel marks the last op of spans_; and whether the first one of an op that comes next may be it.
  bool marked_by_kernel() const { return by_kernels_ && spans_.back().of != Of::anything; }
  bool next_tells(std::size_t stream_index, Of of) const;
  // Each so many ops of the stream: has the device come to where it was asked the last time?
  void ask_how_far(OfStream& on);
  std::uint64_t* clock(const Mark& mark) const { return static_cast<std::uint64_t*>(clocks_.get()) + mark.at; }
  // `first`, `last`: the mark before such an op, and that behind it.
  struct Leads {
    base::Nanoseconds ns[4][3][2][3] = {};
    // Either kernel is let in early behind the op and notes the same end, if there is room: a mark needs that of one thread, the next
    // kernel that of its first block
    base::Nanoseconds& of(Place first, Place last, Of of, Way way) {
      const Place noted = last == Place::next_kernel ? Place::kernel : last;
      return ns[static_cast<int>(first)][static_cast<int>(noted)][of == Of::early_kernels ? 1 : 0][static_cast<int>(way)];
    }
  };
  // Of many distances, but for a tenth at either end.
  struct NineInTen {
    base::Nanoseconds least, most;
    base::Nanoseconds middle() const { return std::max<base::Nanoseconds>((least + most) / 2, 0); }
  };
  // By how much the marks round such ops are further apart than the ops take; by a wait, where the second stream waits for the first.
  // Without one, on the first alone. Set-up.
  using TwoStreams = std::array<cudaStream_t, 2>;
  NineInTen measure_lead(const TwoStreams& streams, Place first, Place last, Of of, Way way);
  // For all the marks and ops that `waits`'s stream has behind those that `waited_for`'s has; of a stream alone both are it. Returns
  // the widest of those behind a record, from least to most.
  base::Nanoseconds measure_leads(Leads& leads, const Timed& waits, const Timed& waited_for, const TwoStreams& streams, Way way);
  std::vector<Place> places_of(const Timed& stream) const;
  void set_anchor(Anchor& anchor);
  // What kernels wrote; waits for it.
  void copy_clocks(const OwnedDeviceMemory& from, std::uint64_t* to, std::size_t count);
  Times read_marks();
  base::Nanoseconds nanoseconds_between(cudaEvent_t from, cudaEvent_t to) const;

  std::string context_;
  OwnedStream anchor_stream_;
  Anchor first_, last_;
  OwnedEvent trial_;
  std::vector<OwnedEvent> ties_;
  OwnedDeviceMemory tie_clocks_, clocks_;   // what kernels write
  std::size_t most_clocks_ = 0;
  std::vector<OwnedEvent> events_;
  std::uint32_t used_events_ = 0, used_clocks_ = 0;
  std::vector<Span> spans_;
  Marks firsts_;
  std::vector<OfStream> streams_;
  struct OfEvent {
    Marks behind;                // what stands behind a wait for it, in this step
    std::uint32_t stream = 0;    // on which it was recorded last
    bool raced = false;          // a stream has waited for it that races the marks behind that one's records
  };
  OfEvent& of_event(program::EventId event);
  std::vector<OfEvent> events_recorded_;
  Untimed untimed_;
  base::Nanoseconds begin_ = 0;  // of this step, by the host's clock
  std::size_t ahead_with_ops_ = 0;   // of a step whose pace told that the host is ahead: in others of so many it is from the begin
  bool in_step_ = false;
  bool unmarked_ = false;        // the last op of spans_ has no mark behind it yet
  std::uint32_t marks_ = 0;
  std::vector<std::vector<Leads>> leads_;    // by the stream that waits, and the one that it waits for: without a wait, itself
  std::vector<std::vector<bool>> races_;     // the same; empty until it is measured
  Quality quality_;
  const bool can_be_kernels_;    // where a kernel's mark costs the device less than an event
  bool by_kernels_ = false;      // in this step, from here on
};

}  // namespace shardbook::device::cuda
