// comm/flight_log: what has one communicator called last, and how far has each call come?
//
// A ring of its last calls: what, how much, by which line, and whether it was issued and has ended. Beside it run hashes of
// all collectives so far, and of what went from one rank to another (sends beside receives, and the parts of all-to-alls),
// which ranks of a group compare every few steps (world::Claim), so that a difference is named though nothing hangs. Of a pair
// between which a rank has called nothing yet it claims nothing: its partner's sends are missed when flights are compared at the end.
//
// Whoever knows says that a call has ended: on the host the call itself, on GPUs an event that a thread looks at.
//
// A call that is captured into a graph does not run, and no host calls it when it does: launching the graph calls all that it
// holds, once more with each launch. They are written down again, under tickets of their own, so what hangs within a graph is
// named as what hangs outside of one: the step, the call, its line, and who has not come.
//
// Invariants
//   - One thread calls: the rank's own. It takes no lock, allocates nothing and waits for nobody: a reader that is
//     paused in the middle of an entry cannot hold a step up.
//   - Of an entry that is being written over, a reader gets nothing rather than half of it. Every field is an atomic;
//     `ticket` is spoiled before the others are written and set after them, and a reader looks at it before and after.
//     Fields are stored with release and loaded with acquire, so whoever has seen one that is newer sees the spoiled
//     ticket, too. No fence is needed, and on x86 each of these is a plain move.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/check/flight.hpp"
#include "engine/device/device.hpp"
#include "engine/world/world.hpp"

namespace shardbook::comm {

class FlightLog {
 public:
  // A rank is at most a step or two behind what its host has issued; more calls than this are under way in few runs,
  // and then the oldest are no longer told apart.
  static constexpr std::size_t kept = 512;
  // Steps from one claim to the next, and claims that are kept: those of 1024 steps, of which a watch sees every one though
  // it looks five times a second and steps take a fifth of a millisecond.
  static constexpr std::int64_t claimed_every = 16;
  static constexpr int claims_kept = 64;

  FlightLog(std::string axis, std::vector<base::Rank> ranks, int index_of_me);

  // All-to-alls whose parts are kept.
  static constexpr std::uint64_t parts_kept = 64;

  // Of an all-to-all, by index in the group: elements for each rank, and from each. Read before the call returns.
  struct Parts {
    const std::int64_t* send = nullptr;
    const std::int64_t* receive = nullptr;
  };
  // On the rank's own thread: it calls, as ticket 0, 1, 2, ...; its host has come out of the call; a step was issued.
  void called(std::uint64_t ticket, const device::Lane& lane, const program::OpDesc& desc, std::uint8_t reduction, Parts parts);
  void issued(std::uint64_t ticket);
  void step_issued(std::int64_t step);
  // The same thread. What is called from capture_begins() to capture_ends() goes into a graph, whose first launch it is called
  // for; it counts as issued when that is said after the launch. Each later launch calls it again, as tickets from `ticket` on.
  class Captured;
  void capture_begins();
  Captured capture_ends();
  void called_again(std::uint64_t ticket, const Captured& captured, std::int64_t step);
  // Any thread. A call, or all up to and with this one, has ended. What is no longer kept is passed over.
  void ended(std::uint64_t ticket);
  void ended_through(std::uint64_t ticket);

  // Tickets that are issued, not ended, and still kept: [first, last), empty where first == last. Any thread.
  struct Range {
    std::uint64_t first = 0, last = 0;
  };
  Range under_way() const;
  // Since when the oldest call that has not ended has had its turn; 0 where there is none.
  base::Nanoseconds waits_since() const;
  // A call was made last then; 0 where none was.
  base::Nanoseconds last_called() const;

  // The last calls, at most so many, and in any case around the oldest that has not ended.
  check::FlightPage page(base::Nanoseconds now, std::size_t most) const;
  // Of all collectives up to the end of this step, and of each rank to or from which anything went. Nothing where the
  // step is not one that is claimed, has not been issued, or was too long ago. Any thread.
  std::vector<world::Claim> claims(std::int64_t step) const;
  // Of all so far, and of all ranks. On the rank's own thread.
  std::vector<world::Claim> claims_now() const;
  const std::string& axis() const { return axis_; }
  // Whether it is one of this group's.
  bool is_of(const std::string& axis, const std::vector<base::Rank>& ranks) const {
    return ranks == ranks_ && (axis_ == axis || axis_.rfind(axis + " ", 0) == 0);
  }

