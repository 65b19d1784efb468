// What a step issues: equal on every device, and as much of it as the formulas say.
#include <gtest/gtest.h>

#include <set>

#include "engine/comm/meta/meta.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

using program::OpKind;
using program::Phase;

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
  std::vector<base::Bytes> collectives(OpKind kind, const std::string& axis, Phase phase, int layer) {
    std::vector<base::Bytes> bytes;
    for (const program::Op& op : program().ops) {
      if (op.desc.kind != kind || op.key.phase != phase || op.key.layer != layer) continue;
      if (catalogue().groups[op.desc.collective.group].axis == axis) bytes.push_back(op.desc.collective.bytes);
    }
    return bytes;
  }
};

TEST(Program, IsTheSameOnHostAndMetaForEachLayout) {
  for (int tp : {1, 2, 4}) {
    for (int fsdp : {1, 2, 4}) {
      config::RunConfig config = small_config(tp, fsdp);
      config.steps = 2;
      const HostRun host = run_on_host(config, TestTokens(config.model.vocab, config.model.sequence));
      ASSERT_EQ(host.error, "");
      for (int rank = 0; rank < config.ranks; ++rank) {
        EXPECT_EQ(MetaStep(config, rank).hash(), host.program_hashes[static_cast<std::size_t>(rank)])
            << "tp " << tp << ", fsdp " << fsdp << ", rank " << rank;
      }
    }
  }
}

TEST(Program, OfAnotherLayoutIsAnother) {
  EXPECT_NE(MetaStep(small_config(2, 1), 0).hash(), MetaStep(small_config(1, 2), 0).hash());
  config::RunConfig later = small_config(2, 2);
  later.prefetch = 2;
  EXPECT_NE(MetaStep(small_config(2, 2), 0).hash(), MetaStep(later, 0).hash());
}

TEST(Counts, TensorParallelReducesTwiceForwardAndTwiceBackwardABlock) {
  for (int tp : {2, 4}) {
    const config::RunConfig config = small_config(tp, 2);
    MetaStep step(config, 0);
    const base::Bytes activations = config.tokens_per_micro_batch() * config.model.width * 2;  // N · D, bf16
    for (int layer = 0; layer < config.model.layers; ++layer) {
      EXPECT_EQ(step.collectives(OpKind::all_reduce, "tp", Phase::forward, layer), (std::vector<base::Bytes>{activations, activations}));
      EXPECT_EQ(step.collectives(OpKind::all_reduce, "tp", Phase::backward, layer), (std::vector<base::Bytes>{activations, activations}));
    }
  }
}

TEST(Counts, FsdpGathersABlockTwiceAndReducesItOnce) {
  for (int tp : {1, 2}) {
    const config::RunConfig config = small_config(tp, 4);
    MetaStep step(config, 1);
    const std::int64_t d = config.model.width, f = config.model.ffn_width;
    // A block's parameters on this tp rank: norms and row biases whole, the rest cut.
    const std::int64_t parameters = 4 * d + 2 * d + (3 * d * d + 3 * d + d * d + 2 * d * f + f) / tp;
    const base::Bytes padded = (parameters + 4 * 64 - 1) / (4 * 64) * (4 * 64);
    for (int layer = 0; layer < config.model.layers; ++layer) {
      EXPECT_EQ(step.collectives(OpKind::all_gather, "dp_shard", Phase::forward, layer), (std::vector<base::Bytes>{padded * 2}));
      EXPECT_EQ(step.collectives(OpKind::all_gather, "dp_shard", Phase::backward, layer), (std::vector<base::Bytes>{padded * 2}));
      EXPECT_EQ(step.collectives(OpKind::reduce_scatter, "dp_shard", Phase::backward, layer), (std::vector<base::Bytes>{padded * 4}));
      EXPECT_TRUE(step.collectives(OpKind::all_reduce, "dp_shard", Phase::backward, layer).empty());
    }
  }
}

TEST(Counts, WithoutReshardABlockIsGatheredOnce) {
  config::RunConfig config = small_config(1, 4);
  config.reshard = false;
  MetaStep step(config, 0);
  EXPECT_EQ(step.collectives(OpKind::all_gather, "dp_shard", Phase::forward, 1).size(), 1u);
  EXPECT_EQ(step.collectives(OpKind::all_gather, "dp_shard", Phase::backward, 1).size(), 0u);
}

TEST(Counts, EveryMicroBatchGathersAndReducesAnew) {
  config::RunConfig config = small_config(1, 2);
  config.micro_batches = 2;
  MetaStep step(config, 0);
  EXPECT_EQ(step.collectives(OpKind::all_gather, "dp_shard", Phase::forward, 0).size(), 2u);
  EXPECT_EQ(step.collectives(OpKind::reduce_scatter, "dp_shard", Phase::backward, 0).size(), 2u);
}

TEST(Record, NamesTheLinesOfTheRoomsThatDecide) {
  MetaStep step(small_config(2, 2), 0);
  std::set<std::uint32_t> lines_of_gathers;
  for (const program::Command& command : step.program().commands) {
    if (command.kind != program::CommandKind::op) continue;
    const program::Op& op = step.program().ops[command.op];
    const std::string issued = command.where.file, planned = command.planned.file;
    if (op.desc.kind == OpKind::all_gather) {
      EXPECT_TRUE(issued.ends_with("engine/fsdp/parameters.cpp")) << issued;
      EXPECT_TRUE(planned.ends_with("engine/fsdp/schedule.cpp")) << planned;
      EXPECT_TRUE(command.planned_leads);
      lines_of_gathers.insert(command.planned.line);
    }
    if (op.desc.kind == OpKind::all_reduce && op.key.layer >= 0) {
      EXPECT_TRUE(issued.ends_with("engine/tensor_parallel/regions.cpp")) << issued;
      EXPECT_TRUE(planned.ends_with("engine/plan/passes.cpp")) << planned;
      EXPECT_FALSE(command.planned_leads);
    }
  }
  // A gather that is needed now and one that is made ahead are told apart.
  EXPECT_EQ(lines_of_gathers.size(), 2u);
}

TEST(Record, EveryGatherWaitsForTheLastUserOfItsSlot) {
  MetaStep step(small_config(1, 4), 0);
  std::set<program::OpIndex> awaits_reuse;
  for (const program::Edge& edge : program::edges(step.program())) {
    if (edge.kind == program::EdgeKind::buffer_reuse) awaits_reuse.insert(edge.to);
  }
  // Forward fills both slots for the first time in the step; every gather of a block in backward comes second.
  int gathers = 0;
  for (program::OpIndex at = 0; at < step.program().ops.size(); ++at) {
    const program::Op& op = step.program().ops[at];
    if (op.desc.kind != OpKind::all_gather || op.key.layer < 0 || op.key.phase != Phase::backward) continue;
    ++gathers;
    EXPECT_TRUE(awaits_reuse.contains(at)) << "layer " << op.key.layer;
  }
  EXPECT_EQ(gathers, 2);
}

}  // namespace
}  // namespace shardbook::tests
