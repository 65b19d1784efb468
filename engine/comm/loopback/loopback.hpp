// comm/loopback: collectives between ranks that are threads of one process.
//
// What a call does is in exchange.hpp, how ranks come to it in meetings.hpp, and who waits for whom in roll.hpp. Here
// is what threads add to that: nothing but the memory, which they share anyway.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/comm/loopback/hall.hpp"

namespace shardbook::comm {

// What the ranks of one process share. Made once, before the rank threads.
class LoopbackHub final : public Hall, private Memories {
 public:
  LoopbackHub();
  ~LoopbackHub() override;

  Roll& roll() override { return roll_; }
  Meetings& meetings(const mesh::Group& group) override;
  std::vector<Meetings*> all() override;
  std::string name_of(base::Rank rank) override { return base::text("rank ", rank); }
  Condition condition_of(base::Rank) override { return Condition::runs; }
  std::string kind() const override { return "loopback"; }

 private:
  std::uint64_t address_of(const void* memory) override { return reinterpret_cast<std::uint64_t>(memory); }
  std::byte* at(base::Rank, std::uint64_t address, base::Bytes) override { return reinterpret_cast<std::byte*>(address); }

  struct Table;
  RollSheet sheet_;
  Roll roll_{sheet_};
  std::mutex mutex_;
  std::map<std::pair<std::string, std::vector<base::Rank>>, std::unique_ptr<Table>> tables_;
};

// REQUIRES: `device` is a HostDevice in a thread of this process. Hub and device outlive the backend.
std::unique_ptr<Backend> make_loopback_backend(LoopbackHub& hub, device::Device& device, Patience patience = {});

}  // namespace shardbook::comm
