// comm/loopback: collectives between ranks that are threads of one process.
//
// Each call of a communicator is a meeting. A rank that gets there leaves its pointers and goes on with
// its other streams; the last to arrive does the work for all, reading and writing the others'
// memory. Sums run over ranks in group order, whoever comes last: one order, equal bits everywhere.
// The exact checks of nccl-tests are possible because of that.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

#include "engine/comm/comm.hpp"
#include "engine/device/host/host_device.hpp"

namespace shardbook::comm {

class Meetings;

// What the ranks of one process share. Made once, before the rank threads.
class LoopbackHub {
 public:
  LoopbackHub();
  ~LoopbackHub();

  // The meetings of a group, the same object for all its ranks.
  Meetings& meetings(const mesh::Group& group);
  // Something ended: whoever waits for peers looks again.
  void changed();
  // Returns when something ended since the caller's last call, or after 20 ms.
  void await_change(std::uint64_t& seen);

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::uint64_t version_ = 0;
  std::map<std::pair<std::string, std::vector<base::Rank>>, std::unique_ptr<Meetings>> meetings_;
};

// REQUIRES: `device` is a HostDevice in a thread of this process. The hub outlives the backend.
std::unique_ptr<Backend> make_loopback_backend(LoopbackHub& hub, device::Device& device);

}  // namespace shardbook::comm
