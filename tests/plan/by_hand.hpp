// Plans written out by hand, whose lines are those of a file that does not exist: action n stands in my_plan.cpp:n.
#pragma once

#include "engine/plan/needs.hpp"
#include "engine/plan/verify.hpp"
#include "tests/support/plans.hpp"

namespace shardbook::tests {

using namespace plan;

inline Plan numbered(std::vector<Action> actions) {
  Plan plan{std::move(actions)};
  for (std::size_t at = 0; at < plan.actions.size(); ++at) plan.actions[at].where = {"my_plan.cpp", static_cast<std::uint32_t>(at)};
  return plan;
}

// Embedding, two blocks and a head; blocks are freed after each use, and gathered again for backward.
inline std::vector<Action> step_of_two_blocks() {
  return {
      gather(0), gather(3), load(0),
      forward(0, 0),
      gather(1), forward(1, 0), release(1),      // 4
      gather(2), forward(2, 0), release(2),      // 7
      forward(3, 0), backward(3, 0), reduce(3),  // 10
      gather(2), backward(2, 0), release(2), reduce(2),  // 13
      gather(1), backward(1, 0), release(1), reduce(1),  // 17
      backward(0, 0), reduce(0),                 // 21
      norm(), update(),                          // 23
  };
}

// A list of actions, changed at one place.
struct Changed {
  std::vector<Action> actions;
  Changed without(int left_out) const {
    Changed changed;
    for (int at = 0; at < static_cast<int>(actions.size()); ++at) {
      if (at != left_out) changed.actions.push_back(actions[static_cast<std::size_t>(at)]);
    }
    return changed;
  }
  Changed with(int at, const Action& action) const {
    Changed changed = *this;
    changed.actions.insert(changed.actions.begin() + at, action);
    return changed;
  }
  Changed swapped(int one, int other) const {
    Changed changed = *this;
    std::swap(changed.actions[static_cast<std::size_t>(one)], changed.actions[static_cast<std::size_t>(other)]);
    return changed;
  }
};

inline const Changed right{step_of_two_blocks()};

}  // namespace shardbook::tests
