// comm/loopback/meetings: who has come to which call of a group?
//
// Each call of a communicator is a meeting. A rank that gets there leaves what it brings and goes on with its other
// streams; the last to arrive does the work for all, reading and writing the others' memory, and says that it is done.
// A collective is a meeting of all, a send and its receive one of two.
//
// Meetings take place at a table: plain numbers in memory that the group's ranks see, so the same code serves threads
// and processes. It has a few places, and the meeting of ticket t is at place t mod so many, as its round t div so many.
// All that says how far a place is only grows, and nothing is ever cleared:
//   came     round + 1: this rank has left what it brings. Its own rank alone writes it
//   arrived  how many have come, over all rounds: who makes it (round + 1) · expected is the last
//   done     round + 1: the last to arrive has done the work
// No lock is held anywhere: who is killed or stopped in the middle stops nobody who does not need it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/loopback/exchange.hpp"
#include "engine/comm/loopback/roll.hpp"

namespace shardbook::comm {

// What an address of Visit::in and out means.
class Memories {
 public:
  virtual ~Memories() = default;
  virtual std::uint64_t address_of(const void* memory) = 0;   // of this rank's own
  virtual std::byte* at(base::Rank rank, std::uint64_t address, base::Bytes bytes) = 0;
};

class Meetings {
 public:
  // `table`: zeroed, of bytes_for(ranks in the group), seen by all of them. All outlives this.
  Meetings(Roll& roll, Memories& memories, std::string axis, std::vector<base::Rank> ranks, std::byte* table);
  static std::size_t bytes_for(int size);

  const std::string& axis() const { return axis_; }
  const std::vector<base::Rank>& ranks() const { return ranks_; }

  // True when this call of the rank has been carried out. Asked again until then. `in` and `out` of the visit are
  // pointers here. Throws base::Failure on the last to arrive, when the ranks' calls do not fit together.
  bool attend(int index, const Visit& visit, const char* file, const std::int64_t* send, const std::int64_t* receive);

  // A call that a rank has come to, and that is not done.
  struct Waiting {
    base::Rank rank = 0;
    base::Nanoseconds since = 0;        // steady clock
    std::string call, site;             // "all_reduce 3 over tp", "8 f32, forward; engine/model/block.cpp:20"
    std::vector<base::Rank> missing;    // where none is: the others, one of whom does the work
  };
  // Those of this rank; of all ranks of the group for -1, which is for when nothing moves any more.
  std::vector<Waiting> waiting(int index = -1) const;

 private:
  struct Entry;
  struct Place;
  // Where one visit goes: which of the place's entries, and how many make a meeting there.
  struct Seat {
    Place* place;
    int entry, expected;
    std::uint64_t round;
  };

  Place& collective_place(std::size_t number) const;
  Place& pair_place(int from, int to, std::size_t number) const;
  Seat seat_of(int index, const Visit& visit) const;
  void work(const Seat& seat) const;
  void tell(Place& place, const std::vector<int>& indices, int only, std::vector<Waiting>& found) const;

  Roll& roll_;
  Memories& memories_;
  std::string axis_;
  std::vector<base::Rank> ranks_;
  int size_;
  std::byte* table_;
};

}  // namespace shardbook::comm