 private:
  // What a call is, and the same as it lies in the ring.
  struct What {
    std::uint64_t number = 0;
    program::OpKind kind{};
    base::DType dtype{};
    std::uint8_t reduction = 0;
    program::Phase phase{};
    std::int16_t layer = -1, micro_batch = -1;
    int peer = -1;
    base::Bytes bytes = 0;
    std::int64_t step = -1;
    const char* name = "";
    const char* part = "";
    const char* file = "";
    std::uint32_t line = 0;
    base::Nanoseconds at = 0;
    std::uint32_t in_graph = 0, graph_calls = 0;   // which of how many calls of a graph, from 1 on; 0: of none
    std::uint64_t parts = 0;                       // which all-to-all's, from 1 on; 0: of none
    program::StreamId stream = 0;
  };
  struct Entry {
    std::atomic<std::uint64_t> ticket = no_ticket;
    std::atomic<std::uint64_t> ended = 0;           // one more than the last ticket of this place that has; it only grows
    std::atomic<std::uint64_t> number, small;       // small: kind, dtype, reduction, phase, layer, micro-batch
    std::atomic<std::uint64_t> graph, parts;        // graph: which call of one, and of how many
    std::atomic<int> peer;
    std::atomic<std::uint32_t> line, stream;
    std::atomic<base::Bytes> bytes;
    std::atomic<std::int64_t> step;
    std::atomic<const char*> name, part, file;
    std::atomic<base::Nanoseconds> at;
  };
  struct Pair {
    std::atomic<std::uint64_t> sent = 0, received = 0;
    std::uint64_t sent_hash = 0, received_hash = 0;   // the calling thread's own; 0: nothing went
  };
  static constexpr std::uint64_t no_ticket = ~std::uint64_t{0};

  Entry& entry(std::uint64_t ticket) { return ring_[ticket % kept]; }
  const Entry& entry(std::uint64_t ticket) const { return ring_[ticket % kept]; }
  void write(std::uint64_t ticket, const What& what);
  // Gives it its number, and puts it into the hash, the ring and the counts.
  void call(std::uint64_t ticket, What what);
  // Writes down and mixes into the hashes the parts of an all-to-all, in bytes: those for each rank, then those from each.
  // Which all-to-all's they are, from 1 on.
  std::uint64_t keep(const base::Bytes* parts, base::DType dtype);
  // The same, where they are still kept.
  bool read_parts(std::uint64_t which, std::vector<base::Bytes>& sends, std::vector<base::Bytes>& receives) const;
  // What is claimed has a place: first all collectives, then what went to each rank, then what came from each.
  std::size_t claimed_places() const { return 1 + 2 * ranks_.size(); }
  world::Claim claim_of(std::size_t place, std::uint64_t value) const;
  std::uint64_t value_now(std::size_t place) const;
  // Nothing where it is no longer there, or just being written over.
  std::optional<What> read(std::uint64_t ticket) const;
  static std::uint64_t first_kept(std::uint64_t calls) { return calls > kept ? calls - kept : 0; }
  std::uint64_t oldest(std::uint64_t calls) const { return std::max(ended_.load(), first_kept(calls)); }
  bool has_ended(std::uint64_t ticket) const { return entry(ticket).ended.load() == ticket + 1; }
  void mark_ended(std::uint64_t ticket);
  void advance();

  const std::string axis_;
  const std::vector<base::Rank> ranks_;
  const std::uint64_t what_;
  // Of tickets: all below have been called, issued, have ended.
  std::atomic<std::uint64_t> calls_ = 0, issued_ = 0, ended_ = 0;
  std::atomic<std::uint64_t> collectives_ = 0;
  std::uint64_t hash_ = 0;                             // the calling thread's own, as are:
  std::vector<What> captured_;
  std::vector<std::vector<base::Bytes>> captured_parts_;   // of the all-to-alls among these, in order
  bool capturing_ = false;
  std::vector<base::Bytes> parts_now_;
  std::uint64_t all_to_alls_ = 0;
  std::size_t me_ = 0;                                 // index in the group
  std::vector<Pair> pairs_;                            // by index in the group
  std::atomic<base::Nanoseconds> called_at_ = 0, ended_at_ = 0;
  std::vector<Entry> ring_;
  std::vector<std::atomic<std::uint64_t>> parts_of_;   // which all-to-all's lie there
  std::vector<std::atomic<base::Bytes>> parts_;        // a row each
  std::vector<std::atomic<std::int64_t>> claimed_steps_;
  std::vector<std::atomic<std::uint64_t>> claimed_values_;   // a row each
};

// What one communicator calls whenever a graph is launched.
class FlightLog::Captured {
 public:
  std::size_t size() const { return calls_.size(); }

 private:
  friend class FlightLog;
  std::vector<What> calls_;
  std::vector<std::vector<base::Bytes>> parts_;   // of the all-to-alls among these, in order
};

}  // namespace shardbook::comm
