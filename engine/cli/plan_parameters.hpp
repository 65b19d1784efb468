// cli/plan_parameters: what does a rank hold of each parameter, and what do the others?
//
// In the order in which parameters lie in their units, by zone (shard/flat_unit.hpp): so one sees what lies together, and
// that a shard does not respect the borders of parameters.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/train/planned.hpp"

namespace shardbook::cli {

// Units that are placed as the one before is are left out, unless `all`. Ends with what its words mean.
std::string parameters_text(const train::PlannedRank& rank, bool all);
nlohmann::json parameters_json(const train::PlannedRank& rank);

}  // namespace shardbook::cli
