// train/planned: what would a rank do, and what would it hold?
//
// The same set-up as for a run, on a device that has no memory: the order of a step, what it needs at its fullest, and
// every buffer that the rank would set aside.
#pragma once

#include <map>

#include "engine/base/result.hpp"
#include "engine/train/trainer.hpp"

namespace shardbook::train {

struct PlannedRank {
  plan::Network network;
  plan::Plan plan;
  plan::Needs needs;
  std::map<program::MemoryKind, base::Bytes> buffers;   // nominal bytes set aside, by kind
};

// `config` is validated. Errors: the verifier's sentence, where the order cannot be carried out.
base::Result<PlannedRank> planned(const config::RunConfig& config, const mesh::Mesh& mesh, base::Rank rank, const PlanMaker& make_plan = nullptr);

}  // namespace shardbook::train
