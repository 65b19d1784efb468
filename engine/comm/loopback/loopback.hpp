// comm/loopback: collectives between ranks that are threads of one process.
//
// Each call of a communicator is a meeting. A rank that gets there leaves its pointers and goes on with
// its other streams; the last to arrive does the work for all, reading and writing the others'
// memory. Sums run over ranks in group order, whoever comes last: one order, equal bits everywhere.
// The exact checks of nccl-tests are possible because of that.
//
// Ranks that all wait for each other are found out at once, without a time limit: see await_change.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

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
  // Returns when something ended since the caller's last call, or after 20 ms. Throws base::Failure, with what each
  // rank waits in, when all ranks wait here and nothing has ended since each of them looked: then nothing ever will.
  void await_change(std::uint64_t& seen);
  // A rank has come; it leaves, because it failed or has returned.
  void enter(base::Rank rank);
  void leave(bool by_failure);

 private:
  std::string deadlock();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::uint64_t version_ = 0;
  std::set<base::Rank> expected_, entered_;   // in any group; with a backend, now or once
  int present_ = 0, looked_ = 0;              // with a backend now; of those, waiting since `version_` was made
  bool failed_ = false;
  std::map<std::pair<std::string, std::vector<base::Rank>>, std::unique_ptr<Meetings>> meetings_;
};

// REQUIRES: `device` is a HostDevice in a thread of this process. The hub outlives the backend.
std::unique_ptr<Backend> make_loopback_backend(LoopbackHub& hub, device::Device& device);

}  // namespace shardbook::comm
