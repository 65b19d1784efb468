// The cuda device keeps the contract of every device: order, memory, and times that mean something.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/device/cuda/delay_kernel.hpp"
#include "engine/device/cuda/mark_kernel.hpp"
#include "tests/gpu/gpu_test.hpp"

namespace shardbook::gpu_test {
namespace {

using device::Event;
using device::Memory;
using device::Stream;
using program::MemoryKind;
using program::OpDesc;
using program::OpKind;

constexpr std::int64_t many = std::int64_t{64} << 20;  // elements: filling them takes tens of microseconds

class CudaDevice : public OneGpu {
 protected:
  std::unique_ptr<device::Device> make() {
    auto made = device::make_cuda_device(0, {DType::bf16, DType::f32}, 0);
    if (!made) throw base::Failure(made.error());
    return std::move(made).value();
  }
  static void fill(Stream& stream, const Memory& memory, float value) {
    OpDesc desc("fill", OpKind::fill, DType::f32);
    stream.device().launch(stream, desc.writes(memory.use),
                           kernels::FillArgs{memory.data, memory.storage_bytes / 4, value, DType::f32}, &kernels::host::fill,
                           &kernels::cuda::fill);
  }
  static float read(device::Device& device, Stream& stream, const Memory& memory) {
    float value = 0;
    device.download(stream, "read", {memory.data, memory.use, 4}, &value);
    device.synchronize();
    return value;
  }
};

TEST_F(CudaDevice, SaysWhichGpuItIs) {
  EXPECT_FALSE(device::cuda_device_name(0).empty());
  EXPECT_GT(device::cuda_device_memory(0), base::Bytes{1} << 30);
  EXPECT_GE(device::cuda_driver_version(), device::cuda_runtime_version() / 1000 * 1000);
  EXPECT_EQ(device::cuda_problem(), "");
}

TEST_F(CudaDevice, RefusesAGpuThatIsNotThereInOneSentence) {
  auto made = device::make_cuda_device(99, {DType::bf16, DType::f32}, 3);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().find("rank 3 asks for GPU 99"), std::string::npos) << made.error();
}

// Ops 0 and 2 write, 1 and 3 look at what they wrote.
TEST_F(CudaDevice, FindsTheFirstOpThatWritesWhatIsNotFinite) {
  auto device = make();
  Stream& stream = device->create_stream("compute");
  Stream& other = device->create_stream("other");
  const Memory big = device->allocate(many, DType::f32, MemoryKind::activation, "big");
  const Memory half = device->allocate(5, DType::bf16, MemoryKind::activation, "half");
  auto* numbers = static_cast<std::uint16_t*>(device->pinned(5 * sizeof(std::uint16_t)));
  device->check_finite();
  device->seal();
  const auto step = [&](std::int64_t number, float value, std::uint16_t last) {
    std::fill_n(numbers, 4, std::uint16_t{0x3f80});
    numbers[4] = last;
    device->begin_step(number, false);
    fill(stream, big, value);
    device->upload(other, "upload", numbers, half);
    device->end_step();
    device->synchronize();
    return device->first_not_finite(number);
  };
  EXPECT_FALSE(step(0, std::numeric_limits<float>::max(), 0x7f7f));
  const auto in_bf16 = step(1, 1, 0x7f80);
  ASSERT_TRUE(in_bf16);
  EXPECT_EQ(in_bf16->op, 2u);
  EXPECT_TRUE(in_bf16->written);
  EXPECT_FALSE(step(2, std::numeric_limits<float>::infinity(), 0x7f80)) << "an earlier step's is the first";
}

TEST_F(CudaDevice, FindsItInFp32BeforeWhatCameOfIt) {
  auto device = make();
  Stream& stream = device->create_stream("compute");
  const Memory big = device->allocate(many, DType::f32, MemoryKind::activation, "big");
  device->check_finite();
  device->seal();
  device->begin_step(7, true);
  fill(stream, big, 1);
  fill(stream, {static_cast<float*>(big.data) + many - 1, {big.use.buffer, (many - 1) * 4, many * 4, 0}, 4}, std::nanf(""));
  fill(stream, big, std::nanf(""));
  device->end_step();
  const auto found = device->first_not_finite(7);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->op, 2u);
}

