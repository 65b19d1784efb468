// Who am I among the ranks: regular meshes, joined axes, and groups given one by one.
#include "engine/mesh/near.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engine/base/check.hpp"

namespace shardbook::mesh {
namespace {

using Ranks = std::vector<base::Rank>;

TEST(DenseMesh, PutsTheRanksOfATensorParallelGroupSideBySide) {
  const Mesh mesh = Mesh::dense({.dp_shard = 4, .tp = 2});
  EXPECT_EQ(mesh.world_size(), 8);
  EXPECT_EQ(mesh.groups("tp"), (std::vector<Ranks>{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(mesh.groups("dp_shard"), (std::vector<Ranks>{{0, 2, 4, 6}, {1, 3, 5, 7}}));
}

// The example in the head of Megatron's parallel_state.py: 16 GPUs, tensor 2, pipeline 4, so data 2.
TEST(DenseMesh, GivesTheGroupsOfMegatronsOwnExample) {
  const Mesh mesh = Mesh::dense({.pp = 4, .dp_shard = 2, .tp = 2});
  EXPECT_EQ(mesh.groups("dp_shard"),
            (std::vector<Ranks>{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(mesh.groups("pp"),
            (std::vector<Ranks>{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
}

TEST(DenseMesh, TellsEachRankItsGroupAndItsPlaceInIt) {
  const Mesh mesh = Mesh::dense({.dp_shard = 4, .tp = 2});
  const Group tp = mesh.group(5, "tp");
  EXPECT_EQ(tp.axis, "tp");
  EXPECT_EQ(tp.ranks, (Ranks{4, 5}));
  EXPECT_EQ(tp.index_of_me, 1);
  EXPECT_EQ(tp.number, 2);
  const Group fsdp = mesh.group(5, "dp_shard");
  EXPECT_EQ(fsdp.ranks, (Ranks{1, 3, 5, 7}));
  EXPECT_EQ(fsdp.index_of_me, 2);
  EXPECT_EQ(fsdp.number, 1);
}

// Two nodes of eight: runs of four of eight that shard, beside each other on their node.
TEST(NearGroup, IsARunOfNeighboursOfAGroup) {
  const Mesh mesh = Mesh::dense({.dp_shard = 8, .tp = 2});
  const Group near = near_group(mesh.group(11, "dp_shard"), 4);
  EXPECT_EQ(near.axis, "dp_shard_near");
  EXPECT_EQ(near.ranks, (Ranks{9, 11, 13, 15}));
  EXPECT_EQ(near.index_of_me, 1);
  // Numbers tell all runs of the axis apart, as a split of communicators asks
  std::map<int, Ranks> by_number;
  for (base::Rank rank = 0; rank < 16; ++rank) {
    const Group of = near_group(mesh.group(rank, "dp_shard"), 4);
    EXPECT_EQ(of.ranks[static_cast<std::size_t>(of.index_of_me)], rank);
    EXPECT_EQ(by_number.try_emplace(of.number, of.ranks).first->second, of.ranks);
  }
  EXPECT_EQ(by_number, (std::map<int, Ranks>{{0, {0, 2, 4, 6}}, {1, {8, 10, 12, 14}}, {2, {1, 3, 5, 7}}, {3, {9, 11, 13, 15}}}));
}

TEST(DenseMesh, IsOneRankWhenNothingIsCut) {
  const Mesh mesh = Mesh::dense({});
  EXPECT_EQ(mesh.world_size(), 1);
  EXPECT_EQ(mesh.axes(), (std::vector<std::string>{"pp", "dp_replicate", "dp_shard", "cp", "tp"}));
  EXPECT_EQ(mesh.group(0, "cp").ranks, Ranks{0});
}

TEST(DenseMesh, TurnsCoordinatesIntoRanksAndBack) {
  const Mesh mesh = Mesh::dense({.pp = 2, .dp_replicate = 3, .dp_shard = 2, .cp = 2, .tp = 4});
  for (base::Rank rank = 0; rank < mesh.world_size(); ++rank) {
    EXPECT_EQ(mesh.rank_at(mesh.coordinates(rank)), rank);
  }
  EXPECT_EQ(mesh.rank_at({0, 0, 0, 0, 3}), 3);
  EXPECT_EQ(mesh.rank_at({1, 0, 0, 0, 0}), 48);
}

TEST(DenseMesh, PartitionsTheWorldAlongEveryAxis) {
  const Mesh mesh = Mesh::dense({.pp = 2, .dp_replicate = 3, .dp_shard = 2, .cp = 2, .tp = 4});
  for (const std::string& axis : mesh.axes()) {
    Ranks all;
    for (const Ranks& group : mesh.groups(axis)) {
      EXPECT_EQ(static_cast<int>(group.size()), mesh.size(axis)) << axis;
      EXPECT_TRUE(std::is_sorted(group.begin(), group.end())) << axis;
      all.insert(all.end(), group.begin(), group.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, mesh.world(0).ranks) << axis;
  }
}

TEST(JoinedAxes, HoldTheRanksThatAgreeOnAllOtherAxes) {
  const Mesh mesh = Mesh::dense({.dp_shard = 2, .cp = 2, .tp = 2});
  const Group group = mesh.joined_group(3, {"dp_shard", "cp"});
  EXPECT_EQ(group.axis, "dp_shard+cp");
  EXPECT_EQ(group.ranks, (Ranks{1, 3, 5, 7}));
  EXPECT_EQ(group.index_of_me, 1);
  EXPECT_EQ(group.number, 1);
  EXPECT_EQ(mesh.joined_group(3, {"pp", "dp_replicate", "dp_shard", "cp", "tp"}).ranks, mesh.world(3).ranks);
}

TEST(JoinedAxes, OfOneAxisAreThatAxis) {
  const Mesh mesh = Mesh::dense({.dp_shard = 3, .tp = 2});
  for (base::Rank rank = 0; rank < mesh.world_size(); ++rank) {
    const Group joined = mesh.joined_group(rank, {"tp"});
    const Group single = mesh.group(rank, "tp");
    EXPECT_EQ(joined.ranks, single.ranks);
    EXPECT_EQ(joined.index_of_me, single.index_of_me);
    EXPECT_EQ(joined.number, single.number);
  }
}

TEST(WorldGroup, HoldsEveryRankInOrder) {
  const Group world = Mesh::dense({.tp = 3}).world(2);
  EXPECT_EQ(world.ranks, (Ranks{0, 1, 2}));
  EXPECT_EQ(world.index_of_me, 2);
}

TEST(ListedGroups, MayBeUnequal) {
  const auto mesh = Mesh::of_groups(5, {{"tp", {{3, 4}, {0, 1, 2}}}, {"dp", {{0, 3}, {1, 4}, {2}}}});
  ASSERT_TRUE(mesh.ok());
  EXPECT_EQ(mesh.value().size("tp"), 3);
  EXPECT_EQ(mesh.value().group(4, "tp").ranks, (Ranks{3, 4}));
  EXPECT_EQ(mesh.value().group(4, "tp").number, 1);
  EXPECT_EQ(mesh.value().group(2, "dp").ranks, Ranks{2});
  EXPECT_EQ(mesh.value().coordinates(4), (std::vector<int>{1, 1}));
}

TEST(ListedGroups, KeepTheGivenOrderOfRanks) {
  const auto mesh = Mesh::of_groups(3, {{"ring", {{2, 0, 1}}}});
  ASSERT_TRUE(mesh.ok());
  EXPECT_EQ(mesh.value().coordinate(2, "ring"), 0);
  EXPECT_EQ(mesh.value().coordinate(1, "ring"), 2);
}

TEST(ListedGroups, AreRefusedWithTheReason) {
  EXPECT_EQ(Mesh::of_groups(2, {{"tp", {{0}}}}).error(),
            "axis 'tp' leaves out rank 1; put it into a group of its own if it works alone");
  EXPECT_EQ(Mesh::of_groups(2, {{"tp", {{0, 1}, {1}}}}).error(), "axis 'tp' holds rank 1 twice");
  EXPECT_EQ(Mesh::of_groups(2, {{"tp", {{0, 1}, {}}}}).error(), "axis 'tp' has an empty group");
  EXPECT_EQ(Mesh::of_groups(2, {{"tp", {{0, 2}}}}).error(),
            "axis 'tp' names rank 2, but ranks run from 0 to 1");
  EXPECT_EQ(Mesh::of_groups(0, {}).error(), "a mesh needs at least one rank, not 0");
}

TEST(Mesh, StopsAProgrammersMistake) {
  const Mesh mesh = Mesh::dense({.tp = 2});
  EXPECT_THROW(mesh.group(0, "ep"), base::Failure);
  EXPECT_THROW(mesh.group(2, "tp"), base::Failure);
  EXPECT_THROW(mesh.rank_at({0, 0, 0, 0, 2}), base::Failure);
  EXPECT_THROW(Mesh({{"tp", 0}}), base::Failure);
  EXPECT_THROW(Mesh({{"tp", 2}, {"tp", 2}}), base::Failure);
}

}  // namespace
}  // namespace shardbook::mesh
