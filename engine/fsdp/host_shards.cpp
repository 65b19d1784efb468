#include "engine/fsdp/host_shards.hpp"

#include <algorithm>

#include "engine/kernels/optimizer.hpp"

namespace shardbook::fsdp {

using program::MemoryKind;
using program::WaitReason;

HostShards::HostShards(device::Device& device, const HostStreams& streams, std::vector<optimizer::ShardState>& states)
    : device_(device), streams_(streams), states_(states), all_there_(device.create_event("fsdp.sums_in_host_memory")),
      all_added_(device.create_event("fsdp.sums_added_up")) {}

void HostShards::set_up(const plan::Slots& slots, const std::vector<ShardedUnit>& units, base::DType parameter, bool adds_up) {
  std::int64_t largest = 0;
  for (const ShardedUnit& unit : units) largest = std::max(largest, unit.shard_elements());
  const auto make = [&](const std::string& name, const Tensor& numbers) {
    return Place{numbers, device_.create_event(name + ".there"), device_.create_event(name + ".gone")};
  };
  for (int place = 0; place < slots.shards; ++place) {
    const std::string name = "fsdp.shard." + std::to_string(place);
    shards_.push_back(make(name, tensor::allocate(device_, {largest}, parameter, MemoryKind::parameter, name)));
  }
  for (int place = 0; place < slots.gradient_shards; ++place) {
    const std::string name = "fsdp.sum." + std::to_string(place);
    sums_.push_back(make(name, tensor::allocate(device_, {largest}, base::DType::f32, MemoryKind::gradient, name)));
  }
  // One for each place of a sum: one is added while another comes
  for (int place = 0; adds_up && place < slots.gradient_shards; ++place) {
    const std::string name = "fsdp.landing." + std::to_string(place);
    landings_.push_back(make(name, optimizer::on_host(device_, largest, base::DType::f32, MemoryKind::gradient, name)));
  }
}

Tensor HostShards::part_of(const std::vector<Place>& places, const ShardedUnit& unit, const Flat& flat, int place) const {
  const std::int64_t shards = flat.layout->shards();
  SHARDBOOK_CHECK(place >= 0 && place < static_cast<int>(places.size()), "no place for a shard of ", unit.unit->name);
  return places[static_cast<std::size_t>(place)].numbers.slice(flat.begin / shards, {flat.layout->shard_elements()});
}

//@ fsdp.to_device: Bring a unit's shard to a place whose last shard has been gathered, once the CPU has updated it.
void HostShards::to_device(const ShardedUnit& unit, int place) {
  const Place& here = shards_[static_cast<std::size_t>(place)];
  device_.wait(*streams_.to_device, here.gone, WaitReason::buffer_reuse);
  for (const Flat& flat : unit.flats) {
    const optimizer::ShardState& state = states_[flat.state];
    device_.wait(*streams_.to_device, state.updated);
    optimizer::to_device(*streams_.to_device, state.parameter, shard(unit, flat, place));
  }
  device_.record(*streams_.to_device, here.there);
}
//@end

void HostShards::await_shard(device::Stream& lane, int place) { device_.wait(lane, shards_[static_cast<std::size_t>(place)].there); }
void HostShards::left(device::Stream& lane, int place) { device_.record(lane, shards_[static_cast<std::size_t>(place)].gone); }

void HostShards::await_room(device::Stream& lane, int place) { device_.wait(lane, sums_[static_cast<std::size_t>(place)].gone, WaitReason::buffer_reuse); }
void HostShards::summed(device::Stream& lane, int place) { device_.record(lane, sums_[static_cast<std::size_t>(place)].there); }

//@ fsdp.to_host: Take the shard of a sum to host memory; what is there already the CPU adds it to.
void HostShards::to_host(const ShardedUnit& unit, int place, bool add) {
  const Place& here = sums_[static_cast<std::size_t>(place)];
  device::Stream& bus = *streams_.to_host;
  device_.wait(bus, here.there);
  if (!add) {
    for (const Flat& flat : unit.flats) optimizer::to_host(bus, sum(unit, flat, place), host_gradient(flat));
    return device_.record(bus, here.gone);
  }
  const Place& landing = landings_[static_cast<std::size_t>(place)];
  device_.wait(bus, landing.gone, WaitReason::buffer_reuse);
  for (const Flat& flat : unit.flats) optimizer::to_host(bus, sum(unit, flat, place), part_of(landings_, unit, flat, place));
  device_.record(bus, landing.there);
  device_.record(bus, here.gone);
  device_.wait(*streams_.cpu, landing.there);
  for (const Flat& flat : unit.flats) kernels::accumulate_on_host(*streams_.cpu, part_of(landings_, unit, flat, place), host_gradient(flat));
  device_.record(*streams_.cpu, landing.gone);
}
//@end

void HostShards::await_sums(device::Stream& lane) {
  device_.record(*streams_.to_host, all_there_);
  device_.wait(lane, all_there_);
  if (landings_.empty()) return;
  device_.record(*streams_.cpu, all_added_);
  device_.wait(lane, all_added_);
}

}  // namespace shardbook::fsdp
