// plan: in what order does a step happen?
//
// A step is a list of actions. It is made before the first step, by functions that only read and return lists
// (passes.hpp, fsdp/schedule.hpp, data_parallel/schedule.hpp), and carried out by the rooms, each for its own kinds
// (executor.hpp). The list says *when*; the rooms know *how*. Which stream waits for which follows from what an action
// needs, so no stream, event or wait stands in a plan. Because the order is data, it can be printed, verified over all
// ranks (verify.hpp) and priced in memory (needs.hpp) before anything is allocated.
//
// An action carries the line that planned it; it is recorded beside the line that issues each op (program::Command).
//
// The grain is one layer of one micro-batch. What a layer does inside is the layer's own text (model/block.cpp).
//
// Source: pytorch/pytorch@00722e648b74, torch/distributed/pipelining/schedules.py (_Action, and the passes that lower a
// list of compute actions: _add_unshard_reshard, _add_reduce_grad). Its grain is a stage; ours is a layer, so that
// FSDP's units stand in the same list.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/program/program.hpp"

namespace shardbook::plan {

using program::Phase;

enum class Kind : std::uint8_t {
  load,       // a micro-batch's tokens go to the device
  states,     // the first masters and moments come from host memory to the device, for the update
  to_device,  // this rank's shard of a unit comes from host memory, for the next gather
  gather,     // a unit's parameters become whole
  keep,       // of a unit that is whole, a part stays: a run of ranks near each other has all of it between them
  release,    // ... and their memory may be overwritten
  limit,      // the host waits until what a unit's release freed is free
  synchronize,  // the host waits until all that was issued to compute so far has run: a planted mistake
  forward,    // of a layer; what backward needs is kept
  recompute,  // the same again, to have what was not kept
  remake,     // ... only what costs no matmul: outputs of norms and of the activation
  backward,   // both gradients of a layer, in the order that the layer likes
  reduce,     // a unit's gradient is summed over an axis of the mesh
  to_host,    // this rank's shard of the sum goes to host memory, to those of earlier micro-batches
  norm,       // the one number that all ranks must know before they update
  update,
};
inline constexpr int kinds = static_cast<int>(Kind::update) + 1;
const char* name_of(Kind kind);

bool computes(Kind kind);       // forward, recompute, remake, backward: needs its unit's parameters
bool communicates(Kind kind);   // gather, reduce: with other ranks
bool moves(Kind kind);          // these, and to and from host memory: who would change its time changes the plan

struct Action {
  Kind kind = Kind::load;
  Phase phase = Phase::forward;
  int micro_batch = -1;
  int layer = -1;         // of what computes: a place in Network::layers
  int unit = -1;          // of what concerns parameters: a place in Network::units
  int units = 1;          // of reduce: so many units from `unit` on, whose gradients lie end to end (a bucket)
  int slot = -1;          // which of the shared buffers; -1: its own. finish() gives them out
  int shard_slot = -1;    // of to_device and gather, of reduce and to_host: through which place on the device the shard passes; -1: it stays
  const char* axis = "";  // of reduce: "tp", "dp_shard", "dp_replicate"; of gather: near_axis, or all that shard; a literal
  program::SourceLine where;

  bool operator==(const Action& other) const;  // but for `where`
};
std::string to_string(const Action& action);   // "forward layer 3 of micro-batch 0"
std::string line_of(const Action& action);     // "engine/fsdp/schedule.cpp:33"

// What there is to compute and to gather, by number: all that a plan knows of a model.
struct Layer {
  std::string name;        // "embedding", "blocks.3", "head"
  int unit = 0;            // whose parameters it needs
  int number = no_block;   // of a block
  static constexpr int no_block = -1;   // embedding and head
  bool is_block() const { return number != no_block; }
};
struct Unit {
  std::string name;
  bool sharded = true;     // not whole unless gathered
  bool resident = false;   // once gathered it stays whole until the update
  bool shares_gathered = true, shares_gradient = true;   // in buffers that units use in turn, not in its own
  base::Bytes gathered = 0, gradient = 0;                // nominal bytes of each, whole
  bool on_host = false;    // this rank's shards of parameters and gradient lie in host memory, and so the update runs there
  base::Bytes kept = 0;    // of the part that stays after forward, to be gathered over near_axis; 0: none
  // Over which axes the gradient is a summand when backward leaves it, in the order in which it must be summed. Over tp
  // it is a part of the gradient, where it lies; the first reduction over another axis empties its buffer.
  std::vector<std::string> sums;
};
struct Network {
  std::vector<Layer> layers;  // in the order of forward
  std::vector<Unit> units;
  int micro_batches = 1;
  bool states_on_host = false;   // masters and moments lie in host memory, and come to the device for the update
};

// Over dp_shard the sum goes elsewhere, into the shard, and is added to what is there. Over another axis it takes the
// place of the summand, so nothing may be added to it after.
bool sums_in_place(std::string_view axis);
// Whether the reduction over this axis takes a unit's gradient out of its buffer.
bool empties(const Unit& unit, std::string_view axis);

struct Plan {
  std::vector<Action> actions;
  Plan& add(const Action& action) { actions.push_back(action); return *this; }
};

// The gathers behind the update. What they make whole is whole when the next step begins, so of each step: somebody gathers it
// once before the first.
std::vector<Action> for_the_next_step(const Plan& plan);

// The run of ranks that keep a unit between them: mesh::near_group of dp_shard.
inline constexpr const char* near_axis = "dp_shard_near";

// One action each, with the line of the caller: plan.add(gather(3)).
using Where = std::source_location;
Action load(int micro_batch, Where where = Where::current());
Action states(Where where = Where::current());
Action to_device(int unit, Where where = Where::current());
Action gather(int unit, const char* axis = "", Where where = Where::current());
Action keep(int unit, Where where = Where::current());
Action release(int unit, Where where = Where::current());
Action limit(int unit, Where where = Where::current());
Action synchronize(Where where = Where::current());
Action forward(int layer, int micro_batch, Where where = Where::current());
Action recompute(int layer, int micro_batch, Where where = Where::current());
Action remake(int layer, int micro_batch, Where where = Where::current());
Action backward(int layer, int micro_batch, Where where = Where::current());
Action reduce(int unit, const char* axis = "dp_shard", Where where = Where::current());
Action to_host(int unit, Where where = Where::current());
Action reduce_bucket(int first_unit, int units, const char* axis, Where where = Where::current());
Action norm(Where where = Where::current());
Action update(Where where = Where::current());

}  // namespace shardbook::plan
