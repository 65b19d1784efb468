// A step without a GPU and without numbers: what it issues.
#pragma once

#include "engine/comm/meta/meta.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {

// One step of one rank on meta.
struct MetaStep {
  device::MetaDevice device;
  std::unique_ptr<comm::Backend> backend = comm::make_meta_backend();
  std::unique_ptr<train::Trainer> trainer;

  MetaStep(const config::RunConfig& config, int rank) : device(rank) {
    trainer = std::make_unique<train::Trainer>(config, device, *backend, mesh_of(config), rank, nullptr);
    trainer->issue(0, true);
  }
  const program::Program& program() { return *device.recorder().programs()[0]; }
  const program::Catalogue& catalogue() { return device.recorder().catalogue(); }
  std::uint64_t hash() { return device.recorder().program_hashes()[0]; }

  // Collectives of a kind over an axis in one block and phase, and their bytes.
  std::vector<base::Bytes> collectives(program::OpKind kind, const std::string& axis, program::Phase phase, int layer) {
    std::vector<base::Bytes> bytes;
    for (const program::Op& op : program().ops) {
      if (op.desc.kind != kind || op.key.phase != phase || op.key.layer != layer) continue;
      if (catalogue().groups[op.desc.collective.group].axis == axis) bytes.push_back(op.desc.collective.bytes);
    }
    return bytes;
  }
};

}  // namespace shardbook::tests
