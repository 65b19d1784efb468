// train/planned: what would a rank do, and what would it hold?
//
// The same set-up as for a run, on a device that has no memory: the order of a step, what it needs at its fullest, and
// every buffer that the rank would set aside. Beside that, the same by formulas (plan/memory.hpp), which know of no
// buffer: line by line, so that a learner sees that they agree.
#pragma once

#include <map>

#include "engine/base/result.hpp"
#include "engine/plan/memory.hpp"
#include "engine/train/trainer.hpp"

namespace shardbook::train {

// A parameter, in the order in which it lies in its unit.
struct PlannedParameter {
  std::string name;
  int unit = 0;                          // a place in Network::units
  bool weight_decay = false;
  base::Shape shape;                     // whole
  std::vector<shard::Box> boxes;         // what of it is here while it is used
  shard::Placement placement;            // over the axes along which there are other ranks
  std::int64_t here = 0, kept = 0;       // elements of these boxes, and those that lie in this rank's shard
};

struct PlannedRank {
  plan::Network network;
  plan::Plan plan;
  plan::Needs needs;
  std::map<program::MemoryKind, base::Bytes> buffers;   // nominal bytes set aside on the device, by kind
  base::Bytes on_host = 0;                              // ... and of host memory
  plan::Holding holding;                                // ... as the formulas have them for the config's order
  std::map<plan::Held, base::Bytes> laid_out;           // ... and as they lie there, by line of the formulas
  std::vector<PlannedParameter> parameters;             // by unit
};

// What the formulas must know of a run. `config` is validated.
plan::Shapes shapes_of(const config::RunConfig& config);

// To which line of the formulas each buffer of a rank belongs, summed in nominal bytes.
std::map<plan::Held, base::Bytes> held_in(const program::Catalogue& catalogue);

// `config` is validated. Errors: the verifier's sentence, where the order cannot be carried out.
base::Result<PlannedRank> planned(const config::RunConfig& config, const mesh::Mesh& mesh, base::Rank rank, const PlanMaker& make_plan = nullptr);

}  // namespace shardbook::train
