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
// So many ops tell a host's pace, and fit into a queue that was empty.
constexpr std::size_t pace_ops = 64;
// Behind so many ops of a stream the device is asked how far it has come.
constexpr std::size_t ask_every = 16;
// By how much a span may be off, at most of nine in ten.
constexpr Nanoseconds off_at_most = 2'000;

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
  while (events_.size() < ops) events_.push_back(make_timed_event(context_));
  if (can_be_kernels_ && most_clocks_ < ops) {
    clocks_ = make_device_memory(ops * sizeof(std::uint64_t), context_);
    most_clocks_ = ops;
  }
  spans_.reserve(ops);
}

void SpanTimer::begin_step(const Untimed& untimed) {
  untimed_ = untimed;
  by_kernels_ = can_be_kernels_ && (host_is_ahead(untimed.issue) || (untimed.ops != 0 && untimed.ops == ahead_with_ops_));
  used_events_ = used_clocks_ = marks_ = 0;
  spans_.clear();
  firsts_.clear();
  for (OfStream& stream : streams_) {
    stream.behind.clear();
    stream.waited = stream.far_behind = false;
    stream.ops = 0;
  }
  for (OfEvent& event : events_recorded_) event.behind.clear();
  in_step_ = true;
  unmarked_ = false;
  set_anchor(first_);
  begin_ = host_now();
}

// Whether untimed steps take their device longer than the host would issue one with the dearer marks for.
bool SpanTimer::host_is_ahead(Nanoseconds issue) const {
  return 5 * (issue + static_cast<Nanoseconds>(untimed_.ops) * quality_.host_cost) < 4 * untimed_.period;
}

SpanTimer::OfStream& SpanTimer::of_stream(std::size_t stream_index) {
  if (stream_index >= streams_.size()) streams_.resize(stream_index + 1);
  return streams_[stream_index];
}

SpanTimer::Mark SpanTimer::mark(std::size_t stream_index, Place place) {
  if (place == Place::kernel && used_clocks_ == most_clocks_) place = Place::behind_op;
  Mark mark{0, place, static_cast<std::uint32_t>(stream_index), marks_++};
  const cudaStream_t stream = streams_[stream_index].stream;
  if (mark.by_clock()) {
    mark.at = used_clocks_++;
    if (place == Place::kernel) launch_mark_kernel(stream, clock(mark), true, context_);
    return mark;
  }
  mark.at = used_events_++;
  // A step that is longer than any before makes the events that it lacks.
  if (mark.at == events_.size()) events_.push_back(make_timed_event(context_));
  SHARDBOOK_CUDA(cudaEventRecord(events_[mark.at].get(), stream), context_);
  return mark;
}

void SpanTimer::add(Marks& to, const Mark& mark) {
  const auto same = std::find_if(to.begin(), to.end(), [&](const Mark& other) { return other.stream == mark.stream; });
  if (same == to.end()) to.push_back(mark);
  else if (same->number < mark.number) *same = mark;
}

bool SpanTimer::next_tells(std::size_t stream_index, Of of) const {
  if (!unmarked_ || !marked_by_kernel() || of != Of::early_kernels || used_clocks_ == most_clocks_) return false;
  return spans_.back().stream == stream_index;
}

void SpanTimer::ask_how_far(OfStream& on) {
  if (on.ops++ % ask_every != 0) return;
  if (on.passed.get() == nullptr) {
    on.passed = make_order_event(context_);
  } else {
    const cudaError_t code = cudaEventQuery(on.passed.get());
    on.far_behind = code == cudaErrorNotReady;
    if (!on.far_behind) SHARDBOOK_CUDA(code, context_);
  }
  SHARDBOOK_CUDA(cudaEventRecord(on.passed.get(), on.stream), context_);
}

