// simulate/matching: which calls of different ranks are one collective?
//
// Those of equal group (axis and ranks), step and sequence number. A send and its receive are matched by
// the pair and its direction: the n-th send of one to the other with the n-th receive there.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/simulate/plan.hpp"
#include "engine/simulate/resolver.hpp"

namespace shardbook::simulate {

// A collective whose cost was taken away: its kernel is not there either.
constexpr bool is_gone(base::Nanoseconds op_ns) { return op_ns <= 1; }

// One collective over all its ranks.
struct Instance {
  const program::OpDesc* desc = nullptr;         // as the first rank that has it calls it
  const program::GroupInfo* group = nullptr;
  std::uint32_t first_rank = 0;                  // place in the input of that rank
  std::uint32_t participants = 0;
  std::uint32_t arrivals = 0;                    // of those, how many arrive in the simulation: fewer, where one does for all
  base::Nanoseconds op_ns = 0;                   // the longest that any rank says
  float shared_part = 0;
  bool copied = false;                           // by copy engines
};

struct Matching {
  std::vector<Instance> instances;
  // [rank][step][collective of the plan] -> instance
  std::vector<std::vector<std::vector<std::uint32_t>>> instance_of;
};

// `plans` is parallel to ranks and their steps.
// Errors: a rank of a group that is not given; different collectives, or sizes, under one number.
base::Result<Matching> match(const std::vector<RankSteps>& ranks, const std::vector<std::vector<const Plan*>>& plans);

// "all_gather 5 of dp_shard [0, 1]"
std::string name_of(const Instance& instance);

}  // namespace shardbook::simulate
