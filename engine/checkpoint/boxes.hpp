// checkpoint/boxes: what boxes is a run of elements, and do these boxes make the whole?
//
// A rank keeps a run of each flat unit (shard/flat_unit.hpp): of a matrix that is the end of a row, some whole rows, the
// beginning of another. Written as boxes of the global tensor it says nothing of flat units, padding or ranks any more, so
// any other layout can look for what it needs.
//
//     . . . a a a        of a matrix at most three boxes: a, b and c;
//     b b b b b b        in general one more on each side for each dim
//     b b b b b b        but the innermost
//     c c . . . .
//
// Sources: pytorch/pytorch @03e266fa, torch/distributed/checkpoint/metadata.py (ChunkStorageMetadata: a stored chunk is
// offsets and sizes in the global tensor) and @0943060f, resharding.py (what two chunks have in common); NVIDIA/Megatron-LM
// @00caa53a, megatron/core/dist_checkpointing/mapping.py (ShardedTensor: key, global shape, global offset; its
// flattened_range, a run within a box, is "not supported" any more: a run is taken apart into boxes here instead).
#pragma once

#include <string>
#include <vector>

#include "engine/shard/shard.hpp"

namespace shardbook::checkpoint {

// The row-major elements `run` of a box, as boxes; end to end they are the run. At most 2 · dims − 1.
// REQUIRES: run lies within [0, box.elements()).
std::vector<shard::Box> boxes_of(const shard::Box& box, shard::Interval run);

// What keeps the boxes from holding each element of the tensor exactly once, in words ("two boxes both hold element [3, 0]");
// "": nothing does. Time n log n for tensors of up to two dims.
// REQUIRES: all have the tensor's dims, lie within it, and hold something.
std::string problem_of_cover(const base::Shape& shape, const std::vector<shard::Box>& boxes);

// "[0:3, 4:8]"
std::string text_of(const shard::Box& box);

// One run of elements that two boxes have in common, row-major from the begin of each.
struct Run {
  std::int64_t from = 0, to = 0, elements = 0;
};
// All that both boxes hold, as runs in order, each as long as it can be.
std::vector<Run> common_runs(const shard::Box& from, const shard::Box& to);

// Shapes come from files with any number of sizes. REQUIRES: at most Shape::max_dims.
base::Shape shape_of(const std::vector<std::int64_t>& sizes);

}  // namespace shardbook::checkpoint