std::uint64_t* SpanTimer::begin_op(program::OpIndex op, std::size_t stream_index, cudaStream_t stream, Of of) {
  OfStream& on = of_stream(stream_index);
  on.stream = stream;
  const bool by_it = next_tells(stream_index, of);
  if (by_it) mark_end(Place::next_kernel);
  else mark_now();
  if (by_kernels_ && of != Of::anything) ask_how_far(on);
  const auto first = static_cast<std::uint32_t>(firsts_.size());
  firsts_.insert(firsts_.end(), on.behind.begin(), on.behind.end());
  spans_.push_back({op, static_cast<std::uint32_t>(stream_index), of, on.waited, first, static_cast<std::uint32_t>(firsts_.size()), {}, 0});
  on.waited = false;
  return by_it ? clock(on.behind.front()) : nullptr;
}

void SpanTimer::end_op(BeforeEnded before, bool leave_to_record) {
  const Span& span = spans_.back();
  if (before.at != nullptr) {
    launch_mark_kernel(streams_[span.stream].stream, before.take(), true, context_);
    before.by_mark = true;
  }
  if (before.by_mark) spans_[spans_.size() - 2].last.place = firsts_[span.first].place = Place::kernel;
  spans_.back().launched = host_now();
  unmarked_ = true;
  if (can_be_kernels_ && !host_is_ahead(untimed_.issue) && spans_.size() == pace_ops && untimed_.ops >= pace_ops) {
    by_kernels_ = host_is_ahead((spans_.back().launched - begin_) * static_cast<Nanoseconds>(untimed_.ops) / static_cast<Nanoseconds>(pace_ops));
    ahead_with_ops_ = by_kernels_ ? untimed_.ops : 0;
  }
  const OfStream& on = streams_[spans_.back().stream];
  const bool left_to_next = marked_by_kernel() && on.far_behind && on.ops % ask_every != 0;
  if (!left_to_next && !leave_to_record) mark_now();
}

void SpanTimer::mark_end(Place place) {
  Span& span = spans_.back();
  span.last = mark(span.stream, place);
  streams_[span.stream].behind.assign(1, span.last);
  unmarked_ = false;
}

void SpanTimer::mark_now() {
  if (in_step_ && unmarked_) mark_end(marked_by_kernel() ? Place::kernel : Place::behind_op);
}

SpanTimer::OfEvent& SpanTimer::of_event(program::EventId event) {
  if (event >= events_recorded_.size()) events_recorded_.resize(event + 1);
  return events_recorded_[event];
}

void SpanTimer::records(program::EventId event) {
  if (of_event(event).raced || (unmarked_ && marked_by_kernel())) mark_now();
}

void SpanTimer::recorded(std::size_t stream_index, program::EventId event) {
  OfEvent& of = of_event(event);
  of.stream = static_cast<std::uint32_t>(stream_index);
  if (!in_step_) return;
  if (unmarked_) mark_end(spans_.back().stream == stream_index ? Place::behind_record : Place::behind_op);
  of.behind = of_stream(stream_index).behind;
}

void SpanTimer::waits(std::size_t stream_index, program::EventId event) {
  OfEvent& of = of_event(event);
  if (races(stream_index, of.stream)) of.raced = true;
  if (!in_step_) return;
  mark_now();
  // What was recorded before the step was over when it began, and is no wait
  if (of.behind.empty()) return;
  OfStream& on = of_stream(stream_index);
  on.waited = true;
  for (const Mark& mark : of.behind) add(on.behind, mark);
}

