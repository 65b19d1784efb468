#include "engine/device/cuda/span_timer.hpp"

#include <algorithm>
#include <cmath>

#include "engine/device/cuda/delay_kernel.hpp"
#include "engine/device/cuda/mark_kernel.hpp"
#include "engine/program/recorder.hpp"

namespace shardbook::device::cuda {
namespace {

using base::Nanoseconds;
using program::host_now;

constexpr int anchor_tries = 16, ties = 9;
// Elapsed times come as float milliseconds: below this they are exact to 4 ns.
constexpr Nanoseconds rebase_after = 50'000'000;

}  // namespace

SpanTimer::SpanTimer(std::string context) : context_(std::move(context)), can_be_kernels_(marks_start_early()) {
  anchor_stream_ = make_stream(0, context_);
  first_.event = make_timed_event(context_);
  last_.event = make_timed_event(context_);
  trial_ = make_timed_event(context_);
  tie_clocks_ = make_device_memory(ties * sizeof(std::uint64_t), context_);
  for (int i = 0; i < ties; ++i) ties_.push_back(make_timed_event(context_));
}

void SpanTimer::reserve(std::size_t ops) {
  while (events_.size() < 2 * ops) events_.push_back(make_timed_event(context_));
  if (can_be_kernels_ && most_clocks_ < ops) {
    clocks_ = make_device_memory(ops * sizeof(std::uint64_t), context_);
    most_clocks_ = ops;
  }
  spans_.reserve(ops);
}

void SpanTimer::begin_step(bool host_is_ahead) {
  by_kernels_ = can_be_kernels_ && host_is_ahead;
  used_events_ = used_clocks_ = 0;
  spans_.clear();
  std::fill(open_mark_.begin(), open_mark_.end(), Mark{});
  set_anchor(first_);
}

SpanTimer::Mark SpanTimer::mark(cudaStream_t stream, bool by_kernel) {
  if (by_kernel && used_clocks_ < most_clocks_) {
    launch_mark_kernel(stream, static_cast<std::uint64_t*>(clocks_.get()) + used_clocks_, true, context_);
    return {used_clocks_++, true};
  }
  // A step that is longer than any before makes the events that it lacks.
  if (used_events_ == events_.size()) events_.push_back(make_timed_event(context_));
  SHARDBOOK_CUDA(cudaEventRecord(events_[used_events_].get(), stream), context_);
  return {used_events_++, false};
}

void SpanTimer::begin_op(program::OpIndex op, std::size_t stream_index, cudaStream_t stream, Of of) {
  if (stream_index >= open_mark_.size()) open_mark_.resize(stream_index + 1);
  const Mark open = open_mark_[stream_index];
  spans_.push_back({op, static_cast<std::uint32_t>(stream_index), of, open.exists() ? open : mark(stream, false), {}, 0});
}

void SpanTimer::end_op(std::size_t stream_index, cudaStream_t stream) {
  spans_.back().launched = host_now();
  spans_.back().last = open_mark_[stream_index] = mark(stream, by_kernels_ && spans_.back().of != Of::anything);
}

void SpanTimer::interrupt(std::size_t stream_index) {
  if (stream_index < open_mark_.size()) open_mark_[stream_index] = {};
}

void SpanTimer::set_anchor(Anchor& anchor) {
  anchor.error = -1;
  for (int i = 0; i < anchor_tries; ++i) {
    const Nanoseconds before = host_now();
    SHARDBOOK_CUDA(cudaEventRecord(trial_.get(), anchor_stream_.get()), context_);
    cudaError_t code;
    while ((code = cudaEventQuery(trial_.get())) == cudaErrorNotReady) {
    }
    const Nanoseconds after = host_now();
    SHARDBOOK_CUDA(code, context_);
    const Nanoseconds error = (after - before + 1) / 2;
    if (anchor.error < 0 || error < anchor.error) {
      anchor.error = error;
      anchor.host = before + (after - before) / 2;
      std::swap(anchor.event, trial_);
    }
  }
  if (!by_kernels_) return;

  // A mark kernel's time is held to be that of an event right behind it.
  auto* const clocks = static_cast<std::uint64_t*>(tie_clocks_.get());
  for (int i = 0; i < ties; ++i) {
    launch_mark_kernel(anchor_stream_.get(), clocks + i, false, context_);
    SHARDBOOK_CUDA(cudaEventRecord(ties_[static_cast<std::size_t>(i)].get(), anchor_stream_.get()), context_);
  }
  std::uint64_t said[ties];
  copy_clocks(tie_clocks_, said, ties);
  for (int i = 0; i < ties; ++i) said[i] -= static_cast<std::uint64_t>(nanoseconds_between(anchor.event.get(), ties_[static_cast<std::size_t>(i)].get()));
  std::nth_element(said, said + ties / 2, said + ties);
  anchor.kernel_clock = said[ties / 2];
}

void SpanTimer::copy_clocks(const OwnedDeviceMemory& from, std::uint64_t* to, std::size_t count) {
  SHARDBOOK_CUDA(cudaMemcpyAsync(to, from.get(), count * sizeof(std::uint64_t), cudaMemcpyDeviceToHost, anchor_stream_.get()), context_);
  SHARDBOOK_CUDA(cudaStreamSynchronize(anchor_stream_.get()), context_);
}

Nanoseconds SpanTimer::nanoseconds_between(cudaEvent_t from, cudaEvent_t to) const {
  float milliseconds = 0.0f;
  SHARDBOOK_CUDA(cudaEventElapsedTime(&milliseconds, from, to), context_);
  return std::llround(static_cast<double>(milliseconds) * 1e6);
}

SpanTimer::Times SpanTimer::read_marks() {
  Times times;
  // Events are near their neighbours in time, so each is measured from a recent one.
  times.events.resize(used_events_);
  cudaEvent_t from = first_.event.get();
  Nanoseconds from_at = 0;
  const auto at = [&](cudaEvent_t event) {
    const Nanoseconds elapsed = nanoseconds_between(from, event), result = from_at + elapsed;
    if (elapsed > rebase_after) {
      from = event;
      from_at = result;
    }
    return result;
  };
  for (std::uint32_t i = 0; i < used_events_; ++i) times.events[i] = at(events_[i].get());
  times.end = std::max<Nanoseconds>(at(last_.event.get()), 1);

  std::vector<std::uint64_t> said(used_clocks_);
  if (!said.empty()) copy_clocks(clocks_, said.data(), said.size());
  const double rate = static_cast<double>(times.end) / static_cast<double>(std::max<std::uint64_t>(last_.kernel_clock - first_.kernel_clock, 1));
  times.clocks.resize(used_clocks_);
  for (std::uint32_t i = 0; i < used_clocks_; ++i) {
    times.clocks[i] = std::llround(static_cast<double>(static_cast<std::int64_t>(said[i] - first_.kernel_clock)) * rate);
  }
  return times;
}

void SpanTimer::end_step(program::StepTimes& times) {
  set_anchor(last_);
  const Times at = read_marks();
  quality_.clock_error = std::max(first_.error, last_.error);

  // From GPU time after the first anchor to the host's clock.
  const double rate = static_cast<double>(last_.host - first_.host) / static_cast<double>(at.end);
  const auto on_host = [&](Nanoseconds device) {
    return first_.host + std::llround(static_cast<double>(device) * rate);
  };

  std::vector<Nanoseconds> stream_end(open_mark_.size(), first_.host);
  for (const Span& span : spans_) {
    program::TimeSpan& ran = times.ran[span.op];
    ran.end = std::max<Nanoseconds>(on_host(at.of(span.last)), stream_end[span.stream]);
    // What copies little is there sooner than a kernel: at least half of a span stays.
    const Nanoseconds first = on_host(at.of(span.first));
    const Nanoseconds marked = first + std::min(lead(span.first.by_kernel, span.of), (ran.end - first) / 2);
    // A short op may have ended before its launch call had returned.
    ran.start = std::min(std::max({marked, span.launched, stream_end[span.stream]}), ran.end);
    stream_end[span.stream] = ran.end;
  }
}

void SpanTimer::measure_cost(cudaStream_t stream) {
  // As many ops as the GPU queues without making the host wait, each longer than the host takes to issue it.
  constexpr int ops = 256, tries = 3;
  constexpr Nanoseconds each = 10'000;
  reserve(ops);
  const OwnedEvent begin = make_timed_event(context_), end = make_timed_event(context_);
  const OwnedPinned memory = make_pinned(sizeof(std::uint64_t), context_);
  const auto run = [&](bool marked, Nanoseconds& host, Nanoseconds& device) {
    begin_step(true);
    SHARDBOOK_CUDA(cudaEventRecord(begin.get(), stream), context_);
    const Nanoseconds before = host_now();
    for (int i = 0; i < ops; ++i) {
      if (marked) begin_op(static_cast<program::OpIndex>(i), 0, stream, Of::kernels);
      launch_timed_kernel(stream, each, static_cast<std::uint64_t*>(memory.get()));
      if (marked) end_op(0, stream);
    }
    host = std::min(host, (host_now() - before) / ops);
    SHARDBOOK_CUDA(cudaEventRecord(end.get(), stream), context_);
    SHARDBOOK_CUDA(cudaStreamSynchronize(stream), context_);
    device = std::min(device, nanoseconds_between(begin.get(), end.get()) / ops);
  };
  Nanoseconds plain_host = INT64_MAX, plain_device = INT64_MAX, marked_host = INT64_MAX, marked_device = INT64_MAX;
  for (int i = 0; i < tries; ++i) {
    run(false, plain_host, plain_device);
    run(true, marked_host, marked_device);
  }
  quality_.host_cost = std::max<Nanoseconds>(marked_host - plain_host, 0);
  quality_.device_cost = std::max<Nanoseconds>(marked_device - plain_device, 0);
  for (const bool by_kernel : {false, true}) {
    for (const Of of : {Of::early_kernels, Of::kernels}) {
      if (can_be_kernels_ || !by_kernel) quality_.lead = lead(by_kernel, of) = measure_lead(stream, by_kernel, of);
    }
  }
}

Nanoseconds SpanTimer::measure_lead(cudaStream_t stream, bool by_kernel, Of of) {
  // Long enough that the host is ahead; some GPUs' clocks go in steps of a microsecond, so it takes many.
  constexpr int ops = 64;
  constexpr Nanoseconds each = 20'000;
  reserve(ops);
  const OwnedPinned memory = make_pinned(ops * sizeof(std::uint64_t), context_);
  auto* const took = static_cast<std::uint64_t*>(memory.get());
  begin_step(true);
  for (int i = 0; i < ops; ++i) {
    begin_op(static_cast<program::OpIndex>(i), 0, stream, of);
    launch_timed_kernel(stream, each, took + i, can_be_kernels_ && of == Of::early_kernels);
    spans_.back().last = open_mark_[0] = mark(stream, by_kernel);
  }
  SHARDBOOK_CUDA(cudaStreamSynchronize(stream), context_);
  set_anchor(last_);
  const Times at = read_marks();
  // The first ones, before which the host was not ahead, do not count.
  Nanoseconds sum = 0;
  int counted = 0;
  for (int i = ops / 4; i < ops; ++i, ++counted) {
    const Span& span = spans_[static_cast<std::size_t>(i)];
    sum += at.of(span.last) - at.of(span.first) - static_cast<Nanoseconds>(took[i]);
  }
  return std::max<Nanoseconds>(sum / counted, 0);
}

}  // namespace shardbook::device::cuda
