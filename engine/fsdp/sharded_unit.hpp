// fsdp/sharded_unit: what a rank keeps of a unit, and where the unit is whole for a while.
//
// A unit's parameters are laid end to end, padded and cut evenly (shard/flat_unit.hpp); or each parameter is padded and
// cut by itself. A rank keeps one shard of the masters (f32), of the copy that is computed with (bf16), of the gradient
// (f32). Whole, the unit exists only in a slot: a buffer that many units use in turn. A slot's events tell the streams
// when its contents are there and when they may be overwritten.
//
// Sources: Zhao et al. 2023, "PyTorch FSDP", §3–4; pytorch/pytorch v2.8.0, torch/distributed/fsdp/
// _flat_param.py (one flat parameter, even shards, no copy before or after the collectives).
#pragma once

#include <memory>
#include <vector>

#include "engine/model/parameter.hpp"
#include "engine/optimizer/adamw.hpp"

namespace shardbook::fsdp {

using tensor::Tensor;

// Memory in which units are whole, one after the other.
struct GatherSlot {
  Tensor full;               // nominal: the type parameters are computed with
  device::Event gathered;    // on the fsdp stream: the all-gather has run
  device::Event released;    // on compute: the last use of the contents has run
};

// Memory in which a unit's gradient is whole, until it is reduced. f32.
struct GradientSlot {
  Tensor full;
  device::Event complete;    // on compute: backward has written all of it
  device::Event reduced;     // on the fsdp stream: the reduce-scatter has read all of it
};

// What one collective gathers, and another reduces: all of a unit, or one parameter of it.
struct Flat {
  std::unique_ptr<shard::FlatUnit> layout;
  std::size_t state = 0;     // index of its ShardState
  std::int64_t begin = 0;    // where it lies in the whole unit
  Tensor in(const Tensor& whole) const { return whole.slice(begin, {layout->padded()}); }
  // Likewise in what one of `ranks` keeps of the unit: an equal part of each flat
  Tensor part_in(const Tensor& kept, int ranks) const { return kept.slice(begin / ranks, {layout->padded() / ranks}); }
};

// A unit of the model, sharded.
struct ShardedUnit {
  model::Unit* unit = nullptr;
  std::vector<Flat> flats;                // end to end
  std::vector<std::int64_t> begins;       // by parameter of the unit: where it lies in the whole
  bool of_block = false;                  // alike with other units, so that they use each other's memory
  const char* part = "fsdp_unit";         // what its collectives are recorded as; of several blocks "fsdp_unit 2-3"
  // Gathered once a step into a slot of its own, and kept: embedding and head, or all if nothing is freed.
  bool resident = false;
  GatherSlot* slot = nullptr;             // where it is whole now, or null
  bool awaited = false;                   // compute has already been told to wait for it
  bool carried = false;                   // gathered at the end of each step, and so whole when the next begins
  bool gathered = false;                  // since its update, once at least
  device::Event updated;                  // on compute: its update has run. Where units are waited for by themselves
  Tensor kept;                            // this rank's part of it after forward, flat after flat; none where nothing is kept
  device::Event kept_there;               // on compute: the part has been copied
  GatherSlot* freed = nullptr;            // where it was whole before its last release
  std::unique_ptr<GatherSlot> own_slot;   // of a resident unit
  GradientSlot* gradient_slot = nullptr;  // where its gradient is being made, or null
  GradientSlot* reduced_in = nullptr;     // where its gradient was when it was reduced last
  device::Event sum_there;                // on the fsdp stream: the last reduction of its gradient has run. Where units are waited for by themselves
  bool sum_awaited = false;               // compute has already been told to wait for it
  bool once = false;                      // its gradient is reduced once a step
  bool summed = false;                    // the shard of the gradient holds a sum of this step, where it lies
  std::shared_ptr<GradientSlot> own_gradient_slot;   // of its own, or of an end that takes turns with the other

  // Where no parameter lies in the whole, if its memory is used by units that are laid out otherwise: made zero whenever
  // its gradient begins, for a reduction reads it all. Else no one ever writes there.
  std::vector<shard::Interval> gaps;

  std::int64_t padded() const;            // elements of the whole
  std::int64_t shard_elements() const;    // ... and of what this rank keeps of it
  std::vector<shard::Placement> placements() const;   // of all parameters
  std::vector<shard::Interval> summands_over(std::string_view axis) const;   // parts of the whole whose gradients are summands over it
};

// Lays out `unit.unit` over `shards` ranks: as one flat, or a flat for each parameter. Their states are numbered from
// `first_state` on. `data`: what ranks that see other tokens hold, the same of all parameters; it joins what the pieces say.
void lay_out(ShardedUnit& unit, int shards, bool each_parameter, std::size_t first_state, const shard::Placement& data);

// Where the whole holds no parameter: between two of them, and behind the last of each flat.
std::vector<shard::Interval> gaps_of(const ShardedUnit& unit);

// Points the parameters' values (or gradients) into a flat buffer of the unit.
void view_values(const ShardedUnit& unit, const Tensor& full);
void view_gradients(const ShardedUnit& unit, const Tensor& full);

// Draws the masters of one of the unit's shards by (seed, parameter, global element) and rounds them into the working copy.
// Set-up only; equal for every layout.
void initialize(device::Lane lane, const ShardedUnit& unit, const optimizer::ShardState& state, std::uint64_t seed);

}  // namespace shardbook::fsdp
