// The micro-benchmarks of `calibrate`, on two ranks of the host: each gets a time, and a profile comes of them.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "engine/cli/calibrate.hpp"
#include "engine/cli/calibrate_graph.hpp"
#include "engine/comm/loopback/loopback.hpp"
#include "engine/device/host/host_device.hpp"
#include "engine/kernels/initialize.hpp"
#include "engine/kernels/residual.hpp"
#include "engine/world/threads.hpp"

namespace shardbook::cli {
namespace {

using base::DType;
using program::OpKind;

// A few of each, small.
simulate::Benchmarks small_plan() {
  simulate::Benchmarks plan;
  plan.name = "this host";
  plan.made_at = "today";
  plan.device.name = "host";
  plan.network = {2, 1, 1};
  plan.gemms = {{{32, 32, 32, 1}, DType::bf16, 0}, {{16, 16, 8, 4}, DType::bf16, 0}, {{32, 32, 32, 1}, DType::f32, 0}};
  for (OpKind kind : {OpKind::pointwise, OpKind::reduction, OpKind::lookup, OpKind::copy, OpKind::fill}) {
    plan.kernels.push_back({program::name_of(kind), 4096, 0});
    plan.kernels.push_back({program::name_of(kind), 2 << 20, 0});  // room for kernels by name
  }
  for (OpKind kind : {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter}) plan.collectives.push_back({kind, 2, 8192, 0});
  plan.collectives.push_back({OpKind::all_reduce, 4, 8192, 0});   // more than there are
  simulate::OverlapBenchmark overlap;
  overlap.size = {32, 32, 32, 1};
  overlap.bytes = 8192;
  plan.overlaps.push_back(overlap);
  overlap.compute = simulate::OverlapBenchmark::Compute::pointwise;
  overlap.compute_bytes = 4096;
  plan.overlaps.push_back(overlap);
  return plan;
}

TEST(Calibrate, EveryMicroBenchmarkGetsATimeAndAProfileComesOfThem) {
  comm::LoopbackHub hub;
  std::vector<simulate::Benchmarks> measured(2);
  int said = 0;
  const base::Status ran = world::run_threads(2, [&](world::World& world) {
    device::HostDevice device({DType::f32, DType::f32}, world.rank(), 0);
    const std::unique_ptr<comm::Backend> backend = comm::make_loopback_backend(hub, device);
    measured[static_cast<std::size_t>(world.rank())] = measure(world, device, *backend, small_plan(), [&](const std::string&) { ++said; });
  });
  ASSERT_TRUE(ran.ok()) << ran.error();
  EXPECT_GT(said, 10);
  for (const simulate::Benchmarks& of_rank : measured) {
    EXPECT_EQ(of_rank.collectives.size(), 3u);
    EXPECT_GE(of_rank.kernels.size(), 10u);
  }
  // Ranks agree on every figure.
  EXPECT_EQ(measured[0].gemms[0].ns, measured[1].gemms[0].ns);
  EXPECT_EQ(measured[0].collectives[1].ns, measured[1].collectives[1].ns);
  EXPECT_EQ(measured[0].host, measured[1].host);
  const base::Result<simulate::Profile> profile = simulate::fit(measured[0]);
  ASSERT_TRUE(profile.ok()) << profile.error();
  EXPECT_GT(profile.value().host.kernel_ns, 0);
  EXPECT_GT(profile.value().host.graph_ns, 0);
  EXPECT_NE(profile.value().host.graph_ns, simulate::HostCosts().graph_ns) << "what is assumed, not what was measured";
  EXPECT_EQ(profile.value().device.graph_collective_gap_ns, -1) << "other processes measure that";
  EXPECT_EQ(profile.value().device.graph_event_latency_ns, -1);
  EXPECT_TRUE(profile.value().kernels.contains("copy"));
  EXPECT_EQ(simulate::profile_from_json(simulate::to_json(profile.value()), "this test").value(), profile.value());
}

// What is captured is issued once for each copy, of a graph and of one thrice as long, and runs as often as they are launched: twelve times.
// Of a plan its collectives and overlaps alone, each with a time that ranks agree on.
TEST(Calibrate, CollectivesCanBeMeasuredAlone) {
  comm::LoopbackHub hub;
  std::vector<simulate::Benchmarks> measured(2);
  const base::Status ran = world::run_threads(2, [&](world::World& world) {
    device::HostDevice device({DType::f32, DType::f32}, world.rank(), 0);
    const std::unique_ptr<comm::Backend> backend = comm::make_loopback_backend(hub, device);
    simulate::Benchmarks plan = small_plan();
    plan.gemms.clear();
    plan.kernels.clear();
    plan.overlaps.resize(1);
    plan.overlaps[0].kind = OpKind::reduce_scatter;
    for (const simulate::RoomBenchmark& room : simulate::plan_windows(2).rooms) plan.rooms.push_back({room.matmul, {32, 32, 16, 1}, room.kind, 2, 8192});
    plan.rooms.push_back({"linear_forward", {32, 32, 16, 1}, OpKind::reduce_scatter, 4, 8192});   // more than there are
    measured[static_cast<std::size_t>(world.rank())] = measure_collectives(world, device, *backend, plan, [](const std::string&) {});
    std::set<std::string> issued;
    for (const auto& program : device.recorder().programs()) {
      for (const program::Op& op : program->ops) issued.insert(op.desc.name);
    }
    for (const simulate::RoomBenchmark& room : plan.rooms) EXPECT_TRUE(issued.contains(room.matmul)) << "a matmul of another name ran for " << room.matmul;
  });
  ASSERT_TRUE(ran.ok()) << ran.error();
  const base::Result<simulate::Windows> windows = simulate::fit_windows(measured[0]);
  ASSERT_TRUE(windows.ok()) << windows.error();
  EXPECT_EQ(windows.value(), simulate::fit_windows(measured[1]).value());
  EXPECT_EQ(windows.value().collectives.size(), 3u);
  EXPECT_GE(windows.value().contention.at(0).gemm_by_collective, 1);
  ASSERT_EQ(measured[0].rooms.size(), 10u);
  for (std::size_t at = 0; at < 10; ++at) {
    EXPECT_GT(measured[0].rooms[at].matmul_ns, 0) << measured[0].rooms[at].matmul;
    EXPECT_EQ(measured[0].rooms[at].collective_ns, measured[1].rooms[at].collective_ns) << "ranks agree on it";
  }
  EXPECT_TRUE(measured[0].kernels.empty());
}

TEST(Calibrate, InAGraphEachCopyRunsWithEachLaunch) {
  int issued = 0;
  InGraph found;
  float sum = 0;
  const base::Status ran = world::run_threads(1, [&](world::World& world) {
    device::HostDevice device({DType::f32, DType::f32}, world.rank(), 0);
    device::Stream& stream = device.create_stream("compute");
    const auto memory = [&](const char* name) { return tensor::allocate(device, {1024}, DType::f32, program::MemoryKind::workspace, name); };
    const tensor::Tensor filled = memory("filled"), one = memory("one"), total = memory("total");
    device.seal();
    kernels::fill(stream, one, 1);
    kernels::fill(stream, total, 0);
    Stopwatch watch(world, device, stream, filled);
    found = in_graph(device, stream, watch, [&] { ++issued, kernels::accumulate(stream, one, total); }, 5);
    device.synchronize();
    sum = static_cast<const float*>(total.data)[1023];
  });
  ASSERT_TRUE(ran.ok()) << ran.error();
  EXPECT_EQ(issued, 5 + 15);
  EXPECT_EQ(sum, 12 * (5 + 15));
  EXPECT_GT(found.launch_ns, 0);
}

// An op of two milliseconds, on every machine: so long that each try has as few as there may be, two and four to look, five tries of
// three and nine. What lets the clock settle goes before those.
TEST(Calibrate, AnOpThatIsToSettleRunsBeforeItIsMeasured) {
  constexpr int measured = 2 + 4 + 5 * (3 + 9), more = 9;
  constexpr double settled_after_ns = 60e6;
  struct Nothing {};
  void (*const on_cuda)(const Nothing&, const device::CudaQueue&) = nullptr;
  int issued = 0, settled = 0;
  const base::Status ran = world::run_threads(1, [&](world::World& world) {
    device::HostDevice device({DType::f32, DType::f32}, world.rank(), 0);
    device::Stream& stream = device.create_stream("compute");
    const tensor::Tensor filled = tensor::allocate(device, {1 << 20}, DType::f32, program::MemoryKind::workspace, "filled");
    device.seal();
    Stopwatch watch(world, device, stream, filled);
    const auto sleep = [&](int& count) {
      return [&] {
        ++count;
        device.launch(stream, program::OpDesc("sleep", OpKind::fill, DType::f32), Nothing{},
                      +[](const Nothing&) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }, on_cuda);
      };
    };
    watch.period_ns(sleep(issued));
    EXPECT_EQ(watch.settled_period(sleep(settled), settled_after_ns).cycles, 0) << "a host tells no clock";
  });
  ASSERT_TRUE(ran.ok()) << ran.error();
  EXPECT_EQ(issued, measured) << "the op is too short to tell";
  EXPECT_GE(settled, measured + more);
}

}  // namespace
}  // namespace shardbook::cli
