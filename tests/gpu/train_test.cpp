// Steps on GPUs are the steps that the host and meta issue, with the same numbers.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "engine/comm/meta/meta.hpp"
#include "engine/config/switches.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "tests/gpu/training_rank.hpp"
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

// tp, fsdp, whether tp ranks cut the tokens between the linears, and how much is dropped (by the same masks as on the host).
class OnGpus : public testing::TestWithParam<std::tuple<int, int, bool, double>> {};

TEST_P(OnGpus, AStepIssuesTheProgramOfMetaAndFollowsTheLossesOfTheHost) {
  const auto [tp, fsdp, cut, dropout] = GetParam();
  config::RunConfig config = cut ? with_tokens_cut(small_config(tp, fsdp)) : small_config(tp, fsdp);
  config.hidden_dropout = config.attention_dropout = dropout;
  if (!gpu_test::has_gpus_for(config.ranks)) GTEST_SKIP() << gpu_test::lacks_gpus(config.ranks);
  config.precision = config::Precision::fp32;
  config.steps = 6;
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const base::Status ran = gpu_test::on_gpus(config.ranks, [&](world::World& world) {
    const int me = world.rank();
    gpu_test::TrainingRank rank(world, base::DType::f32);
    train::Trainer trainer(config, *rank.device, *rank.backend, mesh_of(config), me, &tokens);
    std::vector<double> losses;
    for (int step = 0; step < config.steps; ++step) {
      trainer.issue(step, step == 1);
      losses.push_back(trainer.await(step).loss);
    }
    EXPECT_EQ(rank.device->recorder().programs().size(), 1u) << "every step is the same program, traced or not";
    expect_program_of_meta(config, me, rank.device->recorder().program_hashes().back());
    if (me == 0) expect_losses_of_host(config, tokens, losses);
  });
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error());
}

// ---- Gradients that cross the network in bf16 -------------------------------------------------

