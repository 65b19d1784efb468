// tests/gpu: what a rank that trains needs beside its trainer, as launch makes it.
#pragma once

#include <memory>
#include <string>

#include "engine/comm/nccl/nccl.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/world/world.hpp"
#include "tests/gpu/gpu_ranks.hpp"
#include "tests/gpu/one_gpu.hpp"

namespace shardbook::gpu_test {

// A GPU each, or, where it is asked for, the first for all.
inline bool has_gpus_for(int ranks) {
  const int gpus = device::cuda_device_count();
  return gpus >= ranks || (gpus == 1 && one_gpu_for_all());
}
inline std::string lacks_gpus(int ranks) { return base::text("needs ", ranks, " GPUs, and there are ", device::cuda_device_count()); }

// This rank's device, not sealed. Throws Failure.
inline std::unique_ptr<device::Device> device_of(const world::World& world, base::DType stores_bf16_as = base::DType::bf16) {
  const bool shares = one_gpu_for_all();
  if (shares) share_one_gpu(world.rank());
  auto made = device::make_cuda_device(shares ? 0 : world.rank(), {stores_bf16_as, base::DType::f32}, world.rank());
  if (!made) throw base::Failure(made.error());
  return std::move(made).value();
}

// Device and backend, which hear of the failure of others.
struct TrainingRank {
  explicit TrainingRank(world::World& world, base::DType stores_bf16_as = base::DType::bf16, comm::NcclOptions options = {})
      : device(device_of(world, stores_bf16_as)), backend(comm::make_nccl_backend(world, *device, options)), stop(world.on_failure([this] { backend->abort(); })) {
    device->set_watch([&world] { world.throw_if_failed(); });
  }
  std::unique_ptr<device::Device> device;
  std::unique_ptr<comm::Backend> backend;
  world::FailureHook stop;
};

}  // namespace shardbook::gpu_test
