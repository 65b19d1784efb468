// shard/flat_unit: where each parameter of an FSDP unit lies in the unit's one flat buffer.
//
// The parameters of a unit (a block) are laid end to end, padded, and cut evenly over the fsdp
// ranks, so that one all-gather makes all of them whole without a copy. Parameters are ordered by
// zone, by whether they are decayed and by where they are placed (placement.hpp), so that what is
// asked of many of them is asked of few intervals. Of a block under tp:
//
//     | decayed,    | decayed,     | not decayed, | not decayed, | padding |
//     | alike       | cut over tp  | cut over tp  | alike        |         |
//     0             |-------- cut over tp --------|         elements()  padded()
//     |------ decay_end() -------->|
//
// Weight decay applies to flat index < decay_end(). Of the norm a rank counts counted(): all of it,
// or, where it is not the first of those that keep the same, the cut interval alone.
//
// With more placements each has its zone, those with fewer parts outside; so what is cut lies together.
//
// Invariants: within a zone parameters keep the given order; each parameter begins at a multiple of
// parameter_alignment; shards are equal, multiples of shard_alignment, and cover [0, padded()) once.
// Gaps and padding hold zeros and get zero gradients, so decay and norm are not changed by them.
//
// Sources: Rajbhandari et al. 2020, ZeRO (arXiv:1910.02054); pytorch/pytorch v2.8.0,
// torch/distributed/fsdp/_flat_param.py (FlatParamHandle: flatten_tensors_into_flat_param,
// _get_aligned_numel, _get_shard, _get_flat_param_offsets). Zones are this project's own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/shard/interval.hpp"
#include "engine/shard/placement.hpp"

namespace shardbook::shard {

// Offsets of parameters are multiples of this many elements: 16 bytes in bf16, what vector loads,
// cuBLASLt and TMA ask for.
inline constexpr std::int64_t parameter_alignment = 8;
// Sizes of fsdp shards are multiples of this many elements: 128 bytes in bf16.
inline constexpr std::int64_t shard_alignment = 64;

// A parameter as this rank holds it once gathered over fsdp.
struct FlatParameter {
  std::string name;
  base::Shape shape;     // of the boxes that are here
  Placement placement;   // over all axes, this layout's among them
  bool weight_decay = false;
};

// A part of one parameter that lies in an asked-for interval of the flat buffer.
struct Piece {
  int parameter = 0;   // index into FlatUnit::parameters()
  Interval elements;   // row-major elements of that parameter
  Interval flat;       // where they lie in the flat buffer; the same size
};

class FlatUnit {
 public:
  // REQUIRES: names differ, shapes have at least one element, shards >= 1. `shards` is the size of
  // the fsdp group. Every rank computes the same layout up to the tp-local shapes.
  FlatUnit(std::string name, std::vector<FlatParameter> parameters, int shards);

  const std::string& name() const { return name_; }
  int shards() const { return shards_; }

  // In flat order (by zone), which is not always the given order.
  const std::vector<FlatParameter>& parameters() const { return parameters_; }
  // Where a parameter lies, by index into parameters() or by name. REQUIRES: it is there.
  Interval range(int parameter) const { return ranges_[static_cast<std::size_t>(parameter)]; }
  Interval range(std::string_view name) const { return range(index_of(name)); }
  int index_of(std::string_view name) const;

  // End of the last parameter; gaps between parameters are within.
  std::int64_t elements() const { return elements_; }
  // Length of the gathered flat buffer: shards() * shard_elements().
  std::int64_t padded() const { return shard_elements_ * shards_; }
  // Length of one rank's shard: equal on all ranks.
  std::int64_t shard_elements() const { return shard_elements_; }
  // The shard of fsdp rank `index`, within [0, padded()).
  Interval shard(int index) const;

  // Weight decay applies to flat indices below this.
  std::int64_t decay_end() const { return decay_end_; }
  // Where the parameters lie whose placement is so, in flat order: one interval for those that follow each other, with the
  // gaps between them.
  std::vector<Interval> where(const std::function<bool(const Placement&)>& is) const;
  // What of the unit's gradient is a summand over the axis.
  std::vector<Interval> summands_over(std::string_view axis) const;
  // What a rank counts of the norm (shard::counts). With padding, which is zeros, where it counts everything.
  std::vector<Interval> counted(const Place& place) const;

  // Which elements of which parameters lie in this interval of the flat buffer, in flat order.
  // Gaps and padding belong to no piece. Allocates; not for use within a step.
  std::vector<Piece> pieces(Interval flat) const;

 private:
  std::string name_;
  int shards_ = 1;
  std::vector<FlatParameter> parameters_;
  std::vector<Interval> ranges_;
  std::int64_t elements_ = 0;
  std::int64_t shard_elements_ = 0;
  std::int64_t decay_end_ = 0;
};

}  // namespace shardbook::shard