// An f32 as the nearest bf16, ties to even.
double to_bf16(double value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return std::bit_cast<float>((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000u);
}

// This rank's shards of the gradient after the first step, end to end.
std::vector<double> gradient_shards(world::World& world, config::RunConfig config, const TestTokens& tokens, const std::string& reduce_dtype) {
  config.switches["fsdp.reduce_dtype"] = reduce_dtype;
  gpu_test::TrainingRank rank(world);
  device::Stream& stream = rank.device->create_stream("test");
  train::Trainer trainer(config, *rank.device, *rank.backend, mesh_of(config), world.rank(), &tokens);
  trainer.issue(0, false);
  trainer.await(0);
  rank.device->synchronize();
  std::vector<double> all;
  for (const optimizer::ShardState& shard : trainer.shards()) {
    std::vector<float> values(static_cast<std::size_t>(shard.gradient.elements()));
    rank.device->download(stream, "read", tensor::memory_of(shard.gradient), values.data());
    rank.device->synchronize();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// What each of two ranks brings is found by itself: where both have the same sequences, the sum in f32 is twice that, and
// exact. So the sum in bf16 is known to the bit: each summand is rounded once, and so is the one sum of two. Of n ranks on a
// ring there are n - 1 sums, each rounded (NVIDIA/nccl@0180f9ab, src/device/reduce_kernel.h: __hadd2), so an element errs by at most
// n · 2⁻⁸ Σ|summand|, to first order.
TEST(GradientsInBf16, OfTwoGpusAreRoundedOnceEachAndOnceTheirSumToTheBit) {
  if (!gpu_test::has_gpus_for(2)) GTEST_SKIP() << gpu_test::lacks_gpus(2);
  const base::Status ran = gpu_test::on_gpus(2, [&](world::World& world) {
    config::RunConfig config = small_config(1, 2);
    config.precision = config::Precision::fp32;
    TestTokens tokens(config.model.vocab, config.model.sequence);
    // Both ranks have the sequences of the first, of the second, or each its own
    const int own = config.sequences / 2;
    const auto sum_of = [&](const std::function<int(int)>& which, const char* dtype) {
      tokens.permutation.clear();
      for (int row = 0; row < config.sequences; ++row) tokens.permutation.push_back(which(row));
      return gradient_shards(world, config, tokens, dtype);
    };
    const std::vector<double> twice_first = sum_of([&](int row) { return row % own; }, "fp32");
    const std::vector<double> twice_second = sum_of([&](int row) { return own + row % own; }, "fp32");
    const std::vector<double> wide = sum_of([](int row) { return row; }, "fp32"), narrow = sum_of([](int row) { return row; }, "bf16");
    ASSERT_EQ(narrow.size(), wide.size());
    std::size_t rounded = 0;
    for (std::size_t at = 0; at < wide.size(); ++at) {
      const double first = twice_first[at] / 2, second = twice_second[at] / 2;
      rounded += narrow[at] != wide[at];
      // Numbers so small that an adder may take them for 0 are left out
      ASSERT_NEAR(narrow[at], to_bf16(to_bf16(first) + to_bf16(second)), 0x1p-120) << at;
      ASSERT_LE(std::abs(narrow[at] - wide[at]), 2.01 * 0x1p-8 * (std::abs(first) + std::abs(second)) + 0x1p-120) << at;
    }
    EXPECT_GT(rounded, wide.size() / 2) << "half of the bytes, and nothing was rounded?";
  });
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error());
}

// Two ranks and two micro-batches that are all alike: three sums that only double, of which the last is in f32. What is left
// is one rounding.
TEST(GradientsInBf16, OfEqualMicroBatchesAreThoseOfF32RoundedOnce) {
  if (!gpu_test::has_gpus_for(2)) GTEST_SKIP() << gpu_test::lacks_gpus(2);
  const base::Status ran = gpu_test::on_gpus(2, [&](world::World& world) {
    config::RunConfig config = small_config(1, 2);
    config.precision = config::Precision::fp32;
    config.micro_batches = 2;
    TestTokens tokens(config.model.vocab, config.model.sequence);
    for (int row = 0; row < config.sequences; ++row) tokens.permutation.push_back(row % (config.sequences / 4));
    const std::vector<double> wide = gradient_shards(world, config, tokens, "fp32"), narrow = gradient_shards(world, config, tokens, "bf16");
    ASSERT_EQ(narrow.size(), wide.size());
    for (std::size_t at = 0; at < wide.size(); ++at) ASSERT_NEAR(narrow[at], to_bf16(wide[at]), 0x1p-120) << at;
  });
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error());
}

// ---- States in host memory ----------------------------------------------------------------------

// Of a traced step: the CPU's update of each shard takes time, one after the other, once it has the clip factor. One that had
// ended when its launch call returned has no length: what came before that return is not counted (device::cuda::SpanTimer).
void expect_the_cpus_update(const program::Program& program, const program::StepTimes& times) {
  base::Nanoseconds after = 0, last_copy = 0;
  int updates = 0;
  for (std::size_t at = 0; at < program.commands.size(); ++at) {
    if (program.commands[at].kind != program::CommandKind::op) continue;
    const program::OpIndex op = program.commands[at].op;
    const std::string_view name = program.ops[op].desc.name;
    if (name == "to_host" && program.ops[op].desc.bytes_read == 4) last_copy = times.ran[op].end;
    if (name != "adam_w_on_host") continue;
    EXPECT_GE(times.ran[op].start, std::max(after, last_copy) - 20'000);   // two streams' clocks
    if (times.ran[op].end > times.issued[at].end) {
      EXPECT_GT(times.ran[op].end, times.ran[op].start);
    } else {
      EXPECT_GE(times.ran[op].end, times.ran[op].start);
    }
    after = times.ran[op].end;
    ++updates;
  }
  EXPECT_GT(updates, 0);
}

// Losses and norms, and this rank's masters, moments and, where it keeps them, copies after the last step, all end to end.
std::vector<double> trained(world::World& world, config::RunConfig config, const TestTokens& tokens, const std::string& offload) {
  config.switches["fsdp.offload"] = offload;
  gpu_test::TrainingRank rank(world);
  device::Stream& stream = rank.device->create_stream("test");
  train::Trainer trainer(config, *rank.device, *rank.backend, mesh_of(config), world.rank(), &tokens);
  std::vector<double> all;
  for (int step = 0; step < config.steps; ++step) {
    const program::StepTimes& times = trainer.issue(step, step == 2);
    EXPECT_EQ(rank.device->recorder().host_waits(), 0);
    if (step == 2 && offload == "parameters") expect_the_cpus_update(*rank.device->recorder().programs()[0], times);
    const train::StepResult result = trainer.await(step);
    all.push_back(result.loss);
    all.push_back(result.gradient_norm);
  }
  EXPECT_EQ(rank.device->recorder().programs().size(), 1u);
  const program::Recorder& recorder = rank.device->recorder();
  device::MetaDevice nowhere(world.rank());
  const std::unique_ptr<comm::Backend> without = comm::make_meta_backend();
  train::Trainer on_meta(config, nowhere, *without, mesh_of(config), world.rank(), nullptr);
  on_meta.issue(0, true);
  EXPECT_EQ(program::structure_hash(*recorder.programs().back(), recorder.catalogue()), program::structure_hash(*nowhere.recorder().programs()[0], nowhere.recorder().catalogue()));
  rank.device->synchronize();
  for (const optimizer::ShardState& shard : trainer.shards()) {
    for (const tensor::Tensor* state : {&shard.master, &shard.first_moment, &shard.second_moment}) {
      std::vector<float> values(static_cast<std::size_t>(state->elements()));
      rank.device->download(stream, "read", tensor::memory_of(*state), values.data());
      rank.device->synchronize();
      all.insert(all.end(), values.begin(), values.end());
    }
    if (!shard.parameter.exists()) continue;
    std::vector<std::uint16_t> copy(static_cast<std::size_t>(shard.parameter.elements()));
    rank.device->download(stream, "read", tensor::memory_of(shard.parameter), copy.data());
    rank.device->synchronize();
    all.insert(all.end(), copy.begin(), copy.end());
  }
  return all;
}

TEST(StatesInHostMemory, OfTwoGpusBecomeTheSameBits) {
  if (!gpu_test::has_gpus_for(2)) GTEST_SKIP() << gpu_test::lacks_gpus(2);
  const base::Status ran = gpu_test::on_gpus(2, [&](world::World& world) {
    config::RunConfig config = small_config(1, 2);
    config.model.layers = 6;   // seven pieces, so that slots are used again
    config.steps = 8;
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const std::vector<double> here = trained(world, config, tokens, "none"), there = trained(world, config, tokens, "optimizer");
    EXPECT_GT(here.size(), 1000u);
    EXPECT_LT(here[14], here[0]);
    EXPECT_EQ(there, here);
  });
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error());
}

// What takes less memory gives the same bits: losses and norms of eight steps, and where both runs keep the same, all of it.
struct LessMemory {
  int ranks;
  const char* sets[3];
};
class OfLessMemory : public ::testing::TestWithParam<LessMemory> {};

TEST_P(OfLessMemory, OfGpusBecomeTheSameBits) {
  const LessMemory& form = GetParam();
  if (!gpu_test::has_gpus_for(form.ranks)) GTEST_SKIP() << gpu_test::lacks_gpus(form.ranks);
  const base::Status ran = gpu_test::on_gpus(form.ranks, [&](world::World& world) {
    config::RunConfig config = small_config(1, form.ranks), less = config;
    config.model.layers = less.model.layers = 6;
    config.steps = less.steps = 8;
    for (const char* set : form.sets) {
      if (set == nullptr) continue;
      ASSERT_TRUE(config::set_switch(less, set)) << set;
    }
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const std::vector<double> usual = trained(world, config, tokens, "none"), found = trained(world, less, tokens, "none");
    const std::size_t scalars = 2 * static_cast<std::size_t>(config.steps);
    const bool copies = found.size() == usual.size();
    ASSERT_GT(usual.size(), 1000u);
    EXPECT_EQ(std::vector<double>(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(scalars)), std::vector<double>(usual.begin(), usual.begin() + static_cast<std::ptrdiff_t>(scalars)));
    if (copies) {
      EXPECT_EQ(found, usual);
    }
  });
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error());
}