TEST_F(CudaDevice, MemoryIsZeroedAlignedAndApart) {
  auto device = make();
  Stream& stream = device->create_stream("compute");
  const Memory odd = device->allocate(3, DType::bf16, MemoryKind::activation, "odd");
  const Memory big = device->allocate(many, DType::f32, MemoryKind::activation, "big");
  const Memory last = device->allocate(1, DType::f32, MemoryKind::activation, "last");
  for (const Memory& memory : {odd, big, last}) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data) % 256, 0u);
  device->seal();
  EXPECT_EQ(read(*device, stream, big), 0.0f);
  fill(stream, big, 7.0f);
  EXPECT_EQ(read(*device, stream, last), 0.0f);
  std::vector<float> all(static_cast<std::size_t>(many));
  device->download(stream, "all", big, all.data());
  device->synchronize();
  EXPECT_EQ(all.front(), 7.0f);
  EXPECT_EQ(all.back(), 7.0f);
}

// Large and small ones in turn: each lies in one piece, as whoever shares pieces needs it, and none on another.
TEST_F(CudaDevice, BuffersThatAreKeptWholeLieInOnePieceEachAndApart) {
  auto device = make();
  device::cuda_keep_buffers_whole(*device);
  Stream& stream = device->create_stream("compute");
  std::vector<Memory> all;
  for (const std::int64_t mib : {1, 40, 3, 200, 31, 31, 31, 1, 64, 7}) {
    all.push_back(device->allocate(mib << 18, DType::f32, MemoryKind::activation, "test"));
    const Memory& memory = all.back();
    const device::CudaPiece piece = device::cuda_piece_of(memory.data);
    const char* begin = static_cast<const char*>(memory.data);
    EXPECT_LE(static_cast<const char*>(piece.begin), begin);
    EXPECT_LE(begin + memory.storage_bytes, static_cast<const char*>(piece.begin) + piece.bytes) << mib << " MiB";
    EXPECT_EQ(device::cuda_piece_of(begin + memory.storage_bytes - 1).begin, piece.begin);
  }
  device->seal();
  EXPECT_EQ(read(*device, stream, all.back()), 0.0f);
  for (std::size_t i = 0; i < all.size(); ++i) fill(stream, all[i], static_cast<float>(i + 1));
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(read(*device, stream, all[i]), static_cast<float>(i + 1));
    const Memory last{static_cast<char*>(all[i].data) + all[i].storage_bytes - 4, all[i].use, 4};
    EXPECT_EQ(read(*device, stream, last), static_cast<float>(i + 1));
  }
}

// What a matmul beside a collective leaves comes to its launcher; the others are given all.
TEST_F(CudaDevice, TellsAMatmulWhatItLeavesToACollectiveThatNobodyHasAwaited) {
  auto device = make();
  Stream& compute = device->create_stream("compute");
  Stream& tp = device->create_stream("tp", device::Priority::high);
  const Event made = device->create_event("made"), summed = device->create_event("summed");
  const program::GroupId group = device->recorder().add_group({"tp", {0, 1}});
  device->leave_room({24, [](const OpDesc&) { return 100.0; }});
  device->seal();
  int left = -1;
  struct Args {
    int* left;
  };
  const auto launch = [&](Stream& stream, const OpDesc& desc) {
    device->launch(stream, desc, Args{&left}, +[](const Args&) {}, +[](const Args& args, const device::CudaQueue& queue) { *args.left = queue.left_to_others; });
    return left;
  };
  const OpDesc matmul = OpDesc("matmul", OpKind::gemm, DType::bf16).size({64, 64, 64, 1});
  const OpDesc sum = OpDesc("all_reduce", OpKind::all_reduce, DType::bf16).collective_of({group, 0, 1 << 20, -1});
  EXPECT_EQ(launch(compute, matmul), 0) << "outside of a step nothing is beside";
  for (int step = 0; step < 2; ++step) {
    device->begin_step(step, false);
    EXPECT_EQ(launch(compute, matmul), 0);
    device->record(compute, made);
    device->wait(tp, made);
    EXPECT_EQ(launch(tp, sum), 0);
    device->record(tp, summed);
    EXPECT_EQ(launch(compute, matmul), 24);
    device->wait(compute, summed);
    EXPECT_EQ(launch(compute, matmul), 0);
    device->end_step();
  }
  device->synchronize();
}

TEST_F(CudaDevice, MemoryThatDoesNotSufficeIsNamedWithWhatIsLeft) {
  auto device = make();
  try {
    device->allocate(std::int64_t{1} << 42, DType::f32, MemoryKind::parameter, "far too much");
    FAIL() << "16 TiB were allocated";
  } catch (const base::Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("far too much"), std::string::npos) << failure.what();
    EXPECT_NE(std::string(failure.what()).find("MiB free"), std::string::npos) << failure.what();
  }
  // The device is as good as before.
  EXPECT_NE(device->allocate(1024, DType::f32, MemoryKind::parameter, "enough").data, nullptr);
}

