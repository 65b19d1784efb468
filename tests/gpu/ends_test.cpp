// Events behind calls tell which have ended, also of those that a graph holds (comm/nccl/ends.hpp). Without NCCL, so one GPU does.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "engine/comm/flight.hpp"
#include "engine/comm/nccl/ends.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/device/cuda/delay_kernel.hpp"
#include "engine/device/cuda/owners.hpp"
#include "engine/program/recorder.hpp"

namespace shardbook::comm {
namespace {

using base::DType;

TEST(Marks, CostIsPrinted) {
  if (device::cuda_device_count() < 1) GTEST_SKIP() << "needs a GPU";
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  const device::cuda::OwnedStream stream = device::cuda::make_stream(0, "test");
  std::vector<device::cuda::OwnedEvent> events;
  for (std::size_t i = 0; i < FlightLog::kept; ++i) events.push_back(device::cuda::make_order_event("test"));
  void* memory = nullptr;
  constexpr std::size_t bytes = 1 << 22;
  ASSERT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
  constexpr int ops = 400, turns = 20;   // fewer than a stream takes before the host waits
  std::vector<double> host_us[2], stream_us[2];
  for (int turn = 0; turn < 2 * turns; ++turn) {
    const bool marks = turn % 2 == 1;
    ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    const base::Nanoseconds begin = program::host_now();
    for (int i = 0; i < ops; ++i) {
      ASSERT_EQ(cudaMemsetAsync(memory, i, bytes, stream.get()), cudaSuccess);
      if (marks) {
        ASSERT_EQ(cudaEventRecord(events[static_cast<std::size_t>(i) % events.size()].get(), stream.get()), cudaSuccess);
      }
    }
    const base::Nanoseconds issued = program::host_now();
    ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    if (turn < 4) continue;
    host_us[marks].push_back(1e-3 * static_cast<double>(issued - begin) / ops);
    stream_us[marks].push_back(1e-3 * static_cast<double>(program::host_now() - begin) / ops);
  }
  cudaFree(memory);
  for (auto* values : {host_us, stream_us}) {
    for (int marks = 0; marks < 2; ++marks) std::sort(values[marks].begin(), values[marks].end());
    const auto median = [&](int marks) { return values[marks][values[marks].size() / 2]; };
    std::printf("%s: %.3f us an op of 4 MiB, %.3f with an event behind it: %+.3f us\n", values == host_us ? "host" : "until done", median(0), median(1), median(1) - median(0));
    EXPECT_LT(median(1) - median(0), 20.0);
  }
}

// A captured call waits from the launch on until the graph has come to its event, with each launch anew.
TEST(Marks, BehindCapturedCallsTellOfEachLaunch) {
  if (device::cuda_device_count() < 1) GTEST_SKIP() << "needs a GPU";
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  auto made = device::make_cuda_device(0, {DType::bf16, DType::f32}, 0);
  ASSERT_TRUE(made.ok()) << made.error();
  device::Stream& lane = made.value()->create_stream("test");
  const device::cuda::OwnedStream stream = device::cuda::make_stream(0, "test");
  Flight flight;
  FlightLog& log = flight.add({"tp", {0, 1}, 0, 0});
  Ends ends(log, "test");
  const auto describe = [&](std::uint64_t ticket) {
    log.called(ticket, lane, program::OpDesc("all_reduce", program::OpKind::all_reduce, DType::f32).collective_of({0, 0, 64, -1}), 0, {});
  };
  const auto call = [&](std::uint64_t ticket) {
    describe(ticket);
    ends.mark(ticket, stream.get(), "test");
    log.issued(ticket);
  };
  call(0);
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_GT(log.waits_since(), 0) << "nobody has looked yet";
  ends.look();
  EXPECT_EQ(log.waits_since(), 0);

  cudaGraph_t graph = nullptr;
  log.capture_begins();
  ASSERT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  for (std::uint64_t ticket : {1, 2}) {
    describe(ticket);
    if (ticket == 2) device::cuda::launch_delay_kernel(stream.get(), 300'000'000);
    ends.mark_captured(stream.get(), "test");
  }
  std::thread([&] { ends.look(); }).join();
  ASSERT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess) << "who looked has spoiled the capture";
  const FlightLog::Captured captured = log.capture_ends();
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  for (std::uint64_t first : {1, 3}) {
    if (first > 1) log.called_again(first, captured, 7);
    ends.launches(first, 0, 2);
    ends.look();
    EXPECT_EQ(log.under_way().last, first) << "nothing of it was issued, and something is looked at";
    ASSERT_EQ(cudaGraphLaunch(exec, stream.get()), cudaSuccess);
    log.issued(first + 1);
    for (int tries = 0; tries < 100 && log.under_way().first == first; ++tries, std::this_thread::sleep_for(std::chrono::milliseconds(1))) ends.look();
    EXPECT_EQ(log.under_way().first, first + 1) << "the first call has ended, and the second is under way";
    EXPECT_GT(log.waits_since(), 0);
    ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    ends.look();
    EXPECT_EQ(log.waits_since(), 0);
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  call(5);
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  ends.look();
  EXPECT_EQ(log.waits_since(), 0);
}

}  // namespace
}  // namespace shardbook::comm
