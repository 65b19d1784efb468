// comm/flight: what has this rank called, and who has not come?
//
// A rank has a log of each of its communicators (flight_log.hpp). They are read on any thread when ranks compare: each
// writes an account of its own, and from all of them check/flight.hpp judges. watch.hpp asks when a call waits too long.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/check/flight.hpp"
#include "engine/comm/flight_log.hpp"
#include "engine/mesh/mesh.hpp"
#include "engine/world/world.hpp"

namespace shardbook::comm {

// All of one rank. Logs stay until it goes.
class Flight {
 public:
  // A second communicator of the same group is told apart by a number: "tp 2".
  FlightLog& add(const mesh::Group& group);
  std::vector<FlightLog*> logs() const;
  // What the rank says of itself (world::World::set_account). Any thread.
  std::string account(int world_size) const;
  // On the rank's own thread, after every step. Of one in FlightLog::claimed_every ranks claim what they have called.
  void step_issued(std::int64_t step);
  // Steps that were claimed since, in order, and what of each. Any thread.
  struct Claims {
    std::int64_t step = 0;
    std::vector<world::Claim> claims;
  };
  std::vector<Claims> claims_after(std::int64_t step) const;
  // Of all that was called so far. On the rank's own thread.
  std::vector<world::Claim> claims_now() const;
  // How long the call waits that waits longest; 0 where none does.
  base::Nanoseconds longest_wait(base::Nanoseconds now) const;

 private:
  mutable std::mutex mutex_;   // of the list, which grows while communicators are made; the calling thread reads it without
  std::vector<std::unique_ptr<FlightLog>> logs_;
  std::atomic<std::int64_t> claimed_ = -1;   // the last step that was
};

// What account() wrote; nothing where it is damaged.
std::optional<check::FlightAccount> read_account(std::string_view bytes);
// Asks all ranks and judges. Throws base::Failure if the run failed. Any thread.
check::Verdict ask_and_judge(world::World& world, std::chrono::milliseconds patience);
check::Verdict judge(const std::vector<world::Account>& accounts);
// Collective, and on the ranks' own threads: have ranks that belong together called the same? Throws base::Failure, which
// says what they have called, where they have not: with NCCL two calls that differ may meet, and end with wrong numbers.
void compare_flights(world::World& world, const Flight& flight);

}  // namespace shardbook::comm
