// check/hang: would the queues of all ranks ever run empty?
//
// Ranks whose groups agree (ledger.hpp) may still wait for each other for ever: one has its tp collective before its
// fsdp collective on a stream, the other has them the other way round; two ranks send to each other before either
// receives. So the programs are run without times: a stream goes on while its head can, a wait while its event's
// record has been passed, a collective once it is the head of a stream on every rank of its group, a send once its
// receive is a head too; a host goes on issuing until it waits. If nothing moves and something is left, that is a
// hang, whatever the sizes. What can move is never undone by what else moves, so one order of moving tells for all.
//
// This is the model of queues that are each in order and all make way for each other; a device that lets too few
// collectives run at once may hang where this does not.
//
// Source: Kahn 1974, "The semantics of a simple language for parallel programming" (why the order does not matter).
#pragma once

#include <string>
#include <vector>

#include "engine/check/ledger.hpp"

namespace shardbook::check {

// What a rank stands at when nothing moves any more.
struct Stuck {
  base::Rank rank = 0;
  Place call;              // the collective, send or receive at the head of a stream
  program::StreamId stream = 0;
};
struct Hang {
  std::vector<Stuck> stuck;  // by rank and stream; empty: no rank hangs
  std::string sentence;      // who stands where; "" if none
};

// All ranks of every group must be given: a missing one is never waited for. Linear in the commands.
Hang hang(const std::vector<RankSteps>& ranks);

}  // namespace shardbook::check
