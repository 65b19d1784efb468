#include "engine/plan/uses.hpp"

#include <algorithm>
#include <tuple>

namespace shardbook::plan {

Uses::Uses(const Plan& plan, const Network& network) : of_unit_(network.units.size()) {
  // Join what one unit does for one micro-batch in one direction
  std::map<std::tuple<int, Phase, int>, std::size_t> known;
  for (std::size_t at = 0; at < plan.actions.size(); ++at) {
    const Action& action = plan.actions[at];
    if (!computes(action.kind)) continue;
    const int unit = network.layers[static_cast<std::size_t>(action.layer)].unit;
    const auto [entry, is_new] = known.try_emplace({unit, action.phase, action.micro_batch}, uses_.size());
    if (is_new) uses_.push_back({unit, action.phase, action.micro_batch, at, at});
    else uses_[entry->second].last = at;
  }
  for (std::size_t use = 0; use < uses_.size(); ++use) {
    ending_[uses_[use].last] = use;
    of_unit_[static_cast<std::size_t>(uses_[use].unit)].push_back(use);
  }
}

const Use* Uses::beginning(std::size_t at) const {
  const auto use = std::lower_bound(uses_.begin(), uses_.end(), at, [](const Use& use, std::size_t place) { return use.first < place; });
  return use != uses_.end() && use->first == at ? &*use : nullptr;
}

const Use* Uses::ending(std::size_t at) const {
  const auto use = ending_.find(at);
  return use == ending_.end() ? nullptr : &uses_[use->second];
}

std::vector<const Use*> Uses::ahead(std::size_t at, int count, bool across_micro_batches) const {
  auto use = std::upper_bound(uses_.begin(), uses_.end(), at, [](std::size_t place, const Use& use) { return place < use.first; });
  std::vector<const Use*> found;
  const int micro_batch = use == uses_.begin() ? 0 : std::prev(use)->micro_batch;
  for (; count > 0 && use != uses_.end(); --count, ++use) {
    if (across_micro_batches || use->micro_batch == micro_batch) found.push_back(&*use);
  }
  return found;
}

const Use* Uses::next_of(int unit, std::size_t at) const {
  const std::vector<std::size_t>& mine = of_unit_[static_cast<std::size_t>(unit)];
  const auto next = std::upper_bound(mine.begin(), mine.end(), at, [this](std::size_t place, std::size_t use) { return place < uses_[use].first; });
  return next == mine.end() ? nullptr : &uses_[*next];
}

const Use* Uses::first_of(int unit) const {
  const std::vector<std::size_t>& mine = of_unit_[static_cast<std::size_t>(unit)];
  return mine.empty() ? nullptr : &uses_[mine.front()];
}

}  // namespace shardbook::plan
