// The host device keeps CUDA's promises about streams and events, and no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "engine/device/host/host_device.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "tests/device/plain.hpp"

namespace shardbook::device {
namespace {

struct AppendArgs {
  std::vector<int>* to;
  int value;
};
void append(const AppendArgs& args) { args.to->push_back(args.value); }

void issue(Lane lane, std::vector<int>& to, int value) {
  const program::OpDesc desc("append", program::OpKind::pointwise, base::DType::f32);
  lane.device().launch(lane, desc, AppendArgs{&to, value}, &append, static_cast<void (*)(const AppendArgs&, const CudaQueue&)>(nullptr));
}

// Two streams, an event, and in which order what is issued to them runs under a seed.
struct TwoStreams {
  explicit TwoStreams(std::uint64_t seed) : device(plain, 0, seed) {}
  HostDevice device;
  Stream &first = device.create_stream("first"), &second = device.create_stream("second");
  const Event event = device.create_event("handed over");
  std::vector<int> order;
};

TEST(HostDevice, RunsNothingUntilTheHostMustWait) {
  HostDevice device(plain, 0, 0);
  Stream& stream = device.create_stream("compute");
  std::vector<int> order;
  issue(stream, order, 1);
  EXPECT_TRUE(order.empty());
  device.synchronize();
  EXPECT_EQ(order, (std::vector<int>{1}));
}

TEST(HostDevice, KeepsTheOrderOfAStreamUnderEverySeed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    HostDevice device(plain, 0, seed);
    Stream& stream = device.create_stream("compute");
    std::vector<int> order, expected;
    for (int value = 0; value < 2000; ++value) {  // more than the queue's first size
      issue(stream, order, value);
      expected.push_back(value);
    }
    device.synchronize();
    EXPECT_EQ(order, expected);
  }
}

TEST(HostDevice, NeitherIssuesNorRecordsAWaitThatALabLeavesOut) {
  MetaDevice device(0);
  Stream& first = device.create_stream("first");
  Stream& second = device.create_stream("second");
  const Event kept = device.create_event("a.kept"), missing = device.create_event("a.missing");
  device.leave_out_waits(".missing");
  device.begin_step(0, false);
  device.record(first, kept);
  device.record(first, missing);
  device.wait(second, kept);
  device.wait(second, missing);
  device.end_step();
  int waits = 0;
  for (const program::Command& command : device.recorder().programs()[0]->commands) {
    if (command.kind != program::CommandKind::wait_event) continue;
    ++waits;
    EXPECT_EQ(command.event, kept.id);
  }
  EXPECT_EQ(waits, 1);
}

TEST(HostDevice, IsSlowerByWhatALabAsksFor) {
  HostDevice device(plain, 0, 0);
  Stream& stream = device.create_stream("compute");
  constexpr base::Nanoseconds ms = 1'000'000;
  device.make_slower({2 * ms, 3 * ms});
  std::vector<int> order;
  device.begin_step(0, true);
  const base::Nanoseconds begin = program::host_now();
  issue(stream, order, 1);
  EXPECT_GE(program::host_now() - begin, 2 * ms);
  const program::StepTimes& times = device.end_step();
  EXPECT_GE(times.ran[0].end - times.ran[0].start, 3 * ms);
}

TEST(HostDevice, HoldsAStreamUntilTheEventItAwaits) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    TwoStreams streams(seed);
    auto& [device, first, second, event, order] = streams;
    issue(first, order, 1);
    device.record(first, event);
    device.wait(second, event);
    issue(second, order, 2);
    device.synchronize();
    EXPECT_EQ(order, (std::vector<int>{1, 2}));
  }
}

TEST(HostDevice, ShowsAMissingWaitUnderSomeSeed) {
  std::set<std::vector<int>> seen;
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    TwoStreams streams(seed);
    issue(streams.first, streams.order, 1);
    issue(streams.second, streams.order, 2);
    streams.device.synchronize();
    seen.insert(streams.order);
  }
  EXPECT_EQ(seen.size(), 2u) << "both orders are legal, and both must be drawn";
}

// 1 awaits an event that nobody had recorded, 4 its first record and not the second: so under some seed 1 runs before 2, and 4
// before 3, and 2 always before 4.
TEST(HostDevice, BindsAWaitToTheLastRecordIssuedBeforeIt) {
  bool one_before_two = false, four_before_three = false;
  for (std::uint64_t seed = 1; seed < 60; ++seed) {
    TwoStreams streams(seed);
    auto& [device, first, second, event, order] = streams;
    device.wait(second, event);
    issue(second, order, 1);
    issue(first, order, 2);
    device.record(first, event);
    device.wait(second, event);
    issue(first, order, 3);
    device.record(first, event);
    issue(second, order, 4);
    device.synchronize();
    ASSERT_EQ(order.size(), 4u);
    const auto place = [&](int what) { return std::find(order.begin(), order.end(), what) - order.begin(); };
    EXPECT_LT(place(2), place(4));
    one_before_two = one_before_two || place(1) < place(2);
    four_before_three = four_before_three || place(4) < place(3);
  }
  EXPECT_TRUE(one_before_two) << "a wait for what was never recorded holds nobody";
  EXPECT_TRUE(four_before_three) << "a wait is for the record before it";
}

