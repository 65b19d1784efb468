// world/inquiry: what do ranks say of themselves, and do they say the same?
//
// Two small pieces of bookkeeping that threads and the control server share. Claims compares what ranks that belong
// together must have alike, such as the hash of the collectives that each has called by the end of a step. An Inquiry
// gathers what every rank says of itself when one asks, and gives up those that do not answer.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/world/world.hpp"

namespace shardbook::world {

class Claims {
 public:
  // A rank's claim of this step. The first two that differ are told, once in a run.
  std::optional<Dispute> add(base::Rank rank, std::int64_t step, const Claim& claim);
  // How many wait for the claims of others.
  std::size_t open() const { return open_.size(); }

 private:
  // Ranks are a step or two apart; more than so many are open only where a rank claims what no other does.
  static constexpr std::size_t most_open = 1 << 14;
  struct First {
    base::Rank rank;
    std::uint64_t value;
    int missing;
  };
  std::map<std::pair<std::int64_t, std::uint64_t>, First> open_;
  bool told_ = false;
};

class Inquiry {
 public:
  using Clock = std::chrono::steady_clock;

  // A rank asks. True: the others are to be asked now; else an inquiry is under way, and it gets that one's answers.
  bool ask(base::Rank rank, int size, std::chrono::milliseconds patience);
  void answer(base::Rank rank, std::string said);
  // All have answered that `expected` says can, or it is long enough.
  bool over(const std::vector<bool>& expected) const;
  bool under_way() const { return !askers_.empty(); }
  // Who asked, and what each rank said; a fresh start for the next.
  std::pair<std::vector<base::Rank>, std::vector<std::optional<std::string>>> take();

 private:
  std::vector<base::Rank> askers_;
  std::vector<std::optional<std::string>> said_;
  Clock::time_point end_;
};

}  // namespace shardbook::world
