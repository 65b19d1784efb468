#include "engine/world/inquiry.hpp"

#include <algorithm>

namespace shardbook::world {

std::optional<Dispute> Claims::add(base::Rank rank, std::int64_t step, const Claim& claim) {
  if (told_ || claim.of < 2) return std::nullopt;
  const auto [at, is_first] = open_.try_emplace({step, claim.what}, First{rank, claim.value, claim.of - 1});
  if (is_first) {
    if (open_.size() > most_open) open_.erase(open_.begin());
    return std::nullopt;
  }
  First& first = at->second;
  if (first.value != claim.value) {
    told_ = true;
    const Dispute found{step, claim.what, std::min(first.rank, rank), std::max(first.rank, rank)};
    open_.clear();
    return found;
  }
  if (--first.missing == 0) open_.erase(at);
  return std::nullopt;
}

bool Inquiry::ask(base::Rank rank, int size, std::chrono::milliseconds patience) {
  const bool is_first = askers_.empty();
  if (is_first) {
    said_.assign(static_cast<std::size_t>(size), std::nullopt);
    end_ = Clock::now() + patience;
  }
  if (std::find(askers_.begin(), askers_.end(), rank) == askers_.end()) askers_.push_back(rank);
  return is_first;
}

void Inquiry::answer(base::Rank rank, std::string said) {
  if (under_way() && static_cast<std::size_t>(rank) < said_.size()) said_[static_cast<std::size_t>(rank)] = std::move(said);
}

bool Inquiry::over(const std::vector<bool>& expected) const {
  if (Clock::now() >= end_) return true;
  for (std::size_t rank = 0; rank < said_.size(); ++rank) {
    if (expected[rank] && !said_[rank]) return false;
  }
  return true;
}

std::pair<std::vector<base::Rank>, std::vector<std::optional<std::string>>> Inquiry::take() {
  return {std::exchange(askers_, {}), std::exchange(said_, {})};
}

}  // namespace shardbook::world
