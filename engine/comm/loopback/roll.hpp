// comm/loopback/roll: who is here, and who waits?
//
// A sheet of plain numbers, in memory that all ranks of a run see: that of their process, or memory shared between
// processes. Each rank writes its own row, and all count one number up, `events`, when something has ended. Nobody
// ever holds a lock, so a rank that is killed or stopped at any place holds up nobody who does not need it.
//
// Ranks that all wait for each other are found out at once, without a time limit: a rank that can do nothing writes
// down which events it had seen when it looked. When all rows of ranks that are here show the number that `events`
// still has, nobody can go on, for only an event could change that. (It is how Mattern 1987, "Algorithms for
// distributed termination detection", counts: only that all see the counter here.)
#pragma once

#include <array>
#include <cstdint>

#include "engine/base/types.hpp"

namespace shardbook::comm {

inline constexpr int most_ranks = 1024;

enum class Presence : std::uint32_t { unknown, expected, here, returned, failed };

// Zeros are a fresh one. All is read and written through std::atomic_ref: it may lie in memory that others map.
struct RollSheet {
  struct Row {
    std::uint32_t presence = 0;
    std::uint32_t waits = 0;      // 1: it can do nothing since it saw `looked`
    std::uint32_t looked = 0;
  };
  std::uint32_t events = 0;
  std::uint32_t sleepers = 0;
  std::uint32_t ranks = 0;        // no rank has a number above
  std::array<Row, most_ranks> rows{};
};

class Roll {
 public:
  // REQUIRES: the sheet outlives this.
  explicit Roll(RollSheet& sheet) : sheet_(&sheet) {}

  // A rank is a member of some group, and will come.
  void expect(base::Rank rank);
  // It has come; it leaves, because it failed or has returned.
  void enter(base::Rank rank);
  void leave(base::Rank rank, bool by_failure);
  // Something ended: whoever waits looks again.
  void changed();

  // Returns when something has ended since `seen`, the events that the caller had seen when it last looked at all that
  // it waits for, or after 20 ms. True: all ranks wait, and nothing has ended since each of them looked.
  bool await_change(base::Rank rank, std::uint32_t& seen);

  Presence presence(base::Rank rank) const;
  bool waits(base::Rank rank) const;
  int ranks() const;   // that are known so far

 private:
  RollSheet::Row& row_of(base::Rank rank) const;
  bool all_wait(std::uint32_t seen) const;

  RollSheet* sheet_;
};

}  // namespace shardbook::comm
