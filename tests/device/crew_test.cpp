// A crew takes each part once, whoever takes it, and returns when all are done; the CPU's own work stands among a stream's ops.
#include "engine/device/crew.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "engine/device/host/host_device.hpp"
#include "tests/device/plain.hpp"

namespace shardbook::device {
namespace {

TEST(Crew, TakesEachPartOnceAndIsDoneWhenItReturns) {
  for (int threads : {1, 2, 5}) {
    Crew crew(threads);
    EXPECT_EQ(crew.threads(), threads);
    for (std::int64_t parts : {0, 1, 3, 1000}) {
      for (int again = 0; again < 20; ++again) {
        std::vector<int> taken(static_cast<std::size_t>(parts));   // each by one thread, so no two write one
        crew.run(parts, [&](std::int64_t part) { ++taken[static_cast<std::size_t>(part)]; });
        EXPECT_EQ(std::accumulate(taken.begin(), taken.end(), 0), parts);
        for (int times : taken) ASSERT_EQ(times, 1);
      }
    }
  }
}

TEST(Crew, HasAProcessorAtLeast) { EXPECT_GE(processors_here(), 1); }

struct Args {
  std::vector<int>* to;
  int value;
};
void append_on_crew(const Args& args, Crew* crew) { args.to->push_back(crew == nullptr ? args.value : -1); }

// In the order of its stream and of the events it waits for, as any op.
TEST(WorkOfTheCpu, StandsAmongTheOpsOfAStream) {
  for (std::uint64_t seed : {0, 1, 2, 3, 4, 5}) {
    HostDevice device(plain, 0, seed);
    Stream& compute = device.create_stream("compute");
    Stream& cpu = device.create_stream("cpu");
    const Event made = device.create_event("made"), moved = device.create_event("moved");
    device.set_up_crew();
    const program::OpDesc desc("append_on_host", program::OpKind::host, base::DType::f32);
    std::vector<int> order;
    device.launch_on_host(compute, desc, Args{&order, 1}, &append_on_crew);
    device.record(compute, made);
    device.wait(cpu, made);
    device.launch_on_host(cpu, desc, Args{&order, 2}, &append_on_crew);
    device.record(cpu, moved);
    device.wait(compute, moved);
    device.launch_on_host(compute, desc, Args{&order, 3}, &append_on_crew);
    EXPECT_TRUE(order.empty()) << "no thread waits for it";
    device.synchronize();
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  }
}

}  // namespace
}  // namespace shardbook::device
