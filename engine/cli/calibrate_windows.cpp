#include "engine/cli/calibrate_windows.hpp"

#include <algorithm>
#include <memory>

#include "engine/cli/stopwatch.hpp"
#include "engine/mesh/mesh.hpp"

namespace shardbook::cli {

using base::Bytes;
using tensor::Tensor;

std::map<int, simulate::Curve> gathers_of_windows(world::World& world, device::Device& device, comm::Backend& backend, const simulate::Benchmarks& plan,
                                                  Bytes hold_up) {
  device::Stream& stream = device.create_stream("compute");
  std::map<int, simulate::Curve> curves;
  std::map<int, std::unique_ptr<comm::Communicator>> groups;
  Bytes largest = hold_up, largest_part = 0;
  for (const simulate::CollectiveBenchmark& one : plan.collectives) {
    if (one.kind != program::OpKind::all_gather) continue;
    curves[one.ranks].push_back({one.bytes, 0});
    largest = std::max(largest, one.bytes);
    largest_part = std::max(largest_part, one.bytes / one.ranks);
  }
  for (const auto& [ranks, curve] : curves) {
    const mesh::Mesh mesh({{"groups", world.size() / ranks}, {base::text("of ", ranks), ranks}});
    groups[ranks] = backend.communicator(device, mesh.group(world.rank(), base::text("of ", ranks)));
  }
  const auto memory = [&](Bytes bytes, const char* name) { return tensor::allocate(device, {bytes / 2}, base::DType::bf16, program::MemoryKind::workspace, name); };
  const Tensor whole = memory(largest, "calibrate.whole"), mine = memory(largest_part, "calibrate.mine");
  device.seal();
  Stopwatch watch(world, device, stream, whole.slice(0, {hold_up / 2}));
  for (auto& [ranks, curve] : curves) {
    comm::Communicator& group = *groups.at(ranks);
    for (simulate::CurvePoint& point : curve) {
      const std::int64_t part = point.bytes / 2 / ranks;
      point.ns = watch.period_ns([&] { group.all_gather(stream, mine.slice(0, {part}), whole.slice(0, {part * ranks})); }, Stopwatch::Over::largest);
    }
  }
  return curves;
}

}  // namespace shardbook::cli
