// checkpoint/load: how does a rank come by the boxes that it needs?
//
// It asks for boxes of global tensors, and gets each from whatever stored boxes have something in common with it. Who wrote
// those, under which layout, is not asked.
//
// Source: pytorch/pytorch @0943060f, torch/distributed/checkpoint/resharding.py (a stored and a wanted chunk overlap in a
// region, which is read).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/checkpoint/files.hpp"
#include "engine/checkpoint/manifest.hpp"

namespace shardbook::checkpoint {

// A box of a tensor, and where its numbers lie, row-major: what a rank writes, or wants.
struct Part {
  std::string tensor;
  base::DType dtype = base::DType::f32;
  base::Shape shape;           // of the whole tensor
  shard::Box box;
  std::byte* numbers = nullptr;

  base::Bytes bytes() const { return box.elements() * base::size_of(dtype); }
};

// Fills each of them. Errors: a tensor is not there, or is of another shape or type; those of DataReader.
base::Status load(const std::vector<Part>& wanted, const Manifest& manifest, DataReader& reader);

// Whether the checkpoint holds these tensors and no others: names of `parts`, over all ranks. Errors: the first that is
// missing, or too much.
base::Status expect_tensors(const std::vector<std::string>& names, const Manifest& manifest, const std::string& folder);

}  // namespace shardbook::checkpoint
