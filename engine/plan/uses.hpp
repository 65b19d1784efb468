// plan/uses: from when to when does a plan need a unit's parameters?
#pragma once

#include <map>
#include <vector>

#include "engine/plan/plan.hpp"

namespace shardbook::plan {

// A stretch of a plan that needs one unit whole: of one micro-batch, in one direction. A tied root's forward use goes
// from the embedding to the head.
struct Use {
  int unit = 0;
  Phase phase = Phase::forward;
  int micro_batch = 0;
  std::size_t first = 0, last = 0;  // places in the plan
};

class Uses {
 public:
  Uses(const Plan& plan, const Network& network);

  // The use that begins, or ends, with the action at this place; null if none does.
  const Use* beginning(std::size_t at) const;
  const Use* ending(std::size_t at) const;
  // The next `count` uses that begin behind this place; not those of another micro-batch, unless they are asked for.
  std::vector<const Use*> ahead(std::size_t at, int count, bool across_micro_batches) const;
  // The next use of a unit that begins behind this place; null if there is none.
  const Use* next_of(int unit, std::size_t at) const;
  // The first one; null if there is none.
  const Use* first_of(int unit) const;

 private:
  std::vector<Use> uses_;                        // by `first`
  std::map<std::size_t, std::size_t> ending_;    // place of the last action -> use
  std::vector<std::vector<std::size_t>> of_unit_;  // unit -> its uses, by `first`
};

// Which units are whole, as a plan is written.
class Whole {
 public:
  explicit Whole(const Network& network) : network_(network), whole_(network.units.size()) {}
  // True if the unit must be gathered now.
  bool make(int unit) {
    const bool must = of(unit).sharded && !whole_[static_cast<std::size_t>(unit)];
    whole_[static_cast<std::size_t>(unit)] = true;
    return must;
  }
  // True if the unit is to be released now.
  bool drop(int unit) {
    const bool may = of(unit).sharded && !of(unit).resident;
    if (may) whole_[static_cast<std::size_t>(unit)] = false;
    return may;
  }

 private:
  const Unit& of(int unit) const { return network_.units[static_cast<std::size_t>(unit)]; }

  const Network& network_;
  std::vector<bool> whole_;
};

}  // namespace shardbook::plan
