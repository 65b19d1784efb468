#include "engine/train/planned.hpp"

#include "engine/comm/meta/meta.hpp"
#include "engine/device/meta/meta_device.hpp"

namespace shardbook::train {

base::Result<PlannedRank> planned(const config::RunConfig& config, const mesh::Mesh& mesh, base::Rank rank, const PlanMaker& make_plan) {
  device::MetaDevice device(rank);
  const std::unique_ptr<comm::Backend> backend = comm::make_meta_backend();
  try {
    const Trainer trainer(config, device, *backend, mesh, rank, nullptr, make_plan);
    PlannedRank planned{trainer.network(), trainer.plan(), plan::needs_of(trainer.plan(), trainer.network()), {}};
    for (const program::BufferInfo& buffer : device.recorder().catalogue().buffers) planned.buffers[buffer.kind] += buffer.bytes;
    return planned;
  } catch (const base::Failure& failure) {
    return base::Error{failure.what()};
  }
}

}  // namespace shardbook::train
