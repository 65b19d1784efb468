// cause/around: which calls does a collective take, and how close stand what makes its data and what needs them?
//
// Issuing one takes more than its own call: the records and waits on its stream, and those that it joins on others. Private to
// causes.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "engine/program/program.hpp"

namespace shardbook::cause {

struct Around {
  std::set<std::uint32_t> commands;    // of the program: the collective's own among them
  int kernels_until_needed = -1;       // computing kernels issued between it and the first wait for it; -1: none waits
  int kernels_since_made = -1;         // likewise between the record of what it awaits and it
};

class Calls {
 public:
  // The program must outlive this. O(n log n) of its commands, once.
  explicit Calls(const program::Program& program);
  // Of the collective that command `at` issues. O(log n) a record or wait beside it.
  Around around(std::uint32_t at) const;

 private:
  using Event = std::pair<program::EventId, std::uint32_t>;   // and how often it had been recorded
  static Event event_of(const program::Command& command) { return {command.event, command.generation}; }
  // Computing kernels issued from command `from` up to, and without, `to`.
  int kernels_between(std::uint32_t from, std::uint32_t to) const { return kernels_[to] - kernels_[from]; }
  // The record that a wait is for, the wait that comes first for a record on a stream other than its own; none: the end.
  std::uint32_t record_before(std::uint32_t wait) const;
  std::uint32_t wait_after(std::uint32_t record) const;

  const program::Program& program_;
  std::uint32_t end_;
  std::vector<int> kernels_;           // before each command, and in all
  std::map<Event, std::vector<std::uint32_t>> records_, waits_;   // ascending
};

}  // namespace shardbook::cause
