// What placements say of parameters is what ranks hold and sum: no element is counted twice, and none is forgotten.
#include <gtest/gtest.h>

#include <map>

#include "engine/comm/meta/meta.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

// All ranks of a layout on no device: of which global elements each keeps the numbers, and which of these it counts.
struct Held {
  std::map<std::string, std::vector<int>> counted, kept;   // by parameter and global element: by so many ranks
};

Held held_by_all(const config::RunConfig& config) {
  Held held;
  const mesh::Mesh mesh = mesh_of(config);
  for (int rank = 0; rank < config.ranks; ++rank) {
    device::MetaDevice device(rank);
    const auto backend = comm::make_meta_backend();
    train::Trainer trainer(config, device, *backend, mesh, rank, nullptr);
    shard::Place place;
    for (const char* axis : {"tp", "dp_shard", "dp_replicate"}) place.push_back({axis, mesh.coordinate(rank, axis)});
    std::map<std::string, const model::Parameter*> by_name;
    for (const model::Parameter* parameter : trainer.model().parameters()) by_name[parameter->name] = parameter;
    for (const optimizer::ShardState& shard : trainer.shards()) {
      for (const shard::Piece& piece : shard.layout->pieces(shard.flat)) {
        const shard::FlatParameter& known = shard.layout->parameters()[static_cast<std::size_t>(piece.parameter)];
        const model::Parameter& parameter = *by_name.at(known.name);
        std::vector<int>&counted = held.counted[known.name], &kept = held.kept[known.name];
        counted.resize(static_cast<std::size_t>(parameter.global_shape.elements()));
        kept.resize(counted.size());
        const int counts_here = shard::counts(known.placement, place) ? 1 : 0;
        by_rows(parameter, piece.elements, [&](std::int64_t, std::int64_t global, std::int64_t count) {
          for (std::int64_t i = global; i < global + count; ++i) {
            ++kept[static_cast<std::size_t>(i)];
            counted[static_cast<std::size_t>(i)] += counts_here;
          }
        });
      }
    }
    // A unit's gradient is summed over the groups whose ranks see other tokens: over tp where it has norms, or positions
    for (const plan::Unit& unit : trainer.network().units) {
      std::vector<std::string> groups;
      const bool all_cut = config.model.architecture == config::Architecture::llama && unit.name == "embedding";
      if (config.switches.contains("tensor_parallel.sequence") && !all_cut) groups.push_back("tp");
      if (config.fsdp > 1) groups.push_back("dp_shard");
      if (config.dp > 1) groups.push_back("dp_replicate");
      EXPECT_EQ(unit.sums, groups) << unit.name;
    }
  }
  return held;
}

TEST(Placements, OfEveryLayoutLetOneRankCountEachElementThatSomeKeep) {
  for (bool llama : {false, true}) {
    for (bool cut : {false, true}) {
      for (int tp : {1, 2, 4}) {
        for (int fsdp : {1, 2}) {
          for (int dp : {1, 2}) {
            if (cut && tp == 1) continue;
            config::RunConfig config = llama ? small_llama(tp, fsdp) : small_config(tp, fsdp);
            config.dp = dp;
            config.ranks = tp * fsdp * dp;
            if (cut) config = with_tokens_cut(config);
            const Held held = held_by_all(config);
            for (const auto& [name, counted] : held.counted) {
              ASSERT_EQ(counted, std::vector<int>(counted.size(), 1)) << name << " under tp " << tp << ", fsdp " << fsdp << ", dp " << dp;
              // Norms, row biases and positions are kept by all tp ranks; the rest is cut
              const bool alike = name.find("norm") != name.npos || name.ends_with("projection.bias") || name.ends_with("down.bias") || name.starts_with("embedding.position");
              ASSERT_EQ(held.kept.at(name), std::vector<int>(counted.size(), dp * (alike ? tp : 1))) << name;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardbook::tests
