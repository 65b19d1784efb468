// scene/bands: in which phase and layer is this rank, and when?
//
// What NVTX rows are in Nsight: the phases of a step over the time that a rank computes in them, and below them its
// layers. Made of the compute stream alone: spans that follow each other in the same phase, micro-batch and layer are one
// piece, so the time between two spans of a layer is the layer's, too. Communication runs ahead of its layer and has no
// say, but between two phases where nothing is computed: there it names the phase. A trace that names no phases has what it names instead: its annotations beside that stream.
//
// Pieces of one list ascend and do not overlap. The finer pieces, attention and mlp, are made of the spans in view.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/intervals.hpp"
#include "engine/timeline/timeline.hpp"

namespace shardbook::scene {

class Scene;

struct BandPiece {
  base::Interval time;
  std::uint32_t name = 0;          // strings: the phase, the annotation; of a piece outside of all layers its part or op
  std::int32_t step = -1, micro_batch = -1, layer = -1;
  std::uint32_t phase = 0;         // strings; of annotations 0
  const char* block = "";          // of blocks_in: "attention", "mlp"; "" if the layer's part is neither
};

struct Bands {
  std::int32_t track = -1;         // the compute stream that they are made of; -1: this rank has none
  bool of_annotations = false;     // `phases` are annotations, and there are no layers
  bool has_micro_batches = false;
  std::vector<BandPiece> phases, layers;
  bool empty() const { return phases.empty(); }
};

Bands bands_of(const timeline::Timeline& timeline, base::Rank rank);

// The pieces of the layers that touch the window, cut where attention gives way to the mlp; none if the window holds more
// than `most` spans.
std::vector<BandPiece> blocks_in(const Scene& scene, const Bands& bands, base::Interval window, std::size_t most);

// "attention" of qkv, "mlp" of down; what stands in neither is its own name.
std::string block_of(std::string_view part);

}  // namespace shardbook::scene
