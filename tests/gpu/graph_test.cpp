// Steps that a GPU is given by one launch are the steps that it is given op by op, to the bit; over several GPUs, too, whose
// launches hold collectives (SHARDBOOK_TEST_ONE_GPU=1: ranks that share one).
#include <gtest/gtest.h>

#include "engine/cli/calibrate_graph.hpp"
#include "tests/gpu/training_rank.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

using How = train::Trainer::How;

// Losses and norms of 20 steps, of which step 9 is traced; then this rank's masters, moments and copies, all end to end.
std::vector<double> trained(world::World& world, config::RunConfig config, bool graph) {
  config.steps = 20;
  config.switches["host.graph"] = graph ? "on" : "off";
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  gpu_test::TrainingRank rank(world, base::DType::bf16, {.in_graphs = true});
  device::Stream& stream = rank.device->create_stream("test");
  train::Trainer trainer(config, *rank.device, *rank.backend, mesh_of(config), world.rank(), &tokens);
  std::vector<double> all;
  const auto await = [&](int step) {
    const train::StepResult result = trainer.await(step);
    all.push_back(result.loss);
    all.push_back(result.gradient_norm);
  };
  int awaited = 0;
  for (int step = 0; step < config.steps; ++step) {
    // As in training: a traced step stands alone, and of others one is under way while the next is issued
    const bool timed = step == 9;
    while (timed && awaited < step) await(awaited++);
    const program::StepTimes& times = trainer.issue(step, timed);
    const How expected = !graph || step == 0 || timed ? How::one_by_one : step <= 2 ? How::captured : How::replayed;
    EXPECT_EQ(trainer.how(), expected) << step;
    if (timed) {
      for (const program::TimeSpan& ran : times.ran) EXPECT_GE(ran.end, ran.start);
    }
    if (step > 0 && awaited < step) await(awaited++);
  }
  while (awaited < config.steps) await(awaited++);
  EXPECT_EQ(rank.device->recorder().programs().size(), 1u);
  EXPECT_GE(trainer.graph().nodes, graph ? rank.device->recorder().programs()[0]->ops.size() : 0);
  rank.device->synchronize();
  for (const optimizer::ShardState& shard : trainer.shards()) {
    for (const tensor::Tensor* state : {&shard.master, &shard.first_moment, &shard.second_moment, &shard.parameter}) {
      std::vector<std::uint16_t> halves(static_cast<std::size_t>(state->storage_bytes() / 2));
      rank.device->download(stream, "read", tensor::memory_of(*state), halves.data());
      rank.device->synchronize();
      all.insert(all.end(), halves.begin(), halves.end());
    }
  }
  return all;
}

struct Form {
  int tp, fsdp, micro_batches;
  double dropout;
  bool flash;
  const char* key;     // of a switch, or ""
  const char* value;
};

class StepsAsAGraph : public testing::TestWithParam<Form> {};

TEST_P(StepsAsAGraph, OfGpusKeepEveryBit) {
  const Form form = GetParam();
  const int gpus = form.tp * form.fsdp;
  if (!gpu_test::has_gpus_for(gpus)) GTEST_SKIP() << gpu_test::lacks_gpus(gpus);
  const base::Status ran = gpu_test::on_gpus(gpus, [&](world::World& world) {
    config::RunConfig config = small_config(form.tp, form.fsdp);
    config.model.width = 128;
    config.model.head_dim = 32;
    config.warmup_steps = 5;
    config.micro_batches = form.micro_batches;
    config.hidden_dropout = config.attention_dropout = form.dropout;
    if (form.flash) config.attention = config::AttentionKind::flash;
    if (*form.key != 0) config.switches[form.key] = form.value;
    const std::vector<double> one_by_one = trained(world, config, false), as_graph = trained(world, config, true);
    EXPECT_GT(one_by_one.size(), 1000u);
    EXPECT_LT(one_by_one[38], one_by_one[0]) << "nothing is learnt";
    EXPECT_EQ(as_graph, one_by_one);
  });
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error());
}

INSTANTIATE_TEST_SUITE_P(OfOne, StepsAsAGraph,
                         testing::Values(Form{1, 1, 1, 0, false, "", ""}, Form{1, 1, 2, 0.1, false, "activations.recompute", "full"}, Form{1, 1, 1, 0.1, true, "", ""}));
INSTANTIATE_TEST_SUITE_P(OfTwo, StepsAsAGraph,
                         testing::Values(Form{2, 1, 1, 0, false, "", ""}, Form{1, 2, 2, 0.1, true, "", ""}, Form{2, 1, 1, 0.1, false, "tensor_parallel.sequence", "cut"},
                                         Form{1, 2, 1, 0, false, "fsdp.prefetch", "0"}, Form{1, 2, 1, 0, false, "fsdp.update", "by_unit"}));
// What calibrate asks of such graphs: captured, launched and told of again and again, and each rank is told the same. (How long they take no
// test says.)
TEST(CollectivesInAGraph, AreMeasuredAlikeOnAllRanks) {
  if (!gpu_test::has_gpus_for(2)) GTEST_SKIP() << gpu_test::lacks_gpus(2);
  const base::Status ran = gpu_test::on_gpus(2, [&](world::World& world) {
    gpu_test::TrainingRank rank(world, base::DType::bf16, {.in_graphs = true});
    const cli::CollectivesInGraph found = cli::collectives_in_graph(world, *rank.device, *rank.backend, base::Bytes{1} << 26);
    const std::vector<std::string> all = world.all_gather(base::text(found.gap_ns, " ", found.event_latency_ns));
    EXPECT_EQ(all[0], all[1]);
  });
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error());
}

INSTANTIATE_TEST_SUITE_P(OfFour, StepsAsAGraph, testing::Values(Form{2, 2, 1, 0.1, true, "", ""}));

}  // namespace
}  // namespace shardbook::tests
