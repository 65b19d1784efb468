#include "engine/cli/calibrate_graph.hpp"

#include <algorithm>

#include "engine/mesh/mesh.hpp"

namespace shardbook::cli {

using base::Bytes;
using base::Nanoseconds;
using tensor::Tensor;

InGraph in_graph(device::Device& device, device::Stream& origin, Stopwatch& watch, const Stopwatch::Issue& issue, int copies, comm::Communicator* calls) {
  // What tells the end of a collective's launch is about to tell that of the next (Communicator::launches): one by one
  const int launches = calls != nullptr ? 1 : 4;
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
    device.synchronize();
    watch.over_ranks(0, Stopwatch::Over::median);   // they begin together
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
  return {watch.over_ranks(Stopwatch::median(periods), Stopwatch::Over::median), watch.over_ranks(Stopwatch::median(launched), Stopwatch::Over::median)};
}

double graph_collective_gap(world::World& world, device::Device& device, comm::Backend& backend, Bytes hold_up) {
  constexpr Bytes KiB = 1024, sizes[] = {32 * KiB, 128 * KiB, 512 * KiB, 2048 * KiB};
  constexpr int copies = 100;
  device::Stream& stream = device.create_stream("compute");
  const mesh::Mesh mesh({{"all", world.size()}});
  const std::unique_ptr<comm::Communicator> group = backend.communicator(device, mesh.group(world.rank(), "all"));
  const auto memory = [&](Bytes bytes, const char* name) { return tensor::allocate(device, {bytes / 2}, base::DType::bf16, program::MemoryKind::workspace, name); };
  const Tensor summed = memory(sizes[std::size(sizes) - 1], "calibrate.summed"), filled = memory(hold_up, "calibrate.filled");
  device.seal();
  Stopwatch watch(world, device, stream, filled);
  std::vector<double> saved;
  for (const Bytes bytes : sizes) {
    const Tensor whole = summed.slice(0, {bytes / 2});
    const auto sum = [&] { group->all_reduce(stream, whole, whole); };
    const double in_train = watch.period_ns(sum, Stopwatch::Over::largest);
    saved.push_back(in_train - in_graph(device, stream, watch, sum, copies, group.get()).period_ns);
  }
  return std::max(0.0, Stopwatch::median(saved));
}

}  // namespace shardbook::cli