// From an address as a GPU's, zeros, and the bytes before and behind are nobody's: the address sanitizer says so.
TEST(HostDevice, GivesZerosThatEndWhereTheyEnd) {
  HostDevice device(plain, 0, 0);
  for (const std::int64_t elements : {1, 3, 64, 1000, 100'000}) {
    const Memory memory = device.allocate(elements, base::DType::f32, program::MemoryKind::workspace, "some");
    ASSERT_EQ(memory.storage_bytes, 4 * elements);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data) % 256, 0u);
    auto* bytes = static_cast<unsigned char*>(memory.data);
    EXPECT_EQ(std::count(bytes, bytes + memory.storage_bytes, 0), memory.storage_bytes);
#ifdef __SANITIZE_ADDRESS__
    bytes[memory.storage_bytes - 1] = 1;
    EXPECT_DEATH(bytes[memory.storage_bytes] = 1, "AddressSanitizer") << elements;
    EXPECT_DEATH(bytes[-1] = 1, "AddressSanitizer") << elements;
#endif
  }
}

// However large: no byte is of two buffers, though they share pieces of the system's memory.
TEST(HostDevice, GivesEachBufferItsOwnBytes) {
  HostDevice device(plain, 0, 0);
  std::vector<std::span<unsigned char>> buffers;
  for (int round = 0; round < 2; ++round) {
    for (const std::int64_t elements : {1, 63, 64, 65, 20'000, 300'000, 524'224, 524'288, 1'500'000, 17'000'000}) {
      const Memory memory = device.allocate(elements, base::DType::f32, program::MemoryKind::workspace, "some");
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data) % 256, 0u);
      buffers.emplace_back(static_cast<unsigned char*>(memory.data), static_cast<std::size_t>(memory.storage_bytes));
    }
  }
  unsigned char mark = 0;
  for (const auto& bytes : buffers) {
    EXPECT_EQ(bytes.front(), 0);
    EXPECT_EQ(bytes.back(), 0);
    bytes.front() = bytes.back() = ++mark;
  }
  mark = 0;
  for (const auto& bytes : buffers) {
    EXPECT_EQ(bytes.front(), ++mark);
    EXPECT_EQ(bytes.back(), mark);
  }
  std::sort(buffers.begin(), buffers.end(), [](const auto& left, const auto& right) { return left.data() < right.data(); });
  for (std::size_t at = 1; at < buffers.size(); ++at) EXPECT_LE(buffers[at - 1].data() + buffers[at - 1].size(), buffers[at].data());
}

TEST(HostDevice, RefusesToAllocateOnceSealed) {
  HostDevice device(plain, 0, 0);
  device.allocate(8, base::DType::f32, program::MemoryKind::workspace, "early");
  device.seal();
  EXPECT_THROW(device.allocate(8, base::DType::f32, program::MemoryKind::workspace, "late"), base::Failure);
  EXPECT_THROW(device.create_stream("late"), base::Failure);
  EXPECT_THROW(device.create_event("late"), base::Failure);
}

TEST(HostDevice, TimesTheOpsOfATimedStep) {
  HostDevice device(plain, 0, 0);
  Stream& stream = device.create_stream("compute");
  std::vector<int> order;
  device.begin_step(0, true);
  issue(stream, order, 1);
  issue(stream, order, 2);
  const program::StepTimes& times = device.end_step();
  ASSERT_EQ(times.ran.size(), 2u);
  EXPECT_LE(times.ran[0].start, times.ran[0].end);
  EXPECT_LE(times.ran[0].end, times.ran[1].start);
  EXPECT_EQ(order.size(), 2u) << "a timed step ends when it has run";
}

TEST(HostDevice, CountsHostWaitsWithinAStep) {
  HostDevice device(plain, 0, 0);
  Stream& stream = device.create_stream("compute");
  const Event event = device.create_event("done");
  device.begin_step(0, false);
  device.record(stream, event);
  EXPECT_EQ(device.recorder().host_waits(), 0);
  device.host_wait(event);
  EXPECT_EQ(device.recorder().host_waits(), 1);
  device.end_step();
}

TEST(Lane, RecordsTheLineOfItsCaller) {
  MetaDevice device(0);
  Stream& stream = device.create_stream("compute");
  std::vector<int> nothing;
  device.begin_step(0, true);
  issue(stream, nothing, 1); const std::uint32_t line = __LINE__;
  device.end_step();
  EXPECT_EQ(device.recorder().programs()[0]->ops[0].where.line, line);
}

}  // namespace
}  // namespace shardbook::device
