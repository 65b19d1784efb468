// fsdp: when is a parameter whole?
//
// Fully sharded data parallelism: every rank keeps a shard of each unit, makes the unit whole just before it is
// used (all-gather), frees it after, makes it whole again for backward, and sums the gradients so that each
// rank gets its shard of the sum (reduce-scatter). What makes it fast is *when* these are issued:
//
//   compute  | block 0        | block 1        | block 2        |
//   fsdp     | gather 1 | ... | gather 2 | ... | gather 3 | ...       one unit ahead: prefetch
//
// The model announces each use of a unit (model::UnitHooks). The order of uses is known beforehand, so at each
// use the schedule also gathers the next `prefetch` uses' units, forward and backward alike. Whole units live
// in prefetch + 1 slots; a gather waits (on the device) until the slot's last user is done.
//
// Collectives of the fsdp group all go on one stream, in an order that is the same on all ranks.
//
// Sources: Zhao et al. 2023; pytorch/pytorch v2.8.0, torch/distributed/fsdp/_runtime_utils.py (_pre_forward,
// _prefetch_handle: forward and backward prefetch), _fully_shard/_fsdp_param_group.py (one unit ahead, two
// gather buffers in turn instead of a limiter that blocks the host).
#pragma once

#include <vector>

#include "engine/comm/comm.hpp"
#include "engine/fsdp/sharded_unit.hpp"
#include "engine/model/model.hpp"

namespace shardbook::fsdp {

struct ScheduleConfig {
  int prefetch = 1;          // uses ahead; 0 gathers each unit when it is needed
  bool reshard = true;       // free each block after forward, and gather it again for backward
  int micro_batches = 1;     // of a step
  base::DType parameter = base::DType::bf16;  // nominal type that parameters are gathered and computed in
};

class FullyShardedModel final : public model::UnitHooks {
 public:
  // Set-up: lays out, allocates and initialises every shard. All ranks of the group call alike.
  FullyShardedModel(model::Model& model, device::Device& device, device::Stream& compute, device::Stream& stream,
                    comm::Communicator& group, const ScheduleConfig& config, std::uint64_t seed);

  // The shards that the optimizer moves, a unit each.
  std::vector<optimizer::ShardState>& shards() { return shards_; }

  // A step begins: gathers may read the shards once the last update has run.
  void begin_step();
  // A micro-batch begins (0 .. micro_batches - 1).
  void begin_micro_batch(int micro_batch);
  // Afterwards every shard's gradient is summed, for compute.
  void finish_backward();
  // The update of the shards has been issued to compute; whole units are stale from here on.
  void updated();

  // Called by the model, in the order of use.
  void before_forward(model::Unit& unit) override;
  void after_forward(model::Unit& unit) override;
  void before_backward(model::Unit& unit) override;
  void after_backward(model::Unit& unit) override;

 private:
  struct Use {
    int unit;
    program::Phase phase;
  };

  void lay_out(model::Model& model, std::uint64_t seed);
  void make_slots();
  GatherSlot make_gather_slot(std::int64_t elements, const std::string& name);
  GradientSlot make_gradient_slot(std::int64_t elements, const std::string& name);

  int index_of(const model::Unit& unit) const;
  void use(model::Unit& unit, program::Phase phase);
  void gather(ShardedUnit& unit, program::Phase phase);
  void release(ShardedUnit& unit);
  void reduce(ShardedUnit& unit);
  GatherSlot* free_slot();

  device::Device& device_;
  device::Stream& compute_;
  device::Stream& stream_;
  comm::Communicator& group_;
  ScheduleConfig config_;

  std::vector<ShardedUnit> units_;
  std::vector<optimizer::ShardState> shards_;
  std::vector<Use> uses_;  // of one micro-batch, in order
  std::vector<GatherSlot> gather_slots_;
  std::vector<GradientSlot> gradient_slots_;
  std::size_t next_gather_slot_ = 0, next_gradient_slot_ = 0;
  Tensor staging_;          // a shard of gradient that is yet to be added (micro-batches after the first)
  device::Event updated_;
  int micro_batch_ = 0;
  std::size_t at_ = 0;      // place in uses_
};

}  // namespace shardbook::fsdp
