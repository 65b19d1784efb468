// shard: which part of this tensor is mine?
//
// A TensorShard names a global tensor and the box of it (an interval along each dim) that one rank
// holds. Tensor parallel cuts one dim; FSDP then cuts the flat layout of what is left (flat_unit.hpp).
// The global index of a local element is what weights are drawn by, so that a layout never changes
// the initial model.
//
// Invariant: the boxes of the ranks of a tp group cover a cut tensor exactly once.
//
// Source: pytorch/pytorch v2.8.0, torch/distributed/checkpoint/metadata.py (ChunkStorageMetadata:
// offsets and sizes per dim) for the box as the one description of a shard.
#pragma once

#include <array>
#include <string>

#include "engine/base/types.hpp"
#include "engine/shard/interval.hpp"

namespace shardbook::shard {

// An interval along each dim of a global tensor.
struct Box {
  std::array<Interval, base::Shape::max_dims> along{};
  int dims = 0;

  Interval operator[](int dim) const { return along[static_cast<std::size_t>(dim)]; }
  base::Shape shape() const;
  std::int64_t elements() const { return shape().elements(); }
  bool operator==(const Box& other) const;
};

// The whole tensor.
Box whole(const base::Shape& global);
// The whole tensor but for `dim`, of which only `part`. REQUIRES: part lies within the dim.
Box slice(const base::Shape& global, int dim, Interval part);
// What both boxes hold; it has no elements when they are disjoint. REQUIRES: equal dims.
Box intersect(const Box& a, const Box& b);

// One rank's part of a named tensor.
struct TensorShard {
  std::string name;          // global: "blocks.3.mlp.up.weight"
  base::Shape global_shape;
  Box box;

  base::Shape local_shape() const { return box.shape(); }
  std::int64_t local_elements() const { return box.elements(); }
  // Row-major index in the global tensor of the row-major local element.
  std::int64_t global_element(std::int64_t local_element) const;
  // True if this rank holds all of it.
  bool is_whole() const { return box.shape() == global_shape; }
};

// A tensor that every rank of the group holds whole.
TensorShard replicated(std::string name, const base::Shape& global);
// Part `index` of `parts` along `dim`. Unequal parts are fine (part_of).
TensorShard cut_along(std::string name, const base::Shape& global, int dim, int parts, int index);

}  // namespace shardbook::shard
