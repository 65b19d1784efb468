#include "engine/comm/loopback/processes.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "engine/world/process_state.hpp"
#include "engine/world/wire.hpp"

namespace shardbook::comm {

namespace {

// What this process sees of the hall.
class ProcessHall final : public Hall, private Memories {
 public:
  ProcessHall(world::World& world, device::SharedHostDevice& device);

  Roll& roll() override { return *roll_; }
  Meetings& meetings(const mesh::Group& group) override;
  std::vector<Meetings*> all() override {
    std::vector<Meetings*> all;
    for (const auto& one : meetings_) all.push_back(one.get());
    return all;
  }
  std::string name_of(base::Rank rank) override { return base::text("rank ", rank, " (pid ", process(rank), ")"); }
  Condition condition_of(base::Rank rank) override {
    const world::ProcessState state = world::state_of_process(process(rank));
    if (state == world::ProcessState::stopped) return Condition::stopped;
    const bool gone = state == world::ProcessState::ended || roll_->presence(rank) == Presence::failed;
    return gone ? Condition::gone : Condition::runs;
  }
  std::string kind() const override { return "shared memory"; }

 private:
  std::uint64_t address_of(const void* memory) override { return memory == nullptr ? 0 : own_.address_of(memory); }
  std::byte* at(base::Rank rank, std::uint64_t address, base::Bytes bytes) override {
    return (rank == world_.rank() ? own_ : others_[static_cast<std::size_t>(rank)]).at(address, bytes);
  }
  pid_t process(base::Rank rank) const { return processes_[static_cast<std::size_t>(rank)]; }

  world::World& world_;
  device::SharedMemory& own_;
  std::vector<device::SharedMemory> others_;   // by rank; in this rank's own place a view of the same
  std::vector<pid_t> processes_;
  std::unique_ptr<Roll> roll_;
  std::vector<std::unique_ptr<Meetings>> meetings_;
};

ProcessHall::ProcessHall(world::World& world, device::SharedHostDevice& device) : world_(world), own_(device.memory()) {
  // Who am I, and where is my memory?
  world::Writer mine;
  mine.string(world::clock_id()).string(world::host_name()).integer(::getpid()).integer(own_.file()).string(own_.mark());
  mine.integer(world.rank() == 0 ? static_cast<std::int64_t>(own_.address_of(own_.reserve(sizeof(RollSheet)))) : 0);
  const std::vector<std::string> all = world.all_gather(mine.bytes());

  // Everybody's; rank 0's holds the roll
  std::uint64_t roll = 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    world::Reader reader(all[rank]);
    const std::string clock = reader.string(), host = reader.string();
    processes_.push_back(static_cast<pid_t>(reader.integer()));
    const int file = static_cast<int>(reader.integer());
    const std::string mark = reader.string();
    const std::uint64_t address = static_cast<std::uint64_t>(reader.integer());
    SHARDBOOK_CHECK(reader.ended(), "rank ", rank, " does not say where its memory is; do all ranks run the same build?");
    if (clock != world::clock_id()) {
      throw base::Failure(base::text("rank ", rank, " is on ", host, ", and ranks of --device host exchange numbers through the memory of one host: "
                                     "start all of them there, or use --device cuda"));
    }
    others_.emplace_back(processes_.back(), file, mark);
    if (rank == 0) roll = address;
  }
  roll_ = std::make_unique<Roll>(*reinterpret_cast<RollSheet*>(at(0, roll, sizeof(RollSheet))));
  for (base::Rank rank = 0; rank < world.size(); ++rank) roll_->expect(rank);
}

Meetings& ProcessHall::meetings(const mesh::Group& group) {
  // Each rank says where the table of its group is, if it is the one that has it
  world::Writer mine;
  if (group.index_of_me == 0) {
    mine.string(group.axis).integer(group.size());
    for (const base::Rank rank : group.ranks) mine.integer(rank);
    mine.integer(static_cast<std::int64_t>(own_.address_of(own_.reserve(static_cast<base::Bytes>(Meetings::bytes_for(group.size()))))));
  }
  const std::vector<std::string> all = world_.all_gather(mine.bytes());

  // All tables, for a deadlock is told of all groups
  Meetings* found = nullptr;
  for (std::size_t holder = 0; holder < all.size(); ++holder) {
    if (all[holder].empty()) continue;
    world::Reader reader(all[holder]);
    const std::string axis = reader.string();
    std::vector<base::Rank> ranks(reader.count());
    for (base::Rank& rank : ranks) rank = static_cast<base::Rank>(reader.integer());
    const std::uint64_t address = static_cast<std::uint64_t>(reader.integer());
    SHARDBOOK_CHECK(reader.ended() && !ranks.empty(), "rank ", holder, " does not say which group it makes; do all ranks run the same build?");
    std::byte* table = at(static_cast<base::Rank>(holder), address, static_cast<base::Bytes>(Meetings::bytes_for(static_cast<int>(ranks.size()))));
    meetings_.push_back(std::make_unique<Meetings>(*roll_, static_cast<Memories&>(*this), axis, ranks, table));
    if (axis == group.axis && ranks == group.ranks) found = meetings_.back().get();
  }
  SHARDBOOK_CHECK(found != nullptr, "rank ", world_.rank(), " makes group ", members_text(group.axis, group.ranks),
                  ", and the first rank of it another one: all ranks make their groups in one order");
  return *found;
}

// The hall goes with the backend.
class ProcessBackend final : public Backend {
 public:
  ProcessBackend(world::World& world, device::SharedHostDevice& device, Patience patience)
      : hall_(world, device), backend_(make_backend_in(hall_, device, patience)) {}
  std::unique_ptr<Communicator> communicator(device::Device& device, const mesh::Group& group) override { return backend_->communicator(device, group); }
  std::string version() const override { return backend_->version(); }
  Flight& flight() override { return backend_->flight(); }

 private:
  ProcessHall hall_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace

std::unique_ptr<Backend> make_process_backend(world::World& world, device::SharedHostDevice& device, Patience patience) {
  return std::make_unique<ProcessBackend>(world, device, patience);
}

}  // namespace shardbook::comm
