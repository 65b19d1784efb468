// comm/nccl/backend: a rank's communicators, from their making to their end, and the way into NCCL for their calls.
//
// The rank's own thread makes, calls and ends them. Another may abort all at any time, and the poll looks for ends of calls: both
// take from a list whose lock is never held in a call of NCCL.
#pragma once

#include <nccl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/comm/nccl/ends.hpp"
#include "engine/comm/nccl/nccl.hpp"
#include "engine/comm/watch.hpp"
#include "engine/device/cuda/owners.hpp"

namespace shardbook::comm {

class NcclBackend final : public Backend {
 public:
  NcclBackend(world::World& world, device::Device& device, NcclOptions options);
  ~NcclBackend() override;

  std::unique_ptr<Communicator> communicator(device::Device& device, const mesh::Group& group) override;
  bool captures() const override { return options_.in_graphs; }
  void check() override;
  void abort() override;
  std::string version() const override;

  Buffers buffers() const { return options_.buffers; }
  // For calls that nothing runs beside; null where they are to be as all others.
  ncclComm_t split_beside_nothing(const mesh::Group& group, const std::string& who);

  // Runs f(), which makes one call on `nccl` (or a group of them), and returns when it is in its stream, or in the graph.
  template <class F>
  void call(ncclComm_t nccl, const char* expression, const std::string& who, cudaStream_t stream, F f, bool captured = false);
  // A launch stands behind and before all that is issued to the device, and the next capture begins with nothing before it.
  void capture_is_over() { before_[1].of = nullptr; }

 private:
  // Returns when `nccl` is ready for more.
  void await_ready(ncclComm_t nccl, const char* expression, const std::string& who);
  void expect(ncclResult_t code, ncclComm_t nccl, const char* expression, const std::string& who) const;
  void stop_if_failed() const;
  bool is_whole_world(const mesh::Group& group) const;
  ncclConfig_t config_of(bool blocking) const;
  // Split from the world's; ready, and warmed up.
  ncclComm_t split(const mesh::Group& group, ncclConfig_t config, const std::string& who);
  void keep(ncclComm_t nccl);
  bool take(ncclComm_t nccl);
  void look_for_ends();
  // One call of each kind, so that pairs are connected and every module is loaded.
  void warm_up(ncclComm_t nccl, const mesh::Group& group, const std::string& who);
  void abort_all();

  world::World& world_;
  NcclOptions options_;
  std::string rank_name_;
  // The rank's thread is in NCCL while one of these lives, unless something failed before.
  class Inside {
   public:
    explicit Inside(NcclBackend& backend) : backend_(backend) {
      backend_.inside_.store(true);
      try {
        backend_.stop_if_failed();
      } catch (...) {
        backend_.inside_.store(false);
        throw;
      }
    }
    ~Inside() { backend_.inside_.store(false); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    NcclBackend& backend_;
  };

  std::atomic<bool> inside_ = false, aborting_ = false;
  std::thread aborter_;
  ncclComm_t whole_ = nullptr;
  bool whole_is_taken_ = false;
  std::mutex list_mutex_;          // never held in a call of NCCL
  bool aborted_ = false;
  std::vector<ncclComm_t> all_;    // that live: who takes one from here is the one to end it
  std::vector<ncclComm_t> mine_;   // the same, for the rank's own thread alone
  std::vector<std::unique_ptr<Ends>> ends_;
  void* warm_up_memory_ = nullptr;
  // Where NCCL does not order calls of several communicators: the call before, that another's next one waits for; and
  // the same in a capture.
  struct Before {
    device::cuda::OwnedEvent event;
    ncclComm_t of = nullptr;
  };
  bool serialised_ = false;
  Before before_[2];
  int gpu_ = 0;
  std::optional<Poll> poll_;
};

template <class F>
void NcclBackend::call(ncclComm_t nccl, const char* expression, const std::string& who, cudaStream_t stream, F f, bool captured) {
  const Inside inside(*this);
  Before& before = before_[captured];
  if (serialised_ && before.of != nullptr && before.of != nccl) SHARDBOOK_CUDA(cudaStreamWaitEvent(stream, before.event.get(), 0), who);
  const ncclResult_t code = f();
  if (code != ncclSuccess && code != ncclInProgress) expect(code, nccl, expression, who);
  if (code == ncclInProgress) await_ready(nccl, expression, who);
  if (!serialised_) return;
  SHARDBOOK_CUDA(cudaEventRecord(before.event.get(), stream), who);
  before.of = nccl;
}

}  // namespace shardbook::comm
