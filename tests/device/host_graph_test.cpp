// A graph of the host device is what was issued, issued again.
#include <gtest/gtest.h>

#include <vector>

#include "engine/device/host/host_device.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "tests/device/plain.hpp"

namespace shardbook::device {
namespace {

struct CopyNumber {
  std::vector<int>* to;
  const int* from;   // read as the op runs
  int value;         // written down as the op is issued
};
void copy_number(const CopyNumber& args) { args.to->push_back(10 * *args.from + args.value); }

void issue(Lane lane, std::vector<int>& to, const int& from, int value) {
  const program::OpDesc desc("copy_number", program::OpKind::pointwise, base::DType::f32);
  lane.device().launch(lane, desc, CopyNumber{&to, &from, value}, &copy_number, static_cast<void (*)(const CopyNumber&, const CudaQueue&)>(nullptr));
}

// What a step takes from memory is new in each replay; what it takes from its arguments is not.
TEST(HostGraph, ReadsMemoryAnewAndKeepsTheArgumentsOfItsCapture) {
  HostDevice device(plain, 0, 0);
  Stream& stream = device.create_stream("compute");
  std::vector<int> ran;
  int memory = 1, argument = 1;
  device.begin_capture(stream);
  issue(stream, ran, memory, argument);
  const Graph graph = device.end_capture();
  device.synchronize();
  EXPECT_TRUE(ran.empty()) << "what is captured does not run";
  for (int step = 2; step <= 4; ++step) {
    memory = argument = step;
    device.replay(graph);
    device.synchronize();
  }
  EXPECT_EQ(ran, (std::vector<int>{21, 31, 41}));
  EXPECT_EQ(device.info(graph).nodes, 1u);
}

// Two streams that wait for each other: under any order of the queues each replay runs its ops in the captured order, behind the last.
TEST(HostGraph, KeepsTheOrderOfItsStreamsUnderEverySeed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    HostDevice device(plain, 0, seed);
    Stream& first = device.create_stream("first");
    Stream& second = device.create_stream("second");
    const Event there = device.create_event("there"), back = device.create_event("back");
    std::vector<int> ran;
    const int zero = 0;
    const auto step = [&] {
      device.wait(first, back);
      issue(first, ran, zero, 1);
      device.record(first, there);
      device.wait(second, there);
      issue(second, ran, zero, 2);
      device.record(second, back);
    };
    step();   // one by one, as the first step is
    device.begin_capture(first);
    step();
    const Graph graph = device.end_capture();
    for (int at = 0; at < 3; ++at) device.replay(graph);
    step();   // and one by one again, behind them
    device.synchronize();
    EXPECT_EQ(ran, (std::vector<int>{1, 2, 1, 2, 1, 2, 1, 2, 1, 2})) << "seed " << seed;
  }
}

TEST(HostGraph, HasNoPlaceForAWaitOfTheHost) {
  HostDevice device(plain, 0, 0);
  Stream& stream = device.create_stream("compute");
  const Event event = device.create_event("done");
  device.begin_capture(stream);
  device.record(stream, event);
  try {
    device.host_wait(event);
    FAIL() << "the host waits for what does not run";
  } catch (const base::Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("host_graph_test.cpp"), std::string::npos) << failure.what();
    EXPECT_NE(std::string(failure.what()).find("leave out host.graph=on"), std::string::npos) << failure.what();
  }
}

// ---- What is written down ----------------------------------------------------------------------

// Of a long run the first step is recorded, and whatever is timed or captured; another step leaves nothing, and runs all the same.
TEST(Recording, OfALongRunIsOfTheFirstStepAndOfThoseThatAreTimedOrCaptured) {
  HostDevice device(plain, 0, 0);
  device.keep_timed_programs_alone();
  Stream& stream = device.create_stream("compute");
  std::vector<int> ran;
  const int zero = 0;
  const auto step = [&](std::int64_t number, bool timed) {
    device.begin_step(number, timed);
    issue(stream, ran, zero, static_cast<int>(number));
    const program::StepTimes& times = device.end_step();
    EXPECT_EQ(times.step, number);
    return std::pair(times.program, times.issued.size());
  };
  const auto none = std::pair(program::no_program, std::size_t{0});
  EXPECT_EQ(step(0, false), std::pair(0u, std::size_t{1}));
  EXPECT_EQ(step(1, false), none);
  EXPECT_EQ(step(2, true), std::pair(0u, std::size_t{1}));
  EXPECT_EQ(step(3, false), none);
  device.begin_capture(stream);
  EXPECT_EQ(step(4, false), std::pair(0u, std::size_t{1}));
  device.replay(device.end_capture());
  device.synchronize();
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(device.recorder().programs().size(), 1u);
}

// A lab's slower host is slower in steps that nobody records, too.
TEST(Recording, LeavesAStepThatIsNotRecordedAsSlowAsALabAskedFor) {
  MetaDevice device(0);
  device.keep_timed_programs_alone();
  Stream& stream = device.create_stream("compute");
  constexpr base::Nanoseconds ms = 1'000'000;
  device.make_slower({2 * ms, 0});
  std::vector<int> ran;
  const int zero = 0;
  for (std::int64_t step = 0; step < 2; ++step) {
    const base::Nanoseconds begin = program::host_now();
    device.begin_step(step, false);
    issue(stream, ran, zero, 1);
    device.end_step();
    EXPECT_GE(program::host_now() - begin, 2 * ms) << step;
  }
}

}  // namespace
}  // namespace shardbook::device