bool SpanTimer::races(std::size_t waits, std::size_t waited_for) const { return !races_.empty() && races_.at(waits).at(waited_for); }

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
  if (!can_be_kernels_) return;

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
  in_step_ = false;
  set_anchor(last_);
  Times at = read_marks();
  quality_.clock_error = std::max(first_.error, last_.error);
  quality_.without_marks = static_cast<std::size_t>(std::count_if(spans_.begin(), spans_.end(), [](const Span& span) { return span.last.place == Place::next_kernel; }));

  // From GPU time after the first anchor to the host's clock.
  const double rate = static_cast<double>(last_.host - first_.host) / static_cast<double>(at.end);
  for (auto* marks : {&at.events, &at.clocks}) {
    for (Nanoseconds& mark : *marks) mark = first_.host + std::llround(static_cast<double>(mark) * rate);
  }

  std::vector<Nanoseconds> stream_end(streams_.size(), first_.host);
  for (const Span& span : spans_) {
    program::TimeSpan& ran = times.ran[span.op];
    Nanoseconds marked = first_.host, behind = 0;
    for (std::uint32_t i = span.first; i < span.end; ++i) {
      const Mark& mark = firsts_[i];
      if (at.of(mark) <= marked) continue;
      marked = at.of(mark);
      const Way way = !span.waited ? Way::straight : mark.stream == span.stream ? Way::past_wait : Way::by_wait;
      behind = leads_.at(span.stream).at(mark.stream).of(mark.place, span.last.place, span.of, way);
    }
    // What stands behind this op hears of the same end.
    ran.end = at.of(span.last) = std::max({at.of(span.last), stream_end[span.stream], marked});
    // What copies little is there sooner than a kernel: at least half of a span stays.
    marked += std::min(behind, (ran.end - marked) / 2);
    // A short op may have ended before its launch call had returned.
    ran.start = std::min(std::max({marked, span.launched, stream_end[span.stream]}), ran.end);
    stream_end[span.stream] = ran.end;
  }
}

