// What a step issues: the same on every device, with the lines of the rooms that decided it.
#include <gtest/gtest.h>

#include <set>

#include "engine/config/switches.hpp"
#include "tests/train/meta_step.hpp"

namespace shardbook::tests {
namespace {

using program::OpKind;
using program::Phase;

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

TEST(Record, NamesTheBlocksOfAUnitThatHasSeveral) {
  config::RunConfig config = small_config(1, 2);
  config.model.layers = 4;
  ASSERT_TRUE(config::set_switch(config, "fsdp.blocks_a_unit=2"));
  MetaStep step(config, 0);
  std::map<std::string, std::set<int>> layers_of;
  for (const program::Op& op : step.program().ops) {
    if (std::string_view(op.key.part).starts_with("fsdp_unit")) layers_of[op.key.part].insert(op.key.layer);
  }
  EXPECT_EQ(layers_of, (std::map<std::string, std::set<int>>{{"fsdp_unit", {-1}}, {"fsdp_unit 0-1", {0}}, {"fsdp_unit 2-3", {2}}}));
  std::vector<std::string> names;
  for (const plan::Unit& unit : step.trainer->network().units) names.push_back(unit.name);
  EXPECT_EQ(names, (std::vector<std::string>{"root", "blocks.0-1", "blocks.2-3"}));
  ASSERT_TRUE(config::set_switch(config, "fsdp.blocks_a_unit=3"));
  MetaStep uneven(config, 0);
  EXPECT_EQ(uneven.trainer->network().units[1].name, "blocks.0-2");
  EXPECT_EQ(uneven.trainer->network().units[2].name, "blocks.3");
}

TEST(Record, NamesTheLinesOfTheRoomsThatDecide) {
  MetaStep step(small_config(2, 2), 0);
  std::set<std::uint32_t> lines_of_gathers, lines_of_sums;
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
      EXPECT_TRUE(planned.ends_with("engine/model/block.cpp")) << planned;
      EXPECT_TRUE(command.planned_leads);
      lines_of_sums.insert(command.planned.line);
    }
  }
  // Two sums of forward and two of backward: each has its line of the block.
  EXPECT_EQ(lines_of_sums.size(), 4u);
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