INSTANTIATE_TEST_SUITE_P(Switches, OfLessMemory,
                         testing::Values(LessMemory{1, {"loss.kernel=fused", nullptr, nullptr}}, LessMemory{1, {"activations.recompute=cheap", nullptr, nullptr}}, LessMemory{2, {"activations.recompute=cheap", nullptr, nullptr}},
                                         LessMemory{2, {"fsdp.parameter_copy=made", nullptr, nullptr}}, LessMemory{2, {"fsdp.gradient_memory=lent", nullptr, nullptr}},
                                         LessMemory{2, {"activations.recompute=cheap", "fsdp.parameter_copy=made", "fsdp.gradient_memory=lent"}}));

// Norm, update and next gather of each unit by itself: where nothing is clipped, the norm's last bits alone may differ.
TEST(UpdatesByUnit, OfTwoGpusChangeNoBitButTheNorms) {
  if (!gpu_test::has_gpus_for(2)) GTEST_SKIP() << gpu_test::lacks_gpus(2);
  const base::Status ran = gpu_test::on_gpus(2, [](world::World& world) {
    for (const char* other : {"fsdp.prefetch=1", "fsdp.parameter_copy=made", "fsdp.reshard=false", "fsdp.offload=optimizer"}) {
      config::RunConfig whole = small_config(1, 2);
      whole.model.layers = 6;
      whole.steps = 8;
      whole.clip = 0;
      ASSERT_TRUE(config::set_switch(whole, other)) << other;
      config::RunConfig by_unit = whole;
      ASSERT_TRUE(config::set_switch(by_unit, "fsdp.update=by_unit"));
      const TestTokens tokens(whole.model.vocab, whole.model.sequence);
      const std::string offload = config::switch_value(whole, "fsdp.offload");
      std::vector<double> usual = trained(world, whole, tokens, offload), found = trained(world, by_unit, tokens, offload);
      ASSERT_GT(usual.size(), 1000u);
      ASSERT_EQ(found.size(), usual.size());
      for (std::size_t norm = 1; norm < 2 * static_cast<std::size_t>(whole.steps); norm += 2) {
        EXPECT_NEAR(found[norm], usual[norm], 1e-5 * usual[norm]);
        found[norm] = usual[norm];
      }
      EXPECT_EQ(found, usual) << other;
    }
  });
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error());
}

