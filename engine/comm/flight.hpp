// comm/flight: what has this rank called, and how far has it come?
//
// Each communicator keeps its last calls in a ring: what, how much, by which line, and whether it was issued and has
// ended. It is written on the rank's own thread, two short locks a call and no allocation, and read on any other when
// ranks compare (check/flight.hpp judges, watch.hpp asks). Beside it runs a hash of all collectives so far, which ranks
// of a group compare once a step (world::Claim), so that a difference is named though nothing hangs.
//
// Whoever knows says that a call has ended: on the host the call itself, on GPUs an event that a thread looks at.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/check/flight.hpp"
#include "engine/device/device.hpp"
#include "engine/mesh/mesh.hpp"
#include "engine/world/world.hpp"

namespace shardbook::comm {

// One communicator's.
class FlightLog {
 public:
  // A rank is at most a step or two behind what its host has issued; more calls than this are under way in few runs,
  // and then the oldest are no longer told apart.
  static constexpr std::size_t kept = 512;

  FlightLog(std::string axis, std::vector<base::Rank> ranks);

  // On the rank's own thread: it calls, as ticket 0, 1, 2, ...; its host has come out of the call.
  void called(std::uint64_t ticket, const device::Lane& lane, const program::OpDesc& desc, std::uint8_t reduction);
  void issued(std::uint64_t ticket);
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
  // Of all collectives so far; sends and receives are of two ranks and left out.
  world::Claim claim() const;
  const std::string& axis() const { return axis_; }
  // Whether it is one of this group's.
  bool is_of(const std::string& axis, const std::vector<base::Rank>& ranks) const {
    return ranks == ranks_ && (axis_ == axis || axis_.rfind(axis + " ", 0) == 0);
  }

 private:
  struct Entry {
    std::uint64_t ticket = 0, number = 0;
    program::OpKind kind{};
    base::DType dtype{};
    std::uint8_t reduction = 0;
    check::CallState state{};
    program::Phase phase{};
    std::int16_t layer = -1, micro_batch = -1;
    int peer = -1;
    base::Bytes bytes = 0;
    std::int64_t step = -1;
    const char* name = "";
    const char* part = "";
    program::SourceLine where;
    base::Nanoseconds at = 0;
  };
  Entry& entry(std::uint64_t ticket) { return ring_[ticket % kept]; }
  const Entry& entry(std::uint64_t ticket) const { return ring_[ticket % kept]; }
  std::uint64_t first_kept() const { return calls_ > kept ? calls_ - kept : 0; }
  void advance();

  const std::string axis_;
  const std::vector<base::Rank> ranks_;
  const std::uint64_t what_;
  mutable std::mutex mutex_;
  std::uint64_t calls_ = 0, issued_ = 0, ended_ = 0;   // of tickets: all below have been called, issued, have ended
  std::uint64_t collectives_ = 0, hash_ = 0;
  std::vector<check::PairCount> pairs_;                // by index in the group
  base::Nanoseconds ended_at_ = 0;
  std::vector<Entry> ring_;
};

// All of one rank. Logs stay until it goes.
class Flight {
 public:
  // A second communicator of the same group is told apart by a number: "tp 2".
  FlightLog& add(const mesh::Group& group);
  std::vector<FlightLog*> logs() const;
  // What the rank says of itself (world::World::set_account). Any thread.
  std::string account(int world_size) const;
  std::vector<world::Claim> claims() const;
  // How long the call waits that waits longest; 0 where none does.
  base::Nanoseconds longest_wait(base::Nanoseconds now) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<FlightLog>> logs_;
};

// What account() wrote; nothing where it is damaged.
std::optional<check::FlightAccount> read_account(std::string_view bytes);
// Asks all ranks and judges. Throws base::Failure if the run failed. Any thread.
check::Verdict ask_and_judge(world::World& world, std::chrono::milliseconds patience);
check::Verdict judge(const std::vector<world::Account>& accounts);

}  // namespace shardbook::comm
