// mesh: who am I among the ranks?
//
// A mesh names factorisations of the world. Each axis cuts all ranks into groups; a rank is in
// exactly one group of each axis, and its coordinate is its place in it. A regular mesh is given by
// sizes, outermost axis first and the last one fastest: in the dense mesh tp is innermost, so the
// ranks of a tp group are neighbours on one node. A mesh may also be given as lists of ranks, of
// unequal lengths, which is why nothing outside this room computes `rank / size` itself.
//
// Invariants: the groups of an axis are disjoint and together are the world; ranks within a group
// are listed by coordinate; every rank computes the same mesh.
//
// Sources: NVIDIA/Megatron-LM@d98e8a64, megatron/core/parallel_state.py (RankGenerator, order
// "tp-cp-ep-dp-pp", first fastest); pytorch/torchtitan@b5bcd76c,
// torchtitan/distributed/parallel_dims.py (ParallelDims: pp, dp_replicate, dp_shard, cp, tp, last
// fastest).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/base/types.hpp"

namespace shardbook::mesh {

// The ranks that communicate along an axis, and where I am among them.
struct Group {
  std::string axis;               // "tp"; "dp_shard+cp" for several axes; "world"
  std::vector<base::Rank> ranks;  // by coordinate
  int index_of_me = 0;            // ranks[index_of_me] is me: my coordinate
  int number = 0;                 // which group of the axis this is, counted from 0

  int size() const { return static_cast<int>(ranks.size()); }
};

struct Axis {
  std::string name;
  int size = 1;
};

// Sizes of the dense mesh.
struct DenseSizes {
  int pp = 1;
  int dp_replicate = 1;
  int dp_shard = 1;
  int cp = 1;
  int tp = 1;
};

// Groups of one axis, given one by one.
struct AxisGroups {
  std::string name;
  std::vector<std::vector<base::Rank>> groups;
};

class Mesh {
 public:
  // A regular mesh, outermost axis first. REQUIRES: names differ, sizes >= 1.
  explicit Mesh(const std::vector<Axis>& axes);
  // pp, dp_replicate, dp_shard, cp, tp: tp fastest.
  static Mesh dense(const DenseSizes& sizes);
  // A mesh of listed groups, possibly unequal. Errors: an axis whose groups leave out a rank of
  // [0, world), hold one twice, or are empty.
  static base::Result<Mesh> of_groups(int world, std::vector<AxisGroups> axes);

  int world_size() const { return world_; }
  // Names, outermost first.
  std::vector<std::string> axes() const;
  bool has_axis(std::string_view axis) const;
  // Ranks in the largest group of the axis: its size in a regular mesh.
  int size(std::string_view axis) const;
  // Place of the rank in its group of the axis.
  int coordinate(base::Rank rank, std::string_view axis) const;
  // One coordinate an axis, outermost first.
  std::vector<int> coordinates(base::Rank rank) const;
  // The rank at these coordinates. REQUIRES: a regular mesh.
  base::Rank rank_at(const std::vector<int>& coordinates) const;

  // My group along one axis.
  Group group(base::Rank me, std::string_view axis) const;
  // All groups of an axis, as lists of ranks, ordered by their smallest rank.
  const std::vector<std::vector<base::Rank>>& groups(std::string_view axis) const;
  // My group along several axes together, e.g. {"dp_shard", "cp"}: what FSDP shards over when
  // context parallel is on. The ranks that share all my other coordinates, in order of rank.
  // REQUIRES: a regular mesh.
  Group joined_group(base::Rank me, const std::vector<std::string>& axes) const;
  // All ranks, 0 to world - 1.
  Group world(base::Rank me) const;

 private:
  struct Cut {
    std::string name;
    std::vector<std::vector<base::Rank>> groups;
    std::vector<int> group_of;       // by rank
    std::vector<int> coordinate_of;  // by rank
  };
  Mesh() = default;
  const Cut& cut(std::string_view axis) const;
  void add(AxisGroups axis);

  int world_ = 1;
  bool regular_ = true;
  std::vector<Cut> cuts_;
};

}  // namespace shardbook::mesh
