// optimizer/offload: how does state that lives in host memory come to the device to be moved, and back?
//
// Masters and both moments, 12 bytes a parameter, are used once a step. Here they lie in page-locked host memory and
// cross to the device for the update, piece by piece, through a few slots: one stream brings pieces, another takes them
// back, and the device updates one piece while the next comes and the last goes.
//
//   to_device | p0 p1 p2 (while forward and backward run)  | p3 | p4 | p5 | …
//   compute   | forward, backward, norm               | p0 | p1 | p2 | p3 | …
//   to_host   |                                            | p0 | p1 | p2 | …   the last ones while the next step runs
//
// The update runs on the device, so the numbers are those of states that never left it. The originals update on the CPU
// instead: then 4 bytes of gradient a parameter go to the host and 2 or 4 of parameter come back, not 12 and 12.
//
// Invariants: nothing here waits on the host. A piece comes after it went in the step before: both are on a stream of
// their own, and a slot's `stored` orders them.
//
// Sources: Ren et al. 2021, "ZeRO-Offload" (arXiv:2101.06840); NVIDIA/Megatron-LM@d98e8a64,
// megatron/core/optimizer/cpu_offloading/hybrid_optimizer.py (a stream for each direction).
#pragma once

#include <functional>
#include <vector>

#include "engine/shard/flat_unit.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::optimizer {

using tensor::Tensor;

struct ShardState;

// What of a rank's shards lies in host memory.
enum class OnHost : std::uint8_t {
  nothing,
  states,       // masters and moments, which come to the device for the update
  everything,   // and what is computed with, and the gradient: the update is the CPU's
};

// A row of numbers in page-locked host memory, zeroed, known to the record under a name that says where it lies. Set-up only.
// Throws Failure naming the buffer where the host has no more.
Tensor on_host(device::Device& device, std::int64_t elements, base::DType nominal, program::MemoryKind kind, const std::string& name);

// Whole tensors between host memory and the device. Bytes count on the device's side, as those of every copy to and from it:
// they are what crosses.
void to_device(device::Lane lane, const Tensor& from, const Tensor& to);
void to_host(device::Lane lane, const Tensor& from, const Tensor& to);

struct OffloadConfig {
  std::int64_t piece = std::int64_t{1} << 24;       // numbers that cross at once, at most
  int slots = 3;                                    // on the device, at most: one comes, one is moved, one goes
};

// Part of a shard's state, where the device can move it.
struct Here {
  std::size_t shard = 0;       // which
  shard::Interval elements;    // of the shard
  Tensor master, first_moment, second_moment;
};

class Offload {
 public:
  // Set-up: makes slots and streams. The states of `shards` are to lie in host memory when the first step begins; `shards`
  // outlives this.
  Offload(device::Device& device, const OffloadConfig& config, const std::vector<ShardState>& shards);

  // Sends for as many pieces as there are slots. Once a step.
  void send();
  // Calls `update` for each piece in turn; what it issues to `compute` finds the piece there, and its results go back.
  void each(device::Stream& compute, const std::function<void(const Here&)>& update);

 private:
  struct Slot {
    Tensor master, first_moment, second_moment;
    device::Event loaded;    // on to_device: the piece is here
    device::Event updated;   // on compute: it has been moved
    device::Event stored;    // on to_host: it is back in host memory, and the slot is free
  };
  struct Piece {
    std::size_t shard = 0;
    shard::Interval elements;
  };
  Here here(std::size_t piece) const;
  Slot& slot_of(std::size_t piece) { return slots_[piece % slots_.size()]; }
  void load(std::size_t piece);
  void store(std::size_t piece, device::Stream& compute);

  device::Device& device_;
  device::Stream& to_device_;
  device::Stream& to_host_;
  const std::vector<ShardState>& shards_;
  std::vector<Piece> pieces_;
  std::vector<Slot> slots_;
};

}  // namespace shardbook::optimizer
