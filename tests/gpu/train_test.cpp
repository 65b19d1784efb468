// Steps on GPUs are the steps that the host and meta issue, with the same numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/comm/meta/meta.hpp"
#include "engine/comm/nccl/nccl.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

struct GpuRun {
  std::string error;
  std::vector<double> losses;
  std::vector<std::uint64_t> hashes;
};

// The layout on GPUs, a thread a rank, in fp32.
GpuRun run_on_gpus(const config::RunConfig& config, const data::TokenSource& source) {
  GpuRun run;
  run.hashes.resize(static_cast<std::size_t>(config.ranks));
  const base::Status status = world::run_threads(config.ranks, [&](world::World& world) {
    const int me = world.rank();
    auto device = device::make_cuda_device(me, {base::DType::f32, base::DType::f32}, me);
    if (!device) throw base::Failure(device.error());
    const std::unique_ptr<comm::Backend> backend = comm::make_nccl_backend(world, *device.value());
    device.value()->set_watch([&world] { world.throw_if_failed(); });
    train::Trainer trainer(config, *device.value(), *backend, mesh_of(config), me, &source);
    for (int step = 0; step < config.steps; ++step) {
      trainer.issue(step, step == 1);
      const train::StepResult result = trainer.await(step);
      if (me == 0) run.losses.push_back(result.loss);
    }
    EXPECT_EQ(device.value()->recorder().programs().size(), 1u) << "every step is the same program, traced or not";
    run.hashes[static_cast<std::size_t>(me)] = device.value()->recorder().program_hashes().back();
  });
  run.error = status ? "" : status.error();
  return run;
}

class OnGpus : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(OnGpus, AStepIssuesTheProgramOfMetaAndFollowsTheLossesOfTheHost) {
  config::RunConfig config = small_config(std::get<0>(GetParam()), std::get<1>(GetParam()));
  if (device::cuda_device_count() < config.ranks) {
    GTEST_SKIP() << "needs " << config.ranks << " GPUs, and there are " << device::cuda_device_count();
  }
  config.precision = config::Precision::fp32;
  config.steps = 6;
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const GpuRun gpu = run_on_gpus(config, tokens);
  ASSERT_EQ(gpu.error, "");

  for (int rank = 0; rank < config.ranks; ++rank) {
    device::MetaDevice device(rank);
    const std::unique_ptr<comm::Backend> backend = comm::make_meta_backend();
    train::Trainer trainer(config, device, *backend, mesh_of(config), rank, nullptr);
    trainer.issue(0, true);
    EXPECT_EQ(gpu.hashes[static_cast<std::size_t>(rank)], device.recorder().program_hashes()[0]) << "rank " << rank;
  }

  // Both err from fp64 by rounding in fp32; the first loss by no more than the host does, times the usual four.
  const HostRun host = run_on_host(config, tokens);
  ASSERT_EQ(host.error, "");
  config::RunConfig exact = config;
  exact.host_dtype = config::HostDtype::f64;
  const HostRun truth = run_on_host(exact, tokens);
  double host_error = 0;
  for (std::size_t step = 0; step < truth.losses.size(); ++step) {
    host_error = std::max({host_error, std::abs(host.losses[step] - truth.losses[step]), truth.losses[step] * 0x1p-23});
    EXPECT_LE(std::abs(gpu.losses[step] - truth.losses[step]), 4 * host_error) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(TpTimesFsdp, OnGpus, testing::Values(std::tuple(1, 1), std::tuple(2, 1), std::tuple(1, 2), std::tuple(2, 2)));

}  // namespace
}  // namespace shardbook::tests
