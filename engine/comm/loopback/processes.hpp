// comm/loopback: collectives between ranks that are processes of one host.
//
// Ranks share memory here, and no sockets. A collective then works as it does between threads: the same code reads and
// writes the numbers where they are, so the bits are the same; who waits for whom can be read by anyone at any time,
// also when rank 0 is stopped or a rank is dead, which messages could not tell; and no data stand in a queue that a
// dead reader leaves full. The price is that all ranks must be on one host.
// (NCCL shares memory between GPUs of one host that have no direct link, by files /dev/shm/nccl-XXXXXX that the last
// to attach unlinks: NVIDIA/nccl@76145438, src/misc/shmutils.cc, ncclShmOpen. A kill before that leaves them there.)
//
// Each rank's device has memory without a name (device/host/shared_memory.hpp). Rank 0's holds the roll, and the
// first rank of each group holds the table of the group's meetings. The control plane (world) tells all ranks where.
//
// When a rank dies, world tells the others, as for GPUs; when it is stopped, whoever waits for it sees it (Patience).
#pragma once

#include <memory>

#include "engine/comm/loopback/hall.hpp"
#include "engine/device/host/shared_host_device.hpp"
#include "engine/world/world.hpp"

namespace shardbook::comm {

// Collective over the world. World and device outlive the backend. Throws base::Failure where ranks are on several
// hosts, or cannot see each other's memory.
std::unique_ptr<Backend> make_process_backend(world::World& world, device::SharedHostDevice& device, Patience patience);

}  // namespace shardbook::comm
