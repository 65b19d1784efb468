// A run on GPUs goes on from a checkpoint to the bit, in bf16 with fp32 masters, though the copy runs beside the next step.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "engine/checkpoint/folder.hpp"
#include "engine/checkpoint/saver.hpp"
#include "engine/config/switches.hpp"
#include "tests/gpu/training_rank.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

using Numbers = std::vector<std::pair<double, double>>;   // loss and gradient norm of each step

// Steps from `config.resume`, or from first values, to the last; saves what `save_after` steps leave, if that is one of them.
Numbers numbers_of(world::World& world, const config::RunConfig& config, const TestTokens& tokens, std::int64_t save_after) {
  gpu_test::TrainingRank rank(world);
  train::Trainer trainer(config, *rank.device, *rank.backend, mesh_of(config), world.rank(), &tokens);
  checkpoint::Saver saver({config.checkpoint, "test", world.rank(), config.ranks, 0});
  std::int64_t step = 0;
  if (!config.resume.empty()) {
    const base::Result<checkpoint::Found> found = checkpoint::find(config.resume);
    if (!found) throw base::Failure(found.error());
    step = found.value().manifest.step;
    if (base::Status restored = trainer.state()->restore(found.value().manifest, found.value().path); !restored) throw base::Failure(restored.error());
  }
  Numbers numbers;
  for (; step < config.steps; ++step) {
    trainer.issue(step, false);
    if (step + 1 == save_after) trainer.state()->take();
    // The step after has been issued by the time that its copy is awaited
    if (step == save_after) {
      trainer.state()->await_taken();
      saver.begin(save_after, "{}", trainer.state()->written());
    }
    const train::StepResult result = trainer.await(step);
    numbers.emplace_back(result.loss, result.gradient_norm);
  }
  saver.wait([&world] { world.throw_if_failed(); });
  if (base::Status saved = saver.status(); !saved) throw base::Failure(saved.error());
  world.barrier();
  return numbers;
}

class CheckpointsOnGpus : public testing::TestWithParam<std::tuple<int, int, const char*>> {};

TEST_P(CheckpointsOnGpus, AreGoneOnFromToTheBit) {
  const auto [tp, fsdp, set] = GetParam();
  config::RunConfig config = small_config(tp, fsdp);
  if (*set != 0) {
    ASSERT_TRUE(config::set_switch(config, set));
  }
  if (!gpu_test::has_gpus_for(config.ranks)) GTEST_SKIP() << gpu_test::lacks_gpus(config.ranks);
  config.hidden_dropout = 0.1;
  config.steps = 8;
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const base::Status ran = gpu_test::on_gpus(config.ranks, [&](world::World& world) {
    std::string folder = (std::filesystem::temp_directory_path() / "shardbook-checkpoint-XXXXXX").string();
    if (world.rank() == 0 && ::mkdtemp(folder.data()) == nullptr) throw base::Failure("no folder can be made");
    folder = world.broadcast(folder, 0);
    config.checkpoint = folder;
    const Numbers whole = numbers_of(world, config, tokens, 4);
    config.resume = folder;
    const Numbers later = numbers_of(world, config, tokens, -1);
    EXPECT_EQ(later, Numbers(whole.begin() + 4, whole.end()));
    world.barrier();
    if (world.rank() == 0) std::filesystem::remove_all(folder);
  });
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error());
}

INSTANTIATE_TEST_SUITE_P(Layouts, CheckpointsOnGpus,
                         testing::Values(std::tuple{1, 1, ""}, std::tuple{1, 2, ""}, std::tuple{2, 1, ""}, std::tuple{1, 2, "fsdp.offload=optimizer"}, std::tuple{2, 2, ""}));

}  // namespace
}  // namespace shardbook::tests
