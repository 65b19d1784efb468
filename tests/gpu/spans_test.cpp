// Spans of a cuda device are as long as their kernels and begin where they do (device/cuda/span_timer.hpp).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/cuda/delay_kernel.hpp"
#include "engine/device/cuda/mark_kernel.hpp"
#include "tests/gpu/cuda_device.hpp"

namespace shardbook::gpu_test {
namespace {

using Spans = CudaDevice;   // tests whose times only an idle GPU keeps, and which so run alone

TEST_F(Spans, LieInTheStepInOrderAndAreAsLongAsTheWork) {
  auto device = make();
  Stream& first = device->create_stream("first");
  Stream& second = device->create_stream("second");
  const Event halfway = device->create_event("halfway");
  const Memory memory = device->allocate(many, DType::f32, MemoryKind::activation, "memory");
  const Memory other = device->allocate(many, DType::f32, MemoryKind::activation, "other");
  device->seal();
  program::Recorder& recorder = device->recorder();
  for (int step = 0; step < 4; ++step) {
    const bool timed = step > 0;
    device->begin_step(step, timed);
    {
      program::Scope scope(recorder, program::Phase::forward, 0, 0);
      for (int i = 0; i < 5; ++i) fill(first, memory, 1.0f);
      device->record(first, halfway);
      device->wait(second, halfway);
      fill(second, other, 2.0f);
      fill(first, memory, 3.0f);
    }
    const program::StepTimes& times = device->end_step();
    const base::Nanoseconds after = program::host_now();
    if (!timed) continue;
    ASSERT_EQ(times.ran.size(), 7u);
    const base::Nanoseconds error = device::cuda_timing(*device).clock_error;
    EXPECT_GT(error, 0);
    EXPECT_LT(error, 1'000'000);
    for (std::size_t i = 0; i < 7; ++i) {
      const program::TimeSpan& span = times.ran[i];
      EXPECT_LE(times.window.start - error, span.start) << "op " << i;
      EXPECT_LE(span.end, after + error) << "op " << i;
      // 256 MiB at 40 GB/s to 20 TB/s.
      EXPECT_GT(span.end - span.start, 10'000) << "op " << i;
      EXPECT_LT(span.end - span.start, 7'000'000) << "op " << i;
    }
    for (const std::size_t i : {1, 2, 3, 4}) EXPECT_GE(times.ran[i].start, times.ran[i - 1].end) << "op " << i;
    EXPECT_GE(times.ran[5].start, times.ran[4].end) << "what waited began before what it waited for had ended";
    EXPECT_GE(times.ran[6].start, times.ran[4].end);
  }
  const device::CudaTiming timing = device::cuda_timing(*device);
  EXPECT_LT(timing.host_cost_of_op, 100'000);
  EXPECT_LT(timing.device_cost_of_op, 100'000);
  EXPECT_GT(timing.lead_of_op, 0) << "no kernel begins with its mark";
  EXPECT_LT(timing.lead_of_op, 20'000);
  std::printf("clock error %lld ns; a mark costs the host %lld ns and its stream %lld ns; a kernel begins %lld ns behind its mark\n",
              static_cast<long long>(timing.clock_error), static_cast<long long>(timing.host_cost_of_op),
              static_cast<long long>(timing.device_cost_of_op), static_cast<long long>(timing.lead_of_op));
}

// Kernels that tell by the GPU's own clock how long they took: as this project launches its own, and as libraries do. Of its own some
// cannot say when the kernel before them ended, and have a mark in front (kernels/cuda/common.cuh).
struct TimedOp {
  std::uint64_t* took;
  base::Nanoseconds each;
  bool early;
  bool can_say = true;
};

void launch_timed_op(Stream& on, const TimedOp& args) {
  on.device().launch(on, OpDesc("timed", args.early ? OpKind::pointwise : OpKind::gemm, DType::f32), args, +[](const TimedOp&) {},
                     +[](const TimedOp& of, const device::CudaQueue& queue) {
                       if (!of.can_say) device::cuda::mark_if_asked(queue, "timed");
                       device::cuda::launch_timed_kernel(static_cast<cudaStream_t>(queue.stream), of.each, of.took, of.early, queue.before_ended == nullptr ? nullptr : queue.before_ended->take());
                     });
}

// By how much the span of each op but the first quarter differs from what its kernel said: the median, and nine in ten.
void expect_as_long_as_said(const program::StepTimes& times, const std::uint64_t* took, std::size_t ops, const std::string& of, base::Nanoseconds at_most = 2'000) {
  std::vector<base::Nanoseconds> off;
  for (std::size_t op = ops / 4; op < ops; ++op) off.push_back(std::abs(times.ran[op].end - times.ran[op].start - static_cast<base::Nanoseconds>(took[op])));
  std::sort(off.begin(), off.end());
  std::printf("spans of %s are off by %lld ns at the median, by %lld ns nine in ten\n", of.c_str(), static_cast<long long>(off[off.size() / 2]), static_cast<long long>(off[off.size() * 9 / 10]));
  EXPECT_LE(off[off.size() / 2], at_most) << of << ", ns; " << off[off.size() * 9 / 10] << " at most of nine in ten";
}

TEST_F(Spans, AreAsLongAsTheirKernelsSay) {
  auto device = make();
  Stream& stream = device->create_stream("compute");
  Stream& first = device->create_stream("first", device::Priority::high);
  constexpr std::size_t ops = 96;
  auto* const took = static_cast<std::uint64_t*>(device->pinned(ops * sizeof(std::uint64_t)));
  device->seal();
  std::int64_t step = 0;
  enum class Launched { early, early_and_silent, by_turns, as_by_a_library };
  const auto issue = [&](Stream& on, Launched how, base::Nanoseconds each, bool timed) -> const program::StepTimes& {
    device->begin_step(step++, timed);
    for (std::size_t op = 0; op < ops; ++op) launch_timed_op(on, {took + op, each, how <= Launched::early_and_silent || (how == Launched::by_turns && op % 2 == 1), how != Launched::early_and_silent});
    const program::StepTimes& times = device->end_step();
    device->synchronize();
    return times;
  };
  for (Stream* const on : {&stream, &first}) {
    for (const auto& [how, kernels] : {std::pair(Launched::early, "early kernels"), {Launched::early_and_silent, "early kernels with marks in front"}, {Launched::by_turns, "early kernels and a library's"}, {Launched::as_by_a_library, "a library's kernels"}}) {
      for (int untimed = 0; untimed < 3; ++untimed) issue(*on, how, 30'000, false);
      const program::StepTimes& times = issue(*on, how, 30'000, true);
      expect_as_long_as_said(times, took, ops, base::text("a stream that goes ", on == &stream ? "last" : "first", ", of ", kernels));
      const device::CudaTiming timing = device::cuda_timing(*device);
      EXPECT_EQ(timing.marked_by_kernels, device::cuda::marks_start_early()) << "the host is far ahead of ops of 30 us";
      // Of ops [32, 96), but for those before which the device was asked how far it has come; of the first 16 it always is there. A host
      // that stopped for a while is not ahead for the next 16
      std::size_t most = how == Launched::early ? 60 : how == Launched::by_turns ? 32 : 0;
      if (on != &stream || !device::cuda::marks_start_early()) most = 0;
      EXPECT_LE(timing.ops_without_marks, most) << kernels;
      EXPECT_GE(timing.ops_without_marks, most / 2) << kernels;
    }
  }
  // Ops that end before the next is issued
  for (int untimed = 0; untimed < 3; ++untimed) issue(stream, Launched::early, 100, false);
  issue(stream, Launched::early, 100, true);
  EXPECT_FALSE(device::cuda_timing(*device).marked_by_kernels) << "a mark that costs the host more, though the device waits for the host";
}

// Where the host comes late, the next kernel would tell the end of the one before it too late. When such an op began is known to some
// microseconds, by its launch.
TEST_F(Spans, EndWithTheirKernelsThoughTheNextIsLaunchedLate) {
  auto device = make();
  Stream& stream = device->create_stream("compute");
  constexpr std::size_t late = 64, ops = 2 * late;
  constexpr base::Nanoseconds by = 100'000;
  auto* const took = static_cast<std::uint64_t*>(device->pinned(ops * sizeof(std::uint64_t)));
  device->seal();
  for (int step = 0; step < 4; ++step) {
    device->begin_step(step, step == 3);
    for (std::size_t op = 0; op < ops; ++op) {
      launch_timed_op(stream, {took + op, op < late ? 20'000 : 500'000, true});
      if (op < late) device::stand_still(by);
    }
    const program::StepTimes& times = device->end_step();
    device->synchronize();
    if (step < 3) continue;
    const device::CudaTiming timing = device::cuda_timing(*device);
    EXPECT_EQ(timing.marked_by_kernels, device::cuda::marks_start_early()) << "of the step as a whole the host is ahead";
    EXPECT_LT(timing.ops_without_marks, ops - late);
    expect_as_long_as_said(times, took, late, "ops after each of which the host is late", by / 10);
  }
}

// Streams that wait for each other in turns, as those of collectives do, and for what was over long before.
TEST_F(Spans, BehindWaitsAreAsLongAsTheirKernelsSayAndBeginWhenWhatTheyWaitForHasEnded) {
  auto device = make();
  Stream& compute = device->create_stream("compute");
  Stream& comm = device->create_stream("comm", device::Priority::high);
  const Event computed = device->create_event("computed"), reduced = device->create_event("reduced"), over = device->create_event("over");
  constexpr std::size_t turns = 64;
  auto* const took = static_cast<std::uint64_t*>(device->pinned(2 * turns * sizeof(std::uint64_t)));
  device->seal();
  std::int64_t step = 0;
  const auto each_in_turn = [&](bool early, bool timed) -> const program::StepTimes& {
    device->begin_step(step++, timed);
    for (std::size_t turn = 0; turn < turns; ++turn) {
      launch_timed_op(compute, {took + 2 * turn, 30'000, early});
      device->record(compute, computed);
      device->wait(comm, computed);
      launch_timed_op(comm, {took + 2 * turn + 1, 20'000, false});
      device->record(comm, reduced);
      device->wait(compute, reduced);
    }
    return device->end_step();
  };
  // The other stream's op is the shorter one, so its event is over when the wait for it is reached
  const auto beside_each_other = [&](bool early, bool timed) -> const program::StepTimes& {
    device->begin_step(step++, timed);
    for (std::size_t turn = 0; turn < turns; ++turn) {
      device->wait(comm, computed);
      launch_timed_op(comm, {took + 2 * turn, 20'000, false});
      device->record(comm, over);
      launch_timed_op(compute, {took + 2 * turn + 1, 30'000, early});
      device->wait(compute, over);
      device->record(compute, computed);
    }
    return device->end_step();
  };
  // Nothing is known of the host yet
  expect_as_long_as_said(each_in_turn(true, true), took, 2 * turns, "streams in turns, marked by events");
  EXPECT_FALSE(device::cuda_timing(*device).marked_by_kernels);
  for (const bool early : {true, false}) {
    const std::string kernels = early ? "early kernels" : "a library's kernels";
    for (int untimed = 0; untimed < 3; ++untimed) each_in_turn(early, false);
    const program::StepTimes& turns_taken = each_in_turn(early, true);
    expect_as_long_as_said(turns_taken, took, 2 * turns, "streams in turns, of " + kernels);
    for (std::size_t op = 1; op < 2 * turns; ++op) EXPECT_GE(turns_taken.ran[op].start, turns_taken.ran[op - 1].end) << "op " << op << " of " << kernels << " waited for the one before";
    for (int untimed = 0; untimed < 3; ++untimed) beside_each_other(early, false);
    expect_as_long_as_said(beside_each_other(early, true), took, 2 * turns, "streams beside each other, of " + kernels);
  }
}

// Four streams, each two in turns: those two of which one is compute's, or all others. The first waits for the second.
void expect_each_two_as_long_as_said(device::Device& device, bool of_compute) {
  std::vector<Stream*> streams;
  for (const auto& [name, priority] : {std::pair("compute", device::Priority::normal), {"first", device::Priority::high}, {"second", device::Priority::high}, {"third", device::Priority::normal}}) {
    streams.push_back(&device.create_stream(name, priority));
  }
  struct Pair {
    Stream *waits, *other;
    Event done, back;
  };
  std::vector<Pair> pairs;
  for (Stream* const waits : streams) {
    for (Stream* const other : streams) {
      if (waits == other || of_compute != (waits == streams.front() || other == streams.front())) continue;
      pairs.push_back({waits, other, device.create_event("done"), device.create_event("back")});
    }
  }
  constexpr std::size_t turns = 64;
  auto* const took = static_cast<std::uint64_t*>(device.pinned(turns * sizeof(std::uint64_t)));
  auto* const of_other = static_cast<std::uint64_t*>(device.pinned(sizeof(std::uint64_t)));
  device.seal();
  std::int64_t step = 0;
  for (const auto& [waits, other, done, back] : pairs) {
    const auto in_turns = [&, waits = waits, other = other, done = done, back = back](bool timed) -> const program::StepTimes& {
      device.begin_step(step++, timed);
      for (std::size_t turn = 0; turn < turns; ++turn) {
        launch_timed_op(*other, {of_other, 20'000, false});
        device.record(*other, done);
        device.wait(*waits, done);
        launch_timed_op(*waits, {took + turn, 20'000, false});
        device.record(*waits, back);
        device.wait(*other, back);
      }
      return device.end_step();
    };
    // It tells which events are waited for at length
    in_turns(false);
    program::StepTimes times = in_turns(true);
    device.synchronize();
    for (std::size_t turn = 0; turn < turns; ++turn) times.ran[turn] = times.ran[2 * turn + 1];
    const auto name = [&](const Stream* stream) { return device.recorder().catalogue().streams[stream->id()].name; };
    expect_as_long_as_said(times, took, turns, base::text(name(waits), ", which waits for ", name(other)));
  }
}

TEST_F(Spans, BehindComputesWaitsAndThoseForItAreAsLongAsTheirKernelsSay) {
  auto device = make();
  expect_each_two_as_long_as_said(*device, true);
}

// On an H200 these wait longer for each other (experiments/cupti, "Two kinds of waits").
TEST_F(Spans, BehindWaitsOfOtherStreamsAreAsLongAsTheirKernelsSay) {
  auto device = make();
  expect_each_two_as_long_as_said(*device, false);
}

// The host waits in the midst of issuing such steps, for the device queues no more, and is ahead all the same.
TEST_F(Spans, OfAStepOfMoreOpsThanAreQueuedAreMarkedByKernelsToo) {
  auto device = make();
  Stream& stream = device->create_stream("compute");
  constexpr std::size_t ops = 3000;
  auto* const took = static_cast<std::uint64_t*>(device->pinned(ops * sizeof(std::uint64_t)));
  device->seal();
  std::size_t without_marks = 0;
  for (int step = 0; step < 5; ++step) {
    device->begin_step(step, step >= 3);
    for (std::size_t op = 0; op < ops; ++op) launch_timed_op(stream, {took + op, 20'000, true});
    const program::StepTimes& times = device->end_step();
    if (step < 3) continue;
    const device::CudaTiming timing = device::cuda_timing(*device);
    EXPECT_EQ(timing.marked_by_kernels, device::cuda::marks_start_early());
    if (step == 4 && device::cuda::marks_start_early()) {
      EXPECT_GT(timing.ops_without_marks, without_marks) << "the first ops of the second step are marked by events again";
    }
    without_marks = timing.ops_without_marks;
    device->synchronize();
    expect_as_long_as_said(times, took, ops, "a long step");
  }
}

TEST_F(Spans, OfAnOpLaunchedLateStartAtItsLaunch) {
  auto device = make();
  Stream& stream = device->create_stream("compute");
  const Memory memory = device->allocate(1024, DType::f32, MemoryKind::activation, "memory");
  device->seal();
  device->begin_step(0, true);
  fill(stream, memory, 1.0f);
  // The stream is dry for 5 ms, and the second op shares the mark after the first.
  const base::Nanoseconds until = program::host_now() + 5'000'000;
  while (program::host_now() < until) {
  }
  fill(stream, memory, 2.0f);
  const program::StepTimes& times = device->end_step();
  const base::Nanoseconds error = device::cuda_timing(*device).clock_error;
  EXPECT_GE(times.ran[1].start, until);
  EXPECT_LT(times.ran[1].end - times.ran[1].start, 2'000'000 + error);
  EXPECT_LT(times.ran[0].end, until);
}

}  // namespace
}  // namespace shardbook::gpu_test
