// comm/loopback/hall: what do the ranks of a host run share?
//
// A roll of who is here, and a table for each group. For threads both are memory of their process (loopback.hpp), for
// processes they are in memory that all of them map (processes.hpp). A Communicator and its Backend see no difference.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/loopback/meetings.hpp"
#include "engine/comm/loopback/roll.hpp"
#include "engine/device/host/host_device.hpp"

namespace shardbook::comm {

enum class Condition : std::uint8_t {
  runs,      // as far as can be told
  stopped,   // its process is
  gone,      // it has failed, or its process has ended
};

class Hall {
 public:
  virtual ~Hall() = default;
  virtual Roll& roll() = 0;
  // The meetings of a group. Collective, as Backend::communicator is.
  virtual Meetings& meetings(const mesh::Group& group) = 0;
  // Of all groups that are known here.
  virtual std::vector<Meetings*> all() = 0;
  // "rank 3 (pid 4711)", and whether it can come.
  virtual std::string name_of(base::Rank rank) = 0;
  virtual Condition condition_of(base::Rank rank) = 0;
  virtual std::string kind() const = 0;   // "loopback"
};

// How long a rank waits for others that do not come. Zero: for ever.
struct Patience {
  std::chrono::milliseconds timeout{0};
  // With one that is stopped it is over earlier; one that is gone is left to the world to name, for so long; and where another
  // is stopped, so long whoever waits for that one may be the first to say so.
  static constexpr std::chrono::milliseconds most_for_stopped{10'000}, more_for_gone{3'000}, more_beside_stopped{500};
};

// This rank's backend in a hall, which outlives it.
std::unique_ptr<Backend> make_backend_in(Hall& hall, device::HostDevice& device, Patience patience);

}  // namespace shardbook::comm