void SpanTimer::measure_cost(cudaStream_t stream, const std::vector<Timed>& streams) {
  // As many ops as the GPU queues without making the host wait, each longer than the host takes to issue it.
  constexpr int ops = 256, tries = 3;
  constexpr Nanoseconds each = 10'000;
  reserve(ops);
  const OwnedEvent begin = make_timed_event(context_), end = make_timed_event(context_);
  const OwnedPinned memory = make_pinned(sizeof(std::uint64_t), context_);
  const auto run = [&](bool marked, Nanoseconds& host, Nanoseconds& device) {
    begin_step({0, 1, 0});
    SHARDBOOK_CUDA(cudaEventRecord(begin.get(), stream), context_);
    const Nanoseconds before = host_now();
    for (int i = 0; i < ops; ++i) {
      if (marked) begin_op(static_cast<program::OpIndex>(i), 0, stream, Of::kernels);
      launch_timed_kernel(stream, each, static_cast<std::uint64_t*>(memory.get()));
      if (marked) end_op({}, false);
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

  const OwnedStream other = make_stream(0, context_);
  leads_.assign(streams.size(), std::vector<Leads>(streams.size()));
  races_.clear();
  std::vector<std::vector<bool>> races(streams.size(), std::vector<bool>(streams.size()));
  for (std::size_t waits = 0; waits < streams.size(); ++waits) {
    const Timed& on = streams[waits];
    for (const Way way : {Way::straight, Way::past_wait}) measure_leads(leads_[waits][waits], on, on, {on.stream, other.get()}, way);
    for (std::size_t waited_for = 0; waited_for < streams.size(); ++waited_for) {
      if (waits == waited_for) continue;
      const Nanoseconds range = measure_leads(leads_[waits][waited_for], on, streams[waited_for], {streams[waited_for].stream, on.stream}, Way::by_wait);
      races[waits][waited_for] = range > 2 * off_at_most;
    }
  }
  races_ = std::move(races);
  events_recorded_.clear();
  const Place own = can_be_kernels_ ? Place::kernel : Place::behind_op;
  quality_.lead = measure_lead({stream, other.get()}, own, own, Of::kernels, Way::straight).middle();
  in_step_ = false;
}

std::vector<SpanTimer::Place> SpanTimer::places_of(const Timed& stream) const {
  if (!stream.goes_last) return {Place::behind_op, Place::behind_record};
  if (!can_be_kernels_) return {Place::behind_op};
  return {Place::behind_op, Place::kernel};
}

Nanoseconds SpanTimer::measure_leads(Leads& leads, const Timed& waits, const Timed& waited_for, const TwoStreams& streams, Way way) {
  Nanoseconds range = 0;
  std::vector<Place> firsts = places_of(waited_for);
  if (way == Way::straight && waits.goes_last && can_be_kernels_) firsts.push_back(Place::next_kernel);
  for (const Place first : firsts) {
    for (const Place last : places_of(waits)) {
      for (const Of of : {Of::kernels, Of::early_kernels}) {
        if (of == Of::early_kernels ? !waits.goes_last : first == Place::next_kernel) continue;
        const NineInTen lead = measure_lead(streams, first, last, of, way);
        leads.of(first, last, of, way) = lead.middle();
        if (first == Place::behind_record) range = std::max(range, lead.most - lead.least);
      }
    }
  }
  return range;
}

SpanTimer::NineInTen SpanTimer::measure_lead(const TwoStreams& streams, Place first, Place last, Of of, Way way) {
  // Long enough that the host is ahead; some GPUs' clocks go in steps of a microsecond, so it takes many.
  constexpr int ops = 64;
  constexpr Nanoseconds each = 20'000, until_issued = 2'000'000;
  reserve(2 * ops);
  const OwnedPinned memory = make_pinned(ops * sizeof(std::uint64_t), context_);
  auto* const took = static_cast<std::uint64_t*>(memory.get());
  std::vector<OwnedEvent> order;
  const auto order_event = [&] { return order.emplace_back(make_order_event(context_)).get(); };
  begin_step({0, 1, 0});
  program::EventId events = 0;
  const bool takes_turns = way == Way::by_wait;
  const auto wait_for = [&](std::size_t on, cudaEvent_t event, program::EventId id) {
    waits(on, id);
    SHARDBOOK_CUDA(cudaStreamWaitEvent(streams[on], event, 0), context_);
  };
  const auto record = [&](std::size_t on) {
    const cudaEvent_t event = order_event();
    SHARDBOOK_CUDA(cudaEventRecord(event, streams[on]), context_);
    recorded(on, events);
    return event;
  };
  // Marked as its place says, where its stream may be recorded behind it
  const auto op = [&](int i, std::size_t on) {
    const Place place = i % 2 == 0 ? first : last;
    std::uint64_t* const before_ended = begin_op(static_cast<program::OpIndex>(i), on, streams[on], of);
    launch_timed_kernel(streams[on], each, took + i, can_be_kernels_ && of == Of::early_kernels, before_ended);
    spans_.back().launched = host_now();
    unmarked_ = true;
    if (place != Place::behind_record && place != Place::next_kernel) mark_end(place);
    ++events;
    return takes_turns || place == Place::behind_record ? record(on) : nullptr;
  };
  // For what is over when it is waited for, but was not when the wait was issued, else it would be none.
  launch_delay_kernel(streams[1], until_issued);
  const cudaEvent_t over = record(1);
  launch_delay_kernel(streams[0], until_issued + each);
  for (int i = 0; i < ops; ++i) {
    const std::size_t on = takes_turns ? static_cast<std::size_t>(i % 2) : 0;
    const cudaEvent_t ended = op(i, on);
    if (way == Way::past_wait) wait_for(on, over, 0);
    if (takes_turns) wait_for(1 - on, ended, events);
  }
  mark_now();
  for (const cudaStream_t stream : streams) SHARDBOOK_CUDA(cudaStreamSynchronize(stream), context_);
  set_anchor(last_);
  Times at = read_marks();
  // Marked before by the one kind and behind by the other; the first ones, in which the clock of the GPU may rise, do not count.
  std::vector<Nanoseconds> leads;
  for (int i = ops / 4 + 1; i < ops; i += 2) {
    const Span& span = spans_[static_cast<std::size_t>(i)];
    Nanoseconds behind = 0;
    for (std::uint32_t mark = span.first; mark < span.end; ++mark) behind = std::max(behind, at.of(firsts_[mark]));
    leads.push_back(at.of(span.last) - behind - static_cast<Nanoseconds>(took[i]));
  }
  std::sort(leads.begin(), leads.end());
  return {leads[leads.size() / 10], leads[leads.size() * 9 / 10]};
}

}  // namespace shardbook::device::cuda