TEST_F(CudaDevice, NothingIsAllocatedAfterSeal) {
  auto device = make();
  device->seal();
  EXPECT_THROW(device->allocate(1, DType::f32, MemoryKind::activation, "late"), base::Failure);
  EXPECT_THROW(device->create_stream("late"), base::Failure);
  EXPECT_THROW(device->create_event("late"), base::Failure);
  EXPECT_THROW(device->pinned(1), base::Failure);
}

TEST_F(CudaDevice, AWaitingStreamSeesWhatTheRecordedOneWrote) {
  auto device = make();
  Stream& first = device->create_stream("first");
  Stream& second = device->create_stream("second", device::Priority::high);
  const Event written = device->create_event("written");
  const Memory memory = device->allocate(many, DType::f32, MemoryKind::activation, "memory");
  const Memory copy = device->allocate(many, DType::f32, MemoryKind::activation, "copy");
  device->seal();
  for (int round = 1; round <= 20; ++round) {
    for (int i = 0; i < 4; ++i) fill(first, memory, -1.0f);
    fill(first, memory, static_cast<float>(round));
    device->record(first, written);
    device->wait(second, written);
    // Copies the last number: it is right only if the wait held.
    device->launch(second, OpDesc("cast", OpKind::copy, DType::f32),
                   kernels::CastArgs{static_cast<float*>(memory.data) + many - 1024, copy.data, 1024, DType::f32},
                   &kernels::host::cast, &kernels::cuda::cast);
    ASSERT_EQ(read(*device, second, copy), static_cast<float>(round));
  }
}

// Kernels are let in before the one ahead of them in their stream has ended; behind a wait they wait for both.
TEST_F(CudaDevice, AnEarlyKernelBehindAWaitSeesWhatTheOtherStreamWrote) {
  auto device = make();
  Stream& first = device->create_stream("first");
  Stream& second = device->create_stream("second");
  const Event written = device->create_event("written"), copied = device->create_event("copied");
  const Memory memory = device->allocate(many, DType::f32, MemoryKind::activation, "memory");
  const Memory copy = device->allocate(1024, DType::f32, MemoryKind::activation, "copy");
  device->seal();
  for (const bool captured : {false, true}) {
    const auto issue = [&](float value) {
      fill(first, memory, -1.0f);
      fill(first, memory, value);
      device->record(first, written);
      fill(second, copy, -2.0f);
      device->wait(second, written);
      device->launch(second, OpDesc("cast", OpKind::pointwise, DType::f32),
                     kernels::CastArgs{static_cast<float*>(memory.data) + many - 1024, copy.data, 1024, DType::f32},
                     &kernels::host::cast, &kernels::cuda::cast);
      device->record(second, copied);
      device->wait(first, copied);
    };
    for (int round = 1; round <= 20; ++round) {
      const float value = static_cast<float>(captured ? 100 + round : round);
      if (captured) {
        device->begin_capture(first);
        issue(value);
        device->replay(device->end_capture());
      } else {
        issue(value);
      }
      ASSERT_EQ(read(*device, first, copy), value) << (captured ? "as a graph" : "one by one");
    }
  }
}

TEST_F(CudaDevice, AHostWaitAsksTheWatch) {
  auto device = make();
  Stream& stream = device->create_stream("compute");
  const Event done = device->create_event("done");
  const Memory memory = device->allocate(many, DType::f32, MemoryKind::activation, "memory");
  device->seal();
  int asked = 0;
  device->set_watch([&] {
    if (++asked == 1) throw base::Failure("a peer is gone");
  });
  // A thousand fills of 256 MiB take more than the 50 ms after which the watch is asked.
  for (int i = 0; i < 1000; ++i) fill(stream, memory, 1.0f);
  device->record(stream, done);
  EXPECT_THROW(device->host_wait(done), base::Failure);
  device->set_watch({});
  device->synchronize();
}

struct TimedStep {
  std::vector<program::TimeSpan> ran;
  program::TimeSpan window;
  base::Nanoseconds after;
};

