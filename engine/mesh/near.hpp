// mesh/near: who of my group is near?
//
// A group cut into runs of neighbours, as ranks of one node are. In a dense mesh of --tp t, a run of m ranks of dp_shard
// spans m t ranks in a row.
#pragma once

#include "engine/mesh/mesh.hpp"

namespace shardbook::mesh {

// The run of `size` ranks, by coordinate, that I am in; its axis is the group's with "_near" behind it. Runs are numbered over
// all groups of the axis. REQUIRES: size divides the group, and all groups of the axis are equally large.
Group near_group(const Group& group, int size);

}  // namespace shardbook::mesh
