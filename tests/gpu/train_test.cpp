// Steps on GPUs are the steps that the host and meta issue, with the same numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/comm/meta/meta.hpp"
#include "engine/comm/nccl/nccl.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "tests/gpu/gpu_ranks.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

void expect_program_of_meta(const config::RunConfig& config, int rank, std::uint64_t hash) {
  device::MetaDevice device(rank);
  const std::unique_ptr<comm::Backend> backend = comm::make_meta_backend();
  train::Trainer trainer(config, device, *backend, mesh_of(config), rank, nullptr);
  trainer.issue(0, true);
  EXPECT_EQ(hash, device.recorder().program_hashes()[0]) << "rank " << rank;
}

// Both err from fp64 by rounding in fp32; the first loss by no more than the host does, times the usual four.
void expect_losses_of_host(const config::RunConfig& config, const TestTokens& tokens, const std::vector<double>& losses) {
  const HostRun host = run_on_host(config, tokens);
  ASSERT_EQ(host.error, "");
  config::RunConfig exact = config;
  exact.host_dtype = config::HostDtype::f64;
  const HostRun truth = run_on_host(exact, tokens);
  ASSERT_EQ(losses.size(), truth.losses.size());
  double host_error = 0;
  for (std::size_t step = 0; step < truth.losses.size(); ++step) {
    host_error = std::max({host_error, std::abs(host.losses[step] - truth.losses[step]), truth.losses[step] * 0x1p-23});
    EXPECT_LE(std::abs(losses[step] - truth.losses[step]), 4 * host_error) << "step " << step;
  }
}

// tp, fsdp, and whether tp ranks cut the tokens between the linears.
class OnGpus : public testing::TestWithParam<std::tuple<int, int, bool>> {};

TEST_P(OnGpus, AStepIssuesTheProgramOfMetaAndFollowsTheLossesOfTheHost) {
  const auto [tp, fsdp, cut] = GetParam();
  config::RunConfig config = cut ? with_tokens_cut(small_config(tp, fsdp)) : small_config(tp, fsdp);
  if (device::cuda_device_count() < config.ranks) {
    GTEST_SKIP() << "needs " << config.ranks << " GPUs, and there are " << device::cuda_device_count();
  }
  config.precision = config::Precision::fp32;
  config.steps = 6;
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const base::Status ran = gpu_test::on_gpus(config.ranks, [&](world::World& world) {
    const int me = world.rank();
    auto device = device::make_cuda_device(me, {base::DType::f32, base::DType::f32}, me);
    if (!device) throw base::Failure(device.error());
    const std::unique_ptr<comm::Backend> backend = comm::make_nccl_backend(world, *device.value());
    const world::FailureHook stop = world.on_failure([&backend] { backend->abort(); });
    device.value()->set_watch([&world] { world.throw_if_failed(); });
    train::Trainer trainer(config, *device.value(), *backend, mesh_of(config), me, &tokens);
    std::vector<double> losses;
    for (int step = 0; step < config.steps; ++step) {
      trainer.issue(step, step == 1);
      losses.push_back(trainer.await(step).loss);
    }
    EXPECT_EQ(device.value()->recorder().programs().size(), 1u) << "every step is the same program, traced or not";
    expect_program_of_meta(config, me, device.value()->recorder().program_hashes().back());
    if (me == 0) expect_losses_of_host(config, tokens, losses);
  });
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error());
}

INSTANTIATE_TEST_SUITE_P(TpTimesFsdp, OnGpus, testing::Values(std::tuple(1, 1, false), std::tuple(2, 1, false), std::tuple(1, 2, false), std::tuple(2, 2, false)));
INSTANTIATE_TEST_SUITE_P(WithTokensCut, OnGpus, testing::Values(std::tuple(2, 1, true), std::tuple(2, 2, true)));

}  // namespace
}  // namespace shardbook::tests
