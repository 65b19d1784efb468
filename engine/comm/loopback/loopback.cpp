#include "engine/comm/loopback/loopback.hpp"

#include <cstdlib>
#include <new>

namespace shardbook::comm {

namespace {

// Zeros, of which the system takes memory only for what is touched.
struct Freed {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Zeros = std::unique_ptr<std::byte, Freed>;

Zeros zeros(std::size_t bytes) {
  Zeros memory(static_cast<std::byte*>(std::calloc(bytes, 1)));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

struct LoopbackHub::Table {
  Table(LoopbackHub& hub, const mesh::Group& group)
      : memory(zeros(Meetings::bytes_for(group.size()))), meetings(hub.roll_, hub, group.axis, group.ranks, memory.get()) {}
  Zeros memory;
  Meetings meetings;
};

LoopbackHub::LoopbackHub() = default;
LoopbackHub::~LoopbackHub() = default;

Meetings& LoopbackHub::meetings(const mesh::Group& group) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<Table>& found = tables_[{group.axis, group.ranks}];
  if (!found) found = std::make_unique<Table>(*this, group);
  for (const base::Rank rank : group.ranks) roll_.expect(rank);
  return found->meetings;
}

std::vector<Meetings*> LoopbackHub::all() {
  std::lock_guard lock(mutex_);
  std::vector<Meetings*> all;
  for (const auto& [group, table] : tables_) all.push_back(&table->meetings);
  return all;
}

std::unique_ptr<Backend> make_loopback_backend(LoopbackHub& hub, device::Device& device, Patience patience) {
  auto* host = dynamic_cast<device::HostDevice*>(&device);
  SHARDBOOK_CHECK(host != nullptr, "loopback joins host devices only");
  return make_backend_in(hub, *host, patience);
}

}  // namespace shardbook::comm
