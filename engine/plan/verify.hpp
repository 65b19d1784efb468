// plan/verify: can this order be carried out?
//
// Pure: lists in, one sentence out. Nothing is allocated and no rank is started. A plan without a problem can still be
// slow, but it reads no parameter that is not whole, loses no gradient, and its ranks call the same collectives in the
// same order. Waits are not its matter: executors issue those, and check/ finds a missing one in the record.
#pragma once

#include <optional>
#include <string>

#include "engine/plan/plan.hpp"

namespace shardbook::plan {

struct Problem {
  int rank = 0;             // place in the list of plans
  std::size_t action = 0;   // place in that rank's plan; its size: at the end of the step
  std::string sentence;     // what is wrong and where: action, its planned line, names of layers and units
};

// The first action that names a layer, unit or micro-batch that is not there. What stands in no other file may: plans
// that are written by hand are asked this before they are finished.
std::optional<Problem> misnamed(const Plan& plan, const Network& network, int rank = 0);

// The first problem of one rank's finished plan, by itself.
std::optional<Problem> problem_of(const Plan& plan, const Network& network, int rank = 0);

// The first problem of ranks that gather and reduce together: each by itself, then whether all call the same
// collectives in the same order. REQUIRES: a network for each plan.
std::optional<Problem> problem_of(const std::vector<Plan>& plans, const std::vector<Network>& networks);

}  // namespace shardbook::plan