TEST_F(CudaDevice, SpansLieInTheStepInOrderAndAreAsLongAsTheWork) {
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

// Kernels that tell by the GPU's own clock how long they took: as this project launches its own, and as libraries do.
struct TimedOp {
  std::uint64_t* took;
  base::Nanoseconds each;
  bool early;
};

void launch_timed_op(Stream& on, const TimedOp& args) {
  on.device().launch(on, OpDesc("timed", args.early ? OpKind::pointwise : OpKind::gemm, DType::f32), args, +[](const TimedOp&) {},
                     +[](const TimedOp& of, const device::CudaQueue& queue) {
                       device::cuda::launch_timed_kernel(static_cast<cudaStream_t>(queue.stream), of.each, of.took, of.early);
                     });
}

// By how much the span of each op but the first quarter differs from what its kernel said: the median, and nine in ten.
void expect_as_long_as_said(const program::StepTimes& times, const std::uint64_t* took, std::size_t ops, const std::string& of) {
  std::vector<base::Nanoseconds> off;
  for (std::size_t op = ops / 4; op < ops; ++op) off.push_back(std::abs(times.ran[op].end - times.ran[op].start - static_cast<base::Nanoseconds>(took[op])));
  std::sort(off.begin(), off.end());
  std::printf("spans of %s are off by %lld ns at the median, by %lld ns nine in ten\n", of.c_str(), static_cast<long long>(off[off.size() / 2]), static_cast<long long>(off[off.size() * 9 / 10]));
  EXPECT_LE(off[off.size() / 2], 2'000) << of << ", ns; " << off[off.size() * 9 / 10] << " at most of nine in ten";
}

TEST_F(CudaDevice, SpansAreAsLongAsTheirKernelsSay) {
  auto device = make();
  Stream& stream = device->create_stream("compute");
  Stream& first = device->create_stream("first", device::Priority::high);
  constexpr std::size_t ops = 96;
  auto* const took = static_cast<std::uint64_t*>(device->pinned(ops * sizeof(std::uint64_t)));
  device->seal();
  std::int64_t step = 0;
  const auto issue = [&](Stream& on, bool early, base::Nanoseconds each, bool timed) -> const program::StepTimes& {
    device->begin_step(step++, timed);
    for (std::size_t op = 0; op < ops; ++op) launch_timed_op(on, {took + op, each, early});
    const program::StepTimes& times = device->end_step();
    device->synchronize();
    return times;
  };
  for (Stream* const on : {&stream, &first}) {
    for (const bool early : {true, false}) {
      for (int untimed = 0; untimed < 3; ++untimed) issue(*on, early, 30'000, false);
      const program::StepTimes& times = issue(*on, early, 30'000, true);
      expect_as_long_as_said(times, took, ops, base::text("a stream that goes ", on == &stream ? "last" : "first", ", of ", early ? "early kernels" : "a library's kernels"));
      EXPECT_EQ(device::cuda_timing(*device).marked_by_kernels, device::cuda::marks_start_early()) << "the host is far ahead of ops of 30 us";
    }
  }
  // Ops that end before the next is issued
  for (int untimed = 0; untimed < 3; ++untimed) issue(stream, true, 100, false);
  issue(stream, true, 100, true);
  EXPECT_FALSE(device::cuda_timing(*device).marked_by_kernels) << "a mark that costs the host more, though the device waits for the host";
}

// Streams that wait for each other in turns, as those of collectives do, and for what was over long before.
TEST_F(CudaDevice, SpansBehindWaitsAreAsLongAsTheirKernelsSayAndBeginWhenWhatTheyWaitForHasEnded) {
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

// The host waits in the midst of issuing such steps, for the device queues no more, and is ahead all the same.
TEST_F(CudaDevice, AStepOfMoreOpsThanAreQueuedIsMarkedByKernelsToo) {
  auto device = make();
  Stream& stream = device->create_stream("compute");
  constexpr std::size_t ops = 3000;
  auto* const took = static_cast<std::uint64_t*>(device->pinned(ops * sizeof(std::uint64_t)));
  device->seal();
  for (int step = 0; step < 4; ++step) {
    device->begin_step(step, step == 3);
    for (std::size_t op = 0; op < ops; ++op) launch_timed_op(stream, {took + op, 20'000, true});
    const program::StepTimes& times = device->end_step();
    if (step < 3) continue;
    EXPECT_EQ(device::cuda_timing(*device).marked_by_kernels, device::cuda::marks_start_early());
    device->synchronize();
    expect_as_long_as_said(times, took, ops, "a long step");
  }
}

TEST_F(CudaDevice, AnOpLaunchedLateStartsAtItsLaunch) {
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

TEST_F(CudaDevice, TimingDoesNotChangeTheProgram) {
  auto device = make();
  Stream& stream = device->create_stream("compute");
  const Memory memory = device->allocate(1024, DType::f32, MemoryKind::activation, "memory");
  device->seal();
  for (int step = 0; step < 2; ++step) {
    device->begin_step(step, step == 1);
    fill(stream, memory, 1.0f);
    device->end_step();
  }
  EXPECT_EQ(device->recorder().programs().size(), 1u);
}

}  // namespace
}  // namespace shardbook::gpu_test
