// Ranks for tests: threads with a host device and a loopback backend each.
#pragma once

#include <functional>
#include <string>

#include "engine/comm/loopback/loopback.hpp"
#include "engine/device/host/host_device.hpp"
#include "engine/world/threads.hpp"

namespace shardbook::tests {

struct HostRank {
  world::World& world;
  device::HostDevice& device;
  comm::Backend& backend;

  // This rank's place in a group of all ranks.
  mesh::Group everyone(const std::string& axis) const {
    mesh::Group group{axis, {}, world.rank(), 0};
    for (int rank = 0; rank < world.size(); ++rank) group.ranks.push_back(rank);
    return group;
  }
};

// Runs `body` on `ranks` threads; the error is the first cause, empty if all went well.
inline std::string on_host_ranks(int ranks, const std::function<void(HostRank&)>& body, std::uint64_t drain_seed = 0,
                                 base::DType stored = base::DType::f32) {
  comm::LoopbackHub hub;
  // Devices outlive all ranks: where one fails, another may still carry out a collective that reads its memory.
  std::vector<std::unique_ptr<device::HostDevice>> devices(static_cast<std::size_t>(ranks));
  const base::Status status = world::run_threads(ranks, [&](world::World& world) {
    std::unique_ptr<device::HostDevice>& own = devices[static_cast<std::size_t>(world.rank())];
    own = std::make_unique<device::HostDevice>(device::Storage{stored, stored}, world.rank(), drain_seed);
    device::HostDevice& device = *own;
    const std::unique_ptr<comm::Backend> backend = comm::make_loopback_backend(hub, device);
    device.set_watch([&world] { world.throw_if_failed(); });
    HostRank rank{world, device, *backend};
    body(rank);
  });
  return status ? "" : status.error();
}

// Reads and writes a tensor's numbers on the host, whatever their storage.
inline double get(const tensor::Tensor& tensor, std::int64_t at) {
  switch (tensor.storage) {
    case base::DType::f64: return static_cast<const double*>(tensor.data)[at];
    case base::DType::i32: return static_cast<const std::int32_t*>(tensor.data)[at];
    default: return static_cast<const float*>(tensor.data)[at];
  }
}
inline void set(const tensor::Tensor& tensor, std::int64_t at, double value) {
  switch (tensor.storage) {
    case base::DType::f64: static_cast<double*>(tensor.data)[at] = value; break;
    case base::DType::i32: static_cast<std::int32_t*>(tensor.data)[at] = static_cast<std::int32_t>(value); break;
    default: static_cast<float*>(tensor.data)[at] = static_cast<float>(value);
  }
}

// Small integers that look random, the same for every rank: sums of a few of them are exact.
inline double small_integer(std::uint64_t key) {
  key = (key + 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
  key = (key ^ key >> 27) * 0x94d049bb133111ebull;
  return static_cast<double>((key >> 40) % 7) - 3;
}

}  // namespace shardbook::tests
