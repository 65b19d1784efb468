#include "engine/cli/calibrate_graph.hpp"

#include <algorithm>

#include "engine/kernels/gemm.hpp"
#include "engine/mesh/mesh.hpp"

namespace shardbook::cli {

using base::Bytes;
using base::Nanoseconds;
using tensor::Tensor;

InGraph in_graph(device::Device& device, device::Stream& origin, Stopwatch& watch, const Stopwatch::Issue& issue, int copies, comm::Communicator* calls) {
  // What tells the end of a collective's launch is about to tell that of the next (Communicator::launches): one by one
  const int launches = calls != nullptr || device.kind() == device::Kind::host ? 1 : 10;
  struct Captured {
    device::Graph graph;
    int calls = -1;
  };
  const auto captured = [&](int count) {
    Captured all;
    device.begin_capture(origin);
    if (calls != nullptr) calls->capture_begins();
    for (int copy = 0; copy < count; ++copy) issue();
    if (calls != nullptr) all.calls = calls->capture_ends();
    all.graph = device.end_capture();
    return all;
  };
  double launch_ns = 0;
  const auto took_ns = [&](const Captured& all) {
    watch.await_all();
    const Nanoseconds begin = program::host_now();
    for (int launch = 0; launch < launches; ++launch) {
      if (calls != nullptr) calls->launches(all.calls, launch);
      device.replay(all.graph);
      if (calls != nullptr) calls->launched(all.calls);
      if (launch == 0) launch_ns = static_cast<double>(program::host_now() - begin);
    }
    device.synchronize();
    return static_cast<double>(program::host_now() - begin);
  };
  // From a graph to one thrice as long, launches and what starts them are the same
  const Captured once = captured(copies), thrice = captured(3 * copies);
  std::vector<double> periods, launched;
  for (int i = -1; i < 11; ++i) {
    const double longer = took_ns(thrice), period = (longer - took_ns(once)) / (2 * launches * copies);
    if (i < 0) continue;   // the first launch of each does more
    periods.push_back(period);
    launched.push_back(launch_ns);
  }
  device.drop_graphs();
  const Stopwatch::Over over = calls != nullptr ? Stopwatch::Over::largest : Stopwatch::Over::median;
  return {watch.over_ranks(Stopwatch::median(periods), over), watch.over_ranks(Stopwatch::median(launched), over)};
}

CollectivesInGraph collectives_in_graph(world::World& world, device::Device& device, comm::Backend& backend, Bytes hold_up) {
  constexpr Bytes KiB = 1024, sizes[] = {32 * KiB, 128 * KiB, 512 * KiB, 2048 * KiB};
  constexpr int copies = 100;
  constexpr std::int64_t rows = 512, width = 128;
  device::Stream& compute = device.create_stream("compute");
  device::Stream& comm = device.create_stream("comm", device::Priority::high);
  const device::Event there = device.create_event("there"), back = device.create_event("back");
  const mesh::Mesh mesh({{"all", world.size()}});
  const std::unique_ptr<comm::Communicator> group = backend.communicator(device, mesh.group(world.rank(), "all"));
  const auto memory = [&](base::Shape shape, const char* name) { return tensor::allocate(device, shape, base::DType::bf16, program::MemoryKind::workspace, name); };
  const Tensor summed = memory({sizes[std::size(sizes) - 1] / 2}, "calibrate.summed"), filled = memory({hold_up / 2}, "calibrate.filled");
  const Tensor x = memory({rows, width}, "calibrate.x"), weight = memory({width, width}, "calibrate.weight"), y = memory({rows, width}, "calibrate.y");
  device.seal();
  Stopwatch watch(world, device, compute, filled);
  const auto matmul = [&] { kernels::linear_forward(compute, x, weight, Tensor{}, y); };
  const double matmul_ns = in_graph(device, compute, watch, matmul, copies).period_ns;
  std::vector<double> saved, latencies;
  for (const Bytes bytes : sizes) {
    const Tensor whole = summed.slice(0, {bytes / 2});
    const auto sum = [&](device::Lane lane) { group->all_reduce(lane, whole, whole); };
    const double in_train = watch.period_ns([&] { sum(compute); }, Stopwatch::Over::largest);
    const double alone = in_graph(device, compute, watch, [&] { sum(compute); }, copies, group.get()).period_ns;
    saved.push_back(in_train - alone);
    // As a step has them: behind a matmul, on a stream of their own, and the next matmul awaits them
    const double among = in_graph(device, compute, watch, [&] {
      matmul();
      device.record(compute, there);
      device.wait(comm, there);
      sum(comm);
      device.record(comm, back);
      device.wait(compute, back);
    }, copies, group.get()).period_ns;
    // Both have a gap behind each op; there and back take the place of two
    latencies.push_back(assumed_gap_ns + (among - matmul_ns - alone) / 2);
  }
  return {std::max(0.0, Stopwatch::median(saved)), std::max(0.0, Stopwatch::median(latencies))};
}

}  // namespace shardbook::cli
