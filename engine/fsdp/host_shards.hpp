// fsdp/host_shards: how do shards that live in host memory reach the device, and the sums of gradients the host?
//
// On the device a shard is only on its way: it comes before its unit is gathered, and the shard of a gradient's sum goes once
// the reduction has made it. Both pass through a few places, each as large as the largest shard, that units use in turn:
//
//   to_device | shard of 1 | shard of 2 | ...            a place is free once the gather has read it
//   fsdp      |            | gather 1   | gather 2 | ... | reduce 2 | reduce 1 | ...
//   to_host   |                                                     | sum of 2 | sum of 1 | ...
//   cpu       |                                                                | add, from the second micro-batch on
//
// Sums of several micro-batches are added up by the CPU, in host memory, as the original does; there the thread that issues
// waits for each copy, here none does.
//
// Sources: pytorch/pytorch v2.8.0, torch/distributed/fsdp/_fully_shard/_fsdp_param.py (all_gather_inputs: the shard, to the
// device), _fsdp_collectives.py (foreach_reduce: the reduced shard, to the CPU, and added there).
#pragma once

#include <vector>

#include "engine/fsdp/sharded_unit.hpp"
#include "engine/plan/passes.hpp"

namespace shardbook::fsdp {

// Who carries them: a stream for each direction of the bus, and the CPU's own work.
struct HostStreams {
  device::Stream* to_device = nullptr;
  device::Stream* to_host = nullptr;
  device::Stream* cpu = nullptr;
};

class HostShards {
 public:
  // `states` are filled by the first step, numbered as flats name them, and outlive this.
  HostShards(device::Device& device, const HostStreams& streams, std::vector<optimizer::ShardState>& states);
  // Set-up: places on the device, as many as `slots` says each way. `adds_up`: some gradient is reduced more than once a step.
  void set_up(const plan::Slots& slots, const std::vector<ShardedUnit>& units, base::DType parameter, bool adds_up);

  // Brings a unit's shard to a place, once what was there has been gathered.
  void to_device(const ShardedUnit& unit, int place);
  // The shard of a flat there. `lane` waits until it has come; left(): it has been read by what was issued to `lane`.
  void await_shard(device::Stream& lane, int place);
  Tensor shard(const ShardedUnit& unit, const Flat& flat, int place) const { return part_of(shards_, unit, flat, place); }
  void left(device::Stream& lane, int place);

  // Where the shard of a flat's sum is made. `lane` waits until what was there has gone; summed(): `lane` has made it.
  void await_room(device::Stream& lane, int place);
  Tensor sum(const ShardedUnit& unit, const Flat& flat, int place) const { return part_of(sums_, unit, flat, place); }
  void summed(device::Stream& lane, int place);
  // Takes it to host memory; `add`: to what is there.
  void to_host(const ShardedUnit& unit, int place, bool add);
  // What is issued to `lane` from here on finds all sums in host memory.
  void await_sums(device::Stream& lane);

 private:
  // Numbers that pass. `there`: they have come, or been made; `gone`: they have been read.
  struct Place {
    Tensor numbers;
    device::Event there, gone;
  };
  Tensor part_of(const std::vector<Place>& places, const ShardedUnit& unit, const Flat& flat, int place) const;
  const Tensor& host_gradient(const Flat& flat) const { return states_[flat.state].gradient; }

  device::Device& device_;
  HostStreams streams_;
  std::vector<optimizer::ShardState>& states_;
  std::vector<Place> shards_, sums_;
  std::vector<Place> landings_;      // in host memory, one for each place of sums_: sums that are yet to be added
  device::Event all_there_, all_added_;
};

}  // namespace shardbook::fsdp
