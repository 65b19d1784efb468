#include "engine/device/cuda/span_timer.hpp"

#include <algorithm>
#include <cmath>

#include "engine/device/cuda/delay_kernel.hpp"
#include "engine/device/cuda/empty_kernel.hpp"
#include "engine/program/recorder.hpp"

namespace shardbook::device::cuda {
namespace {

using base::Nanoseconds;
using program::host_now;

constexpr int anchor_tries = 16;
// Elapsed times come as float milliseconds: below this they are exact to 4 ns.
constexpr Nanoseconds rebase_after = 50'000'000;

}  // namespace

SpanTimer::SpanTimer(std::string context) : context_(std::move(context)) {
  anchor_stream_ = make_stream(0, context_);
  first_.event = make_timed_event(context_);
  last_.event = make_timed_event(context_);
  trial_ = make_timed_event(context_);
}

void SpanTimer::reserve(std::size_t ops) {
  while (pool_.size() < 2 * ops) pool_.push_back(make_timed_event(context_));
  spans_.reserve(ops);
}

void SpanTimer::begin_step() {
  used_ = 0;
  spans_.clear();
  std::fill(open_mark_.begin(), open_mark_.end(), no_mark);
  set_anchor(first_);
}

std::uint32_t SpanTimer::mark(cudaStream_t stream) {
  // A step that is longer than any before makes the marks that it lacks.
  if (used_ == pool_.size()) pool_.push_back(make_timed_event(context_));
  SHARDBOOK_CUDA(cudaEventRecord(pool_[used_].get(), stream), context_);
  return used_++;
}

void SpanTimer::begin_op(program::OpIndex op, std::size_t stream_index, cudaStream_t stream) {
  if (stream_index >= open_mark_.size()) open_mark_.resize(stream_index + 1, no_mark);
  const std::uint32_t first = open_mark_[stream_index] != no_mark ? open_mark_[stream_index] : mark(stream);
  spans_.push_back({op, static_cast<std::uint32_t>(stream_index), first, no_mark, 0});
}

void SpanTimer::end_op(std::size_t stream_index, cudaStream_t stream) {
  spans_.back().launched = host_now();
  spans_.back().last = mark(stream);
  open_mark_[stream_index] = spans_.back().last;
}

void SpanTimer::interrupt(std::size_t stream_index) {
  if (stream_index < open_mark_.size()) open_mark_[stream_index] = no_mark;
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
}

Nanoseconds SpanTimer::nanoseconds_between(cudaEvent_t from, cudaEvent_t to) const {
  float milliseconds = 0.0f;
  SHARDBOOK_CUDA(cudaEventElapsedTime(&milliseconds, from, to), context_);
  return std::llround(static_cast<double>(milliseconds) * 1e6);
}

std::vector<Nanoseconds> SpanTimer::read_marks() {
  // Marks are near their neighbours in time, so each is measured from a recent one.
  std::vector<Nanoseconds> at(used_ + 1);
  cudaEvent_t from = first_.event.get();
  Nanoseconds from_at = 0;
  for (std::uint32_t i = 0; i <= used_; ++i) {
    const cudaEvent_t event = i < used_ ? pool_[i].get() : last_.event.get();
    const Nanoseconds elapsed = nanoseconds_between(from, event);
    at[i] = from_at + elapsed;
    if (elapsed > rebase_after) {
      from = event;
      from_at = at[i];
    }
  }
  return at;
}

void SpanTimer::end_step(program::StepTimes& times) {
  set_anchor(last_);
  const std::vector<Nanoseconds> at = read_marks();
  quality_.clock_error = std::max(first_.error, last_.error);

  // From GPU time after the first anchor to the host's clock.
  const Nanoseconds device_length = std::max<Nanoseconds>(at.back(), 1);
  const double rate = static_cast<double>(last_.host - first_.host) / static_cast<double>(device_length);
  const auto on_host = [&](Nanoseconds device) {
    return first_.host + std::llround(static_cast<double>(device) * rate);
  };

  std::vector<Nanoseconds> stream_end(open_mark_.size(), first_.host);
  for (const Span& span : spans_) {
    program::TimeSpan& ran = times.ran[span.op];
    ran.end = std::max<Nanoseconds>(on_host(at[span.last]), stream_end[span.stream]);
    // What copies little is there sooner than a kernel: at least half of a span stays.
    const Nanoseconds first = on_host(at[span.first]);
    const Nanoseconds marked = first + std::min(quality_.lead, (ran.end - first) / 2);
    // A short op may have ended before its launch call had returned.
    ran.start = std::min(std::max({marked, span.launched, stream_end[span.stream]}), ran.end);
    stream_end[span.stream] = ran.end;
  }
}

void SpanTimer::measure_cost(cudaStream_t stream) {
  // As many ops as the GPU queues without making the host wait.
  constexpr int ops = 256, tries = 5;
  reserve(ops);
  const OwnedEvent begin = make_timed_event(context_), end = make_timed_event(context_);
  const auto run = [&](bool marked, Nanoseconds& host, Nanoseconds& device) {
    begin_step();
    SHARDBOOK_CUDA(cudaEventRecord(begin.get(), stream), context_);
    const Nanoseconds before = host_now();
    for (int i = 0; i < ops; ++i) {
      if (marked) {
        interrupt(0);
        begin_op(static_cast<program::OpIndex>(i), 0, stream);
      }
      launch_empty_kernel(stream);
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
  SHARDBOOK_CUDA(cudaGetLastError(), context_);
  quality_.host_cost = std::max<Nanoseconds>(marked_host - plain_host, 0);
  quality_.device_cost = std::max<Nanoseconds>(marked_device - plain_device, 0);
  measure_lead(stream);
}

void SpanTimer::measure_lead(cudaStream_t stream) {
  // Long enough that the host is ahead; some GPUs' clocks go in steps of a microsecond, so it takes many.
  constexpr int ops = 64;
  constexpr Nanoseconds each = 20'000;
  reserve(ops);
  const OwnedPinned memory = make_pinned(ops * sizeof(std::uint64_t), context_);
  auto* const took = static_cast<std::uint64_t*>(memory.get());
  begin_step();
  for (int i = 0; i < ops; ++i) {
    begin_op(static_cast<program::OpIndex>(i), 0, stream);
    launch_timed_kernel(stream, each, took + i);
    end_op(0, stream);
  }
  SHARDBOOK_CUDA(cudaStreamSynchronize(stream), context_);
  SHARDBOOK_CUDA(cudaGetLastError(), context_);
  // The first ones, before which the host was not ahead, do not count.
  Nanoseconds sum = 0;
  int counted = 0;
  for (int i = ops / 4; i < ops; ++i, ++counted) {
    const Span& span = spans_[static_cast<std::size_t>(i)];
    sum += nanoseconds_between(pool_[span.first].get(), pool_[span.last].get()) - static_cast<Nanoseconds>(took[i]);
  }
  quality_.lead = std::max<Nanoseconds>(sum / counted, 0);
}

}  // namespace shardbook::device::cuda
