// check/ledger: do the ranks of each group call the same collectives in the same order?
//
// A collective is one call on every rank of its group: the same kind, of the same size and type, at the same place
// in the group's order. Where two ranks differ, both wait for ever, or one takes the other's bytes for its own. So
// each group has a book with a page a rank, and the pages are read side by side. The first line that differs is
// told with both ranks and both call sites, and what was done wrong is what explains most of the lines after it:
// a call that is missing, one too many, two in another order, one that is of another kind or size, a rank that stops.
//
// Of an all-to-all the bytes may differ, since each rank sends as much as it has. A send has its page at the sender
// and at the receiver: the n-th send to a rank meets its n-th receive from there, in bytes, type and step. A call of
// another step is another call, so who leaves one out is not taken for who makes the next one too early.
//
// Sources: pytorch/pytorch @883a873e, tools/flight_recorder/components/builder.py, build_collectives (all ranks' calls matched by group and sequence,
// states compared field by field, the first mismatch told); NCCL's user guide, "Collective Operations": same order,
// same count and type on all ranks, or undefined behaviour.
#pragma once

#include <string>
#include <vector>

#include "engine/check/races.hpp"
#include "engine/program/program.hpp"

namespace shardbook::check {

// What one rank issued, step after step.
struct RankSteps {
  base::Rank rank = 0;
  const program::Catalogue* catalogue = nullptr;
  Steps steps;
  std::vector<std::int64_t> numbers = {};   // of the steps, which ranks have in common; empty: 0, 1, 2, ...
};

enum class Difference : std::uint8_t {
  stops,     // `odd` has no further collective, `usual` has
  missing,   // `odd` leaves one out
  extra,     // `odd` has one more
  swapped,   // `odd` has two in the other order
  kind, bytes, dtype, root,
};  // a call of another step is `missing` where that step is a later one, else `extra`
const char* name_of(Difference difference);

// The first difference in one group's book (or between one sender and its receiver).
struct Divergence {
  program::GroupInfo group;
  Difference difference = Difference::stops;
  base::Rank usual = 0, odd = 0;    // most ranks do as `usual`; of two, the lower one
  std::size_t place = 0;            // so many calls before it are alike
  Place usual_call, odd_call;       // the calls that differ; of `stops`, odd's last one (op is no_op if it has none)
  std::string sentence;
};

// One divergence a group at most, in order of axis and ranks. Groups whose other ranks are not given are passed over,
// as are missing ranks of a group. REQUIRES: no rank twice.
std::vector<Divergence> divergences(const std::vector<RankSteps>& ranks);

}  // namespace shardbook::check
