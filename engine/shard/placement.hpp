// shard/placement: of what I hold of a parameter, what do the others hold?
//
// A parameter is three things to a step: the value that layers compute with, its gradient as backward leaves it, and what
// is kept until the next step (the master, and with it moments and the sum of gradients). Of each a placement says, for
// one axis of the mesh after the other, what the ranks along that axis hold:
//
//   same      all of them the same numbers
//   part      each its own part; together they hold everything once
//   summand   each a summand; what is meant is the sum of them
//
// What happens over the axis follows, and no parameter needs a mark for it:
//
//   before use       kept -> value        part -> same: all-gather
//   after backward   gradient -> kept     summand -> same: all-reduce; summand -> part: reduce-scatter
//   counted once     in the norm, and by who writes a checkpoint: by a rank that stands first along each axis over which
//                    what is kept is the same
//   first values     by (seed, name, global element), so boxes say all: where ranks hold the same, their boxes are the same
//   a flat unit      what is placed alike lies together (flat_unit.hpp)
//
// That value and gradient are two questions is what sequence parallelism teaches: the weight of a norm is the same on all
// tp ranks, with it and without it. Where each rank sees all tokens, so is its gradient; where each sees its own, the
// gradient is a summand.
//
// The pieces of a model say what holds over tp, for they cut it. Who lays units out adds the axes of data.
//
// Sources: pytorch/pytorch @00131b6b, torch/distributed/tensor/placement_types.py (Replicate, Shard, Partial: one for each
// axis of the mesh); NVIDIA/Megatron-LM @d98e8a64, megatron/core/distributed/fsdp/src/megatron_fsdp/experimental/placement.py
// (the same three, and which collective leads from one to the other); pytorch/torchtitan @379cc8ae,
// torchtitan/distributed/SPMD_TYPES.md (the gradient follows from the type of the value: Invariant has the same, Replicate a
// Partial one, Shard a part). What one gets without: a mark for each case, NVIDIA/Megatron-LM @d98e8a64,
// megatron/core/distributed/finalize_model_grads.py L416-L484, and megatron/core/tensor_parallel/layers.py L95-L110 for the
// norm.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardbook::shard {

enum class Held : std::uint8_t { same, part, summand };
const char* name_of(Held held);

// What the ranks along one axis hold of a parameter.
struct Along {
  std::string_view axis;        // of the mesh: "tp"; a literal
  Held value = Held::same;      // in use
  Held gradient = Held::same;   // as backward leaves it
  Held kept = Held::same;       // between steps
  bool operator==(const Along&) const = default;
};

// The four that occur.
constexpr Along alike_over(std::string_view axis) { return {axis, Held::same, Held::same, Held::same}; }       // a norm under tp
constexpr Along cut_over(std::string_view axis) { return {axis, Held::part, Held::part, Held::part}; }         // a linear under tp
constexpr Along summed_over(std::string_view axis) { return {axis, Held::same, Held::summand, Held::same}; }   // replicas
constexpr Along sharded_over(std::string_view axis) { return {axis, Held::same, Held::summand, Held::part}; }  // FSDP

// Axes in the order in which gradients are summed, from the inside out. Over an axis that is not named, all is the same.
using Placement = std::vector<Along>;
Along along(const Placement& placement, std::string_view axis);
// Whether both say the same of every axis.
bool equal(const Placement& one, const Placement& other);
// `outer`, of other axes, behind `inner`.
Placement joined(Placement inner, const Placement& outer);

// Why nothing could carry this out, or "".
std::string problem_of(const Placement& placement);

// What leads from one to the other, over the ranks of an axis.
enum class Move : std::uint8_t {
  nothing,
  slice,            // same -> part: each takes its own, and nobody communicates
  all_gather,       // part -> same
  reduce_scatter,   // summand -> part
  all_reduce,       // summand -> same
};
const char* name_of(Move move);
// REQUIRES: `to` is no summand; a part stays, or becomes whole.
Move move_between(Held from, Held to);
inline Move before_use(const Along& along) { return move_between(along.kept, along.value); }
inline Move after_backward(const Along& along) { return move_between(along.gradient, along.kept); }
// One word for it: "alike", "cut", "summed", "sharded"; of none of these four "sliced".
const char* name_of(const Along& along);
// What it means: "each rank has a part, and the gradient of it". Value and gradient, then what is kept.
std::string words_of(const Along& along);

// All axes that any of them names, in their order. REQUIRES: they agree on it.
std::vector<std::string_view> axes_of(const std::vector<Placement>& placements);
// ... of these, those over which some gradient is a summand.
std::vector<std::string_view> summed_axes(const std::vector<Placement>& placements);
// ... and those over which some keep parts: over these squares, and what else is counted, must be summed. Over any other
// axis each rank has the whole sum already.
std::vector<std::string_view> parted_axes(const std::vector<Placement>& placements);

// Where a rank stands along axes: its index among the ranks that it communicates with there.
struct Coordinate {
  std::string_view axis;
  int index = 0;
};
using Place = std::vector<Coordinate>;
// Whether a rank counts what it keeps, where counts are then summed over the axes of `place`: it stands first on each over
// which the same is kept.
bool counts(const Placement& placement, const Place& place);

}  // namespace shardbook::shard
