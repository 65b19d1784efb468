// device/cuda/span_timer: when did each op run on this GPU, in the host's time?
//
// Idea: a timed event is recorded on the op's own stream before and after the op, from a pool made
// beforehand; nothing is read before the step has ended. Where nothing stands between two ops of a
// stream, the mark after the first is the mark before the second. An event tells GPU time; two anchors, before
// the first op and after the last, tie that to the host's clock.
//
// An anchor is an event on a stream of its own, recorded when the GPU is idle. The host notes its clock
// before the record and once it sees the event done: the event's time lies between. The
// narrowest of 16 tries is kept, and half its width is its error. Between two anchors time is
// interpolated, so drift cancels and the error is that of the worse anchor.
//
// A span starts at its first mark or when its launch call returned, whichever is later: a stream that ran
// dry passes the mark as soon as the host records it, and stands still until the launch has come through.
// Between a mark and the first instruction of the kernel behind it pass some microseconds, in which the stream does nothing:
// they belong to no op. A kernel that says itself how long it took tells how many (quality().lead), and every span that
// begins with a mark begins so much later.
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
    base::Nanoseconds host_cost = 0;    // of one op's pair of marks, on the host that issues it
    base::Nanoseconds device_cost = 0;  // of one op's pair of marks, on the stream
    base::Nanoseconds lead = 0;         // from a mark to the start of the kernel behind it
  };

  explicit SpanTimer(std::string context);

  // Makes marks for so many ops. Set-up, or between steps.
  void reserve(std::size_t ops);
  // REQUIRES: the device is idle. Throws Failure where a call fails, like all that follows.
  void begin_step();
  // One op: begin, then its launch, then end. `stream` counts from 0.
  void begin_op(program::OpIndex op, std::size_t stream_index, cudaStream_t stream);
  void end_op(std::size_t stream_index, cudaStream_t stream);
  // Something else than an op was put on this stream: the next op needs a mark of its own.
  void interrupt(std::size_t stream_index);
  // REQUIRES: the device is idle. Fills times.ran for the ops of this step.
  void end_step(program::StepTimes& times);

  // Measures both costs on `stream` with empty kernels, the least of a few tries, and the lead with kernels that time
  // themselves, the mean of many. REQUIRES: idle. Set-up.
  void measure_cost(cudaStream_t stream);
  const Quality& quality() const { return quality_; }

 private:
  struct Anchor {
    OwnedEvent event;
    base::Nanoseconds host = 0;   // middle of the bracket
    base::Nanoseconds error = 0;  // half its width
  };
  struct Span {
    program::OpIndex op;
    std::uint32_t stream, first, last;  // marks
    base::Nanoseconds launched;
  };
  static constexpr std::uint32_t no_mark = ~0u;

  std::uint32_t mark(cudaStream_t stream);
  void measure_lead(cudaStream_t stream);
  void set_anchor(Anchor& anchor);
  // Nanoseconds of GPU time after the first anchor: of all marks, and of the second anchor.
  std::vector<base::Nanoseconds> read_marks();
  base::Nanoseconds nanoseconds_between(cudaEvent_t from, cudaEvent_t to) const;

  std::string context_;
  OwnedStream anchor_stream_;
  Anchor first_, last_;
  OwnedEvent trial_;
  std::vector<OwnedEvent> pool_;
  std::uint32_t used_ = 0;
  std::vector<Span> spans_;
  std::vector<std::uint32_t> open_mark_;  // by stream: the mark after its last op, if nothing came since
  Quality quality_;
};

}  // namespace shardbook::device::cuda
