// device/cuda/span_timer: when did each op run on this GPU, in the host's time?
//
// Idea: marks stand on the op's own stream before and after the op, made beforehand; nothing is read before the step has
// ended. Where nothing stands between two ops of a stream, the mark after the first is the mark before the second.
//
// A mark is a timed event, or a kernel of one thread that writes down the GPU's clock. An event that keeps the time holds its
// stream up for 1.3 to 2.8 us; such a kernel for a quarter to a half of one, if it is let in while the op before it still ends
// (early.cuh; experiments/cupti, "What a mark costs"). It wants room on a multiprocessor, though, so it stands only behind
// kernels of a stream that goes last where the device has priorities: there the op before it has just made room. A collective's
// mark would wait for a matmul that fills the device. And it costs the host 3 us, an event one, so a step whose host is not
// ahead of its device is marked by events alone.
//
// An event tells GPU time only as a distance from another. Two anchors, before the first op and after the last, tie both kinds
// of mark to the host's clock. An anchor is an event on a stream of its own, recorded when the GPU is idle. The host notes its
// clock before the record and once it sees the event done: the event's time lies between. The narrowest of 16 tries is kept,
// and half its width is its error. Behind it stand pairs of a mark kernel and an event, which tell what the clock that kernels
// read said at the anchor. Between two anchors time is interpolated, so drift cancels and the error is that of the worse anchor.
//
// A span starts at its first mark or when its launch call returned, whichever is later: a stream that ran dry passes the mark
// as soon as the host records it, and stands still until the launch has come through. Between a mark and the first instruction
// of the kernel behind it pass some microseconds, in which the stream does nothing: they belong to no op. A kernel that says
// itself how long it took tells how many, for each kind of mark and each way of launching the kernel, and every span begins so
// much behind its mark.
//
// Invariants: spans of a stream do not overlap; a mark recorded within a step is not reused within it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/device/cuda/owners.hpp"
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
  };

  explicit SpanTimer(std::string context);

  // Makes marks for so many ops. Set-up, or between steps.
  void reserve(std::size_t ops);
  // `host_is_ahead`: it has time for marks that cost it more and the device less.
  // REQUIRES: the device is idle. Throws Failure where a call fails, like all that follows.
  void begin_step(bool host_is_ahead);
  // One op: begin, then its launch, then end. `stream` counts from 0. What the op is made of decides the mark behind it and when it
  // begins behind the one before: kernels of a stream that goes last where the device has priorities, launched early (early.cuh)
  // or as a library launches them, or anything else.
  enum class Of : std::uint8_t { early_kernels, kernels, anything };
  void begin_op(program::OpIndex op, std::size_t stream_index, cudaStream_t stream, Of of);
  void end_op(std::size_t stream_index, cudaStream_t stream);
  // Something else than an op was put on this stream: the next op needs a mark of its own.
  void interrupt(std::size_t stream_index);
  // REQUIRES: the device is idle. Fills times.ran for the ops of this step.
  void end_step(program::StepTimes& times);

  // Measures both costs on `stream`, the least of a few tries, and leads, the mean of many, with kernels that time themselves.
  // REQUIRES: idle. Set-up.
  void measure_cost(cudaStream_t stream);
  const Quality& quality() const { return quality_; }
  // Whether marks of the last timed step were kernels where they may be.
  bool by_kernels() const { return by_kernels_; }

 private:
  // What the clock that kernels read says is `kernel_clock` when an event's time is that of the anchor.
  struct Anchor {
    OwnedEvent event;
    base::Nanoseconds host = 0;   // middle of the bracket
    base::Nanoseconds error = 0;  // half its width
    std::uint64_t kernel_clock = 0;
  };
  struct Mark {
    std::uint32_t at = none;  // of events_, or of clocks_
    bool by_kernel = false;
    static constexpr std::uint32_t none = ~0u;
    bool exists() const { return at != none; }
  };
  struct Span {
    program::OpIndex op;
    std::uint32_t stream;
    Of of;
    Mark first, last;
    base::Nanoseconds launched;
  };
  struct Times {
    std::vector<base::Nanoseconds> events, clocks;  // GPU time after the first anchor
    base::Nanoseconds end = 0;                      // of the second anchor
    base::Nanoseconds of(Mark mark) const { return mark.by_kernel ? clocks[mark.at] : events[mark.at]; }
  };

  Mark mark(cudaStream_t stream, bool by_kernel);
  base::Nanoseconds& lead(bool by_kernel, Of of) { return leads_[by_kernel ? 1 : 0][of == Of::early_kernels ? 1 : 0]; }
  // By how much the marks round such ops are further apart than the ops take. Set-up.
  base::Nanoseconds measure_lead(cudaStream_t stream, bool by_kernel, Of of);
  void set_anchor(Anchor& anchor);
  // What mark kernels wrote; waits for it.
  void copy_clocks(const OwnedDeviceMemory& from, std::uint64_t* to, std::size_t count);
  Times read_marks();
  base::Nanoseconds nanoseconds_between(cudaEvent_t from, cudaEvent_t to) const;

  std::string context_;
  OwnedStream anchor_stream_;
  Anchor first_, last_;
  OwnedEvent trial_;
  std::vector<OwnedEvent> ties_;
  OwnedDeviceMemory tie_clocks_, clocks_;   // what mark kernels write
  std::size_t most_clocks_ = 0;
  std::vector<OwnedEvent> events_;
  std::uint32_t used_events_ = 0, used_clocks_ = 0;
  std::vector<Span> spans_;
  std::vector<Mark> open_mark_;  // by stream: the mark after its last op, if nothing came since
  base::Nanoseconds leads_[2][2] = {};
  Quality quality_;
  const bool can_be_kernels_;    // where a kernel's mark costs the device less than an event
  bool by_kernels_ = false;      // in this step
};

}  // namespace shardbook::device::cuda
