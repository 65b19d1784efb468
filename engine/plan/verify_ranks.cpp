// The plans of several ranks: do they call each other at the same places?
#include <algorithm>

#include "engine/base/check.hpp"
#include "engine/plan/verify.hpp"

namespace shardbook::plan {

using base::text;

namespace {

// What an action calls together with others, in words that are equal where the calls match.
std::string call_of(const Action& action, const Network& network) {
  const std::string& name = network.units[static_cast<std::size_t>(action.unit)].name;
  if (action.kind == Kind::gather) return text("gather of ", name, *action.axis != 0 ? text(" over ", action.axis) : "");
  return text("reduction of ", name, action.units > 1 ? text(" and ", action.units - 1, " more") : "", " over ", action.axis);
}

struct Call {
  std::size_t action = 0;
  std::string what;
};

// A rank's collectives, in order.
std::vector<Call> calls_of(const Plan& plan, const Network& network) {
  std::vector<Call> calls;
  for (std::size_t at = 0; at < plan.actions.size(); ++at) {
    if (communicates(plan.actions[at].kind)) calls.push_back({at, call_of(plan.actions[at], network)});
  }
  return calls;
}

}  // namespace

std::optional<Problem> problem_of(const std::vector<Plan>& plans, const std::vector<Network>& networks) {
  SHARDBOOK_CHECK_EQ(plans.size(), networks.size(), "plans and networks");
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    if (auto problem = problem_of(plans[rank], networks[rank], static_cast<int>(rank))) return problem;
  }
  if (plans.empty()) return std::nullopt;

  // The first call in which a rank differs from rank 0. Each would wait in its own for the other, for ever.
  const std::vector<Call> expected = calls_of(plans[0], networks[0]);
  for (std::size_t rank = 1; rank < plans.size(); ++rank) {
    const std::vector<Call> calls = calls_of(plans[rank], networks[rank]);
    for (std::size_t n = 0; n < std::max(expected.size(), calls.size()); ++n) {
      auto said = [&](const std::vector<Call>& from, const Plan& plan) {
        if (n >= from.size()) return std::string("calls no more");
        return text("calls the ", from[n].what, " (action ", from[n].action, ", ", line_of(plan.actions[from[n].action]), ")");
      };
      if (n < expected.size() && n < calls.size() && expected[n].what == calls[n].what) continue;
      const std::size_t action = n < calls.size() ? calls[n].action : plans[rank].actions.size();
      return Problem{static_cast<int>(rank), action,
                     text("ranks wait for each other for ever: as collective ", n, " rank 0 ", said(expected, plans[0]), " where rank ", rank, " ", said(calls, plans[rank]))};
    }
  }
  return std::nullopt;
}

}  // namespace shardbook::plan
