#include "engine/optimizer/offload.hpp"

#include <algorithm>

#include "engine/device/copy.hpp"
#include "engine/optimizer/adamw.hpp"
#include "engine/program/host_memory.hpp"

namespace shardbook::optimizer {

using program::MemoryKind;
using program::OpDesc;
using program::OpKind;
using program::Part;

Tensor on_host(device::Device& device, std::int64_t elements, base::DType nominal, MemoryKind kind, const std::string& name) {
  const base::DType storage = device.storage().of(nominal);
  const program::BufferId buffer = device.recorder().add_buffer({name + std::string(program::host_memory_mark), kind, elements * base::size_of(nominal)});
  const base::Bytes bytes = elements * base::size_of(storage);
  try {
    void* data = device.pinned(bytes);
    device.note_place(buffer, data, nominal);
    return {data, {elements}, nominal, storage, buffer, 0};
  } catch (const std::exception& problem) {
    throw base::Failure(base::text("rank ", device.recorder().rank(), ": no page-locked memory for '", name, "' (", bytes >> 20, " MiB): ", problem.what(),
                                   "; share it among more ranks, or keep it on the device (--set fsdp.offload=none)"));
  }
}

void to_device(device::Lane lane, const Tensor& from, const Tensor& to) {
  const OpDesc desc = OpDesc("to_device", OpKind::copy, from.nominal).reads(from.use(), 0).writes(to.use());
  lane.device().launch(lane, desc, device::CopyArgs{from.data, to.data, from.storage_bytes()}, &device::host::copy, &device::cuda::copy);
}

void to_host(device::Lane lane, const Tensor& from, const Tensor& to) {
  const OpDesc desc = OpDesc("to_host", OpKind::copy, from.nominal).reads(from.use()).writes(to.use(), 0);
  lane.device().launch(lane, desc, device::CopyArgs{from.data, to.data, from.storage_bytes()}, &device::host::copy, &device::cuda::copy);
}

Offload::Offload(device::Device& device, const OffloadConfig& config, const std::vector<ShardState>& shards)
    : device_(device), to_device_(device.create_stream("to_device")), to_host_(device.create_stream("to_host")), shards_(shards) {
  std::int64_t largest = 0;
  for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
    const std::int64_t elements = shards_[shard].flat.size();
    for (std::int64_t begin = 0; begin < elements; begin += config.piece) {
      pieces_.push_back({shard, {begin, std::min(begin + config.piece, elements)}});
      largest = std::max(largest, pieces_.back().elements.size());
    }
  }
  for (std::size_t number = 0; number < std::min(pieces_.size(), static_cast<std::size_t>(config.slots)); ++number) {
    const std::string name = "optimizer.slot." + std::to_string(number);
    auto make = [&](const char* what) { return tensor::allocate(device, {largest}, base::DType::f32, MemoryKind::optimizer, name + what); };
    Slot& slot = slots_.emplace_back();
    slot.master = make(".master");
    slot.first_moment = make(".first_moment");
    slot.second_moment = make(".second_moment");
    slot.loaded = device.create_event(name + ".loaded");
    slot.updated = device.create_event(name + ".updated");
    slot.stored = device.create_event(name + ".stored");
  }
}

Here Offload::here(std::size_t piece) const {
  const Slot& slot = slots_[piece % slots_.size()];
  const Piece& of = pieces_[piece];
  const base::Shape shape{of.elements.size()};
  return {of.shard, of.elements, slot.master.slice(0, shape), slot.first_moment.slice(0, shape), slot.second_moment.slice(0, shape)};
}

void Offload::send() {
  const Part part(device_.recorder(), "states ahead");
  for (std::size_t piece = 0; piece < slots_.size(); ++piece) load(piece);
}

//@ optimizer.offload: Bring a piece, update it, take it back; its slot is then the piece's that is as many further on as there are slots.
void Offload::each(device::Stream& compute, const std::function<void(const Here&)>& update) {
  const Part part(device_.recorder(), "states");
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    device_.wait(compute, slot_of(piece).loaded);
    update(here(piece));
    store(piece, compute);
    if (piece + slots_.size() < pieces_.size()) load(piece + slots_.size());
  }
}

void Offload::load(std::size_t piece) {
  Slot& slot = slot_of(piece);
  const Here to = here(piece);
  const ShardState& from = shards_[to.shard];
  const base::Shape shape{to.elements.size()};
  device_.wait(to_device_, slot.stored, program::WaitReason::buffer_reuse);
  to_device(to_device_, from.master.slice(to.elements.begin, shape), to.master);
  to_device(to_device_, from.first_moment.slice(to.elements.begin, shape), to.first_moment);
  to_device(to_device_, from.second_moment.slice(to.elements.begin, shape), to.second_moment);
  device_.record(to_device_, slot.loaded);
}

void Offload::store(std::size_t piece, device::Stream& compute) {
  Slot& slot = slot_of(piece);
  const Here from = here(piece);
  const ShardState& to = shards_[from.shard];
  const base::Shape shape{from.elements.size()};
  device_.record(compute, slot.updated);
  device_.wait(to_host_, slot.updated);
  to_host(to_host_, from.master, to.master.slice(from.elements.begin, shape));
  to_host(to_host_, from.first_moment, to.first_moment.slice(from.elements.begin, shape));
  to_host(to_host_, from.second_moment, to.second_moment.slice(from.elements.begin, shape));
  device_.record(to_host_, slot.stored);
}
//@end

}  // namespace shardbook::optimizer
