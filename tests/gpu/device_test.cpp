// The cuda device keeps the contract of every device: order and memory. Its times: spans_test.cpp.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tests/gpu/cuda_device.hpp"

namespace shardbook::gpu_test {
namespace {

TEST_F(CudaDevice, SaysWhichGpuItIs) {
  EXPECT_FALSE(device::cuda_device_name(0).empty());
  EXPECT_GT(device::cuda_device_memory(0), base::Bytes{1} << 30);
  EXPECT_GE(device::cuda_driver_version(), device::cuda_runtime_version() / 1000 * 1000);
  EXPECT_EQ(device::cuda_problem(), "");
}

// No GPU that runs this is slower than a tenth of a GHz or faster than ten, awake or not.
TEST_F(CudaDevice, TellsAtWhichClockItGoes) {
  auto device = make();
  device->seal();
  for (int look = 0; look < 2; ++look) {
    const double clock = device::cuda_clock(*device);
    EXPECT_GT(clock, 0.1);
    EXPECT_LT(clock, 10);
  }
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
  fill(stream, {static_cast<float*>(big.data) + many - 1, {big.use.buffer, (many - 1) * 4, many * 4}, 4}, std::nanf(""));
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