// The CPU's update, its sums of micro-batches and its rounding to bf16 give the GPU's bits, with gradients that are clipped
// (a norm of 0.01) and such that are not, in the bytes and in the norm; alone, sharded, and cut over tp.
struct HostForm {
  int tp, fsdp, micro_batches;
  double clip;
  const char* set;
};
class ShardsInHostMemory : public ::testing::TestWithParam<HostForm> {};

TEST_P(ShardsInHostMemory, OfGpusBecomeTheSameBitsByTheCpu) {
  const HostForm form = GetParam();
  const int gpus = form.tp * form.fsdp;
  if (!gpu_test::has_gpus_for(gpus)) GTEST_SKIP() << gpu_test::lacks_gpus(gpus);
  const base::Status ran = gpu_test::on_gpus(gpus, [&](world::World& world) {
    config::RunConfig config = small_config(form.tp, form.fsdp);
    config.model.layers = 6;
    config.steps = 8;
    config.micro_batches = form.micro_batches;
    config.sequences = 4 * form.micro_batches * form.fsdp;
    config.clip = form.clip;
    if (*form.set != 0) {
      ASSERT_TRUE(config::set_switch(config, form.set));
    }
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const std::vector<double> here = trained(world, config, tokens, "none"), there = trained(world, config, tokens, "parameters");
    EXPECT_GT(here.size(), 1000u);
    EXPECT_EQ(there, here) << form.set;
  });
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error());
}

INSTANTIATE_TEST_SUITE_P(Forms, ShardsInHostMemory,
                         testing::Values(HostForm{1, 1, 1, 0.01, ""}, HostForm{1, 1, 2, 0, ""}, HostForm{1, 2, 1, 0.01, ""}, HostForm{1, 2, 3, 0.01, ""},
                                         HostForm{2, 1, 2, 1, "tensor_parallel.sequence=cut"}, HostForm{1, 2, 2, 1, "fsdp.reduce_dtype=bf16"},
                                         HostForm{1, 2, 2, 1, "fsdp.sharding=per_parameter"}, HostForm{1, 2, 3, 1, "accumulate.reduce=last"}));
INSTANTIATE_TEST_SUITE_P(TpTimesFsdp, OnGpus, testing::Values(std::tuple(1, 1, false, 0.0), std::tuple(2, 1, false, 0.0), std::tuple(1, 2, false, 0.0), std::tuple(2, 2, false, 0.0)));
INSTANTIATE_TEST_SUITE_P(WithTokensCut, OnGpus, testing::Values(std::tuple(2, 1, true, 0.0), std::tuple(2, 2, true, 0.0)));
INSTANTIATE_TEST_SUITE_P(WithDropout, OnGpus, testing::Values(std::tuple(1, 1, false, 0.1), std::tuple(2, 1, false, 0.1), std::tuple(2, 1, true, 0.1)));

}  // namespace
}  // namespace shardbook::tests
