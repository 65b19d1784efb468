// check/flight: collectives hang; which rank is to blame, and for what?
//
// Each rank keeps the last calls of each of its communicators and how far each has come. When one does not end, the
// ranks lay what they have side by side, and the first of these that holds is told:
//   1. a rank says nothing: it is stopped, or gone;
//   2. ranks of a group have called different things, which the group's book shows (ledger.hpp): where they part is told
//      with both ranks and both lines, and what explains most of what follows: left out, one too many, swapped, ...;
//      or one rank of an all-to-all expects of another what that does not send;
//   3. a rank has not called what others wait in, and waits in no collective itself: it does something else;
//   4. ranks wait for each other in a circle, each in a call that the next has not come to, or has called behind the one
//      in which it waits: the calls of a communicator on one stream run in the order in which they were called;
//   5. all have called it, and it does not end: a stream is behind something else, or the device or network has stopped.
// Who waits because another waits is not blamed.
//
// Pure: no clock, no thread, no device. Every backend's ranks are judged by this.
//
// Sources: pytorch/pytorch @911ce84b, torch/csrc/distributed/c10d/FlightRecorder.hpp (what an entry keeps: a sequence
// number of collectives and another of pairs, sizes, type, state, when); @016d4c99,
// torch/distributed/flight_recorder/components/utils.py (dumps of ranks matched by sequence number, offline). Here the
// ranks do it themselves, before they end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/check/ledger.hpp"

namespace shardbook::check {

// How far a call has come, as its rank knows: called (the host may still be in it), issued to its stream, ended.
enum class CallState : std::uint8_t { called, issued, ended };

struct FlightCall {
  std::uint64_t number = 0;     // among the group's collectives, or among the sends from one rank to another; from 0
  program::OpKind kind = program::OpKind::all_reduce;
  base::DType dtype = base::DType::f32;
  std::uint8_t reduction = 0;   // of reductions: which
  base::Bytes bytes = 0;
  int peer = -1;                // root or partner, as index in the group
  program::StreamId stream = 0; // as this rank numbers them
  program::Phase phase = program::Phase::setup;
  int layer = -1, micro_batch = -1;
  std::int64_t step = -1;       // -1: outside of steps
  std::string name, part, file; // of the op, of the piece of a layer, of the source
  std::uint32_t line = 0;
  CallState state = CallState::called;
  base::Nanoseconds waited = 0; // since it was called, or since the one before it ended; 0 where it has ended
  // Called by the launch of a graph: as which of the calls of this communicator that the graph holds, and of how many. 0: by the host.
  std::uint32_t in_graph = 0, graph_calls = 0;
  // Of an all-to-all, by index in the group: bytes for each rank, and bytes from each. Empty where they are no longer known.
  std::vector<base::Bytes> sends, receives;
};

// How many sends and receives one rank has called with another of the group.
struct PairCount {
  int peer = 0;
  std::uint64_t sent = 0, received = 0;
};

// One communicator on one rank.
struct FlightPage {
  std::string axis;
  std::vector<base::Rank> ranks;
  std::uint64_t collectives = 0;    // called so far
  std::vector<PairCount> pairs;
  std::vector<FlightCall> calls;    // the last ones, in the order in which they were called
};

// What one rank has to say; `absent` says why it has nothing to: "is stopped".
struct FlightAccount {
  base::Rank rank = 0;
  std::string name;                 // "rank 3 (pid 4711 on gpu07)"
  std::string absent;
  std::int64_t step = -1;           // that it issues, or issued last
  base::Nanoseconds quiet = 0;      // since it last called anything
  std::vector<FlightPage> pages;
};

enum class Blame : std::uint8_t { nobody, absent, differs, missing, circle, stuck };
const char* name_of(Blame blame);

struct Verdict {
  Blame blame = Blame::nobody;
  std::vector<base::Rank> ranks;            // who is to blame; of `differs` the odd one
  std::optional<Difference> difference;     // of `differs`; none where only the reduction differs
  std::string sentence;                     // "" for nobody
  std::string side_by_side;                 // a line a rank: where it is
  base::Rank speaker = -1;                  // the lowest rank that waits, to say it for all; -1: none does
};

// REQUIRES: one account a rank, by rank; pages of one group agree on its ranks. Ranks outside of accounts are passed over.
Verdict verdict_of(const std::vector<FlightAccount>& accounts);

}  // namespace shardbook::check
