// A step of a trainer as meta records it, and changes to what was issued.
#pragma once

#include <memory>
#include <string>

#include "engine/check/ledger.hpp"
#include "engine/check/races.hpp"
#include "engine/comm/meta/meta.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "engine/train/trainer.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {

// What one rank issues in a step of the small model.
inline Recorded record_on_meta(const config::RunConfig& config, int rank) {
  device::MetaDevice device(rank);
  const std::unique_ptr<comm::Backend> backend = comm::make_meta_backend();
  train::Trainer trainer(config, device, *backend, mesh_of(config), rank, nullptr);
  trainer.issue(0, true);
  return recorded_by(device.recorder());
}

// tp 2 × fsdp 2, three blocks, two micro-batches.
inline config::RunConfig two_by_two() {
  config::RunConfig config = small_config(2, 2);
  config.model.layers = 3;
  config.micro_batches = 2;
  return config;
}

}  // namespace shardbook::tests
