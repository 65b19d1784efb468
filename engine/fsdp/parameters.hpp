// fsdp/parameters: how is a parameter made whole, freed, and its gradient summed?
//
// Carries out what schedule.cpp (or any other plan) asks for. Whole units live in slots that units use in turn, or in
// slots of their own; a gather waits (on the device) until the slot's last user is done. Before anything computes, the
// compute stream is made to wait for the parameters that it needs.
//
// Collectives of the fsdp group all go on one stream, in an order that is the same on all ranks.
//
// Source: pytorch/pytorch v2.8.0, torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py (two gather buffers in turn
// instead of a limiter that blocks the host); for the limiter, torch/distributed/fsdp/_runtime_utils.py (_unshard)
// and _limiter_utils.py (_FreeEventQueue).
#pragma once

#include <vector>

#include "engine/comm/comm.hpp"
#include "engine/fsdp/host_shards.hpp"
#include "engine/fsdp/sharded_unit.hpp"
#include "engine/model/model.hpp"
#include "engine/optimizer/store.hpp"
#include "engine/plan/executor.hpp"
#include "engine/plan/passes.hpp"

namespace shardbook::fsdp {

struct StoreConfig {
  bool each_parameter = false;   // is cut and gathered by itself; else a unit as one
  bool reshard = true;       // blocks are freed after forward, and gathered again for backward
  int near = 0;              // so many ranks in a row keep a block between them after forward, and gather it there; 0: none do
  int replicas = 1;          // ranks of other fsdp groups that hold the same shard: gradients are summed over them, too
  int micro_batches = 1;     // of a step
  base::DType parameter = base::DType::bf16;  // nominal type that parameters are gathered and computed in
  bool lends = false;        // shards of blocks' gradients have no memory of their own: they are lent it (lend)
  bool keeps_copy = true;    // of its shard a rank keeps what it computes with; else each gather makes it from the masters
  base::DType reduce = base::DType::f32;      // nominal type that gradients cross the network in; all other sums are f32
  optimizer::OnHost on_host = optimizer::OnHost::nothing;   // what of the shards lies in host memory
  bool updates_by_unit = false;   // norm and next gather of a unit wait for its own sum and update; else for all
};

class ShardedParameters final : public plan::Executor, public optimizer::Store {
 public:
  // Lays out every unit; allocates nothing. All ranks of the group call alike. `near`: those of config.near, if it asks for any.
  // `host`: where everything lies in host memory.
  ShardedParameters(model::Model& model, device::Device& device, device::Stream& compute, device::Stream& stream,
                    comm::Communicator& group, const StoreConfig& config, comm::Communicator* near = nullptr, const HostStreams& host = {});

  // What a plan must know of the units, in the order of forward.
  std::vector<plan::Unit> units() const;
  // Set-up: allocates shards and slots, and draws this rank's parameters. `plan` is the one to be carried out.
  void set_up(const plan::Plan& plan, const plan::Slots& slots, std::uint64_t seed);

  // Set-up, where config.lends: how many nominal bytes the shard of each unit of blocks' gradient takes, in the order of forward;
  // and memory that is free from a unit's reduction to the update, for each. Nothing where gradients have their own.
  std::vector<base::Bytes> wants_lots() const;
  void lend(const std::vector<Tensor>& lots);

  // Before the first step, with the numbers that it begins with: gathers what each step gathers for the next.
  void gather_for_the_first_step();

  std::vector<optimizer::ShardState>& shards() override { return shards_; }
  Tensor gradients(int unit, int units) const override;
  std::vector<Tensor> summands(int unit, std::string_view axis) const override;
  void await_gradient(device::Stream& stream, int unit) override;
  void set_complete(Complete complete) override { complete_ = std::move(complete); }
  const std::vector<std::size_t>& in_order_of_sums() const override { return order_of_sums_; }
  void await_sum(std::size_t shard) override;
  void updated(std::size_t shard) override;

  void begin_step() override;
  void await(const plan::Action& action) override;
  void run(const plan::Action& action) override;

 private:
  shard::Placement placement_over_data() const;
  void number_shards();
  bool by_unit() const { return config_.updates_by_unit && !alone(); }
  void allocate_shards(std::uint64_t seed);
  void make_slots(const plan::Slots& slots, bool ends_in_turn);
  GatherSlot make_gather_slot(std::int64_t elements, const std::string& name);
  GradientSlot make_gradient_slot(std::int64_t elements, const std::string& name);

  bool on_host() const { return config_.on_host == optimizer::OnHost::everything; }
  // Alone with its shards on the device a rank has each unit whole anyway, and computes with it in place.
  bool alone() const { return group_.size() == 1 && !on_host(); }
  // A rank alone, or with replicas only, makes its gradient where the optimizer reads it.
  bool gradient_in_place() const { return alone() && (config_.replicas > 1 || config_.micro_batches == 1); }
  bool lends(const ShardedUnit& unit) const { return config_.lends && unit.of_block && !alone(); }
  bool keeps_copy() const { return config_.keeps_copy || alone(); }
  // Gradients are rounded before their reduce-scatter, and the sum is widened after it. Alone nothing crosses a network.
  bool rounds() const { return !alone() && config_.reduce != base::DType::f32; }
  ShardedUnit& unit(int number) { return units_[static_cast<std::size_t>(number)]; }

  void gather(ShardedUnit& unit, const plan::Action& action);
  void await_update(ShardedUnit& unit);
  Tensor my_part(ShardedUnit& unit, const Flat& flat);
  void take_whole(ShardedUnit& unit, int slot);
  void keep(ShardedUnit& unit);
  void release(ShardedUnit& unit);
  void limit(ShardedUnit& unit);
  void reduce(ShardedUnit& unit, int place);
  void reduce_into(Tensor full, const Tensor& into, device::Stream& lane, bool add, comm::Beside beside);
  void to_host(ShardedUnit& unit, int place);
  void await_parameters(ShardedUnit& unit);
  void await_sums();
  void open_gradient(ShardedUnit& unit, int slot);

  device::Device& device_;
  device::Stream& compute_;
  device::Stream& stream_;
  comm::Communicator& group_;
  comm::Communicator* near_;   // null where no part is kept
  StoreConfig config_;

  std::vector<ShardedUnit> units_;
  std::vector<optimizer::ShardState> shards_;
  std::vector<plan::Action> carried_;        // gathers of the plan that are for the next step
  bool updated_all_ = false;           // in this step
  std::unique_ptr<HostShards> host_;   // null: shards lie on the device
  Complete complete_;
  Tensor gradients_;        // of all shards end to end, where they are summed over replicas
  std::vector<GatherSlot> gather_slots_;
  std::vector<GradientSlot> gradient_slots_;
  Tensor rounded_;          // where gradients cross in fewer bytes: the unit's that is being reduced. Of the fsdp stream alone
  Tensor staging_;          // a shard of gradient that is yet to be widened, or added (reductions of a unit after its first)
  device::Event updated_;                       // on compute: the update has run. Of each unit where they are waited for by themselves
  int reductions_ = 0;                          // so many were issued in this step
  int beside_blocks_ = 0;                       // behind the first so many blocks are still computed
  std::vector<int> unit_of_shard_;              // by shard: the unit that it is of
  std::vector<std::size_t> order_of_sums_;      // of shards, for the norm
};

}  // namespace shardbook::fsdp
