// Every race by brute force: an order of commands closed transitively, and every pair of uses of every byte looked at.
// Nothing of check/ is used but its struct Race.
#pragma once

#include <vector>

#include "engine/check/races.hpp"

namespace shardbook::tests {

struct OracleRaces {
  // The closest ones, which check::races promises: no op between the two writes the bytes, and, where the first only
  // reads them, no later op of its stream reads them. Ordered by second, first, buffer; `follows` is not filled.
  std::vector<check::Race> closest;
  // Whether each byte that any two ops race for is one that a closest pair races for.
  bool closest_tell_every_byte = true;
};

OracleRaces oracle(const program::Catalogue& catalogue, const check::Steps& steps);

// The same races? `follows` is not compared, nor their order.
bool same_races(std::vector<check::Race> left, std::vector<check::Race> right);

}  // namespace shardbook::tests
