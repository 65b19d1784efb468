// optimizer/store: who keeps the parameters, and their gradients, between steps?
//
// The trainer and the rooms that only sum gradients know a store; which one it is (whole on each rank, sharded) is
// decided where the step is put together.
#pragma once

#include <functional>
#include <vector>

#include "engine/optimizer/adamw.hpp"

namespace shardbook::optimizer {

class Store {
 public:
  using Complete = std::function<void(device::Lane lane, std::size_t shard, const Tensor& gradient)>;
  virtual ~Store() = default;
  // What this rank keeps, in the order of forward: one for each unit, or for each of its parameters.
  virtual std::vector<ShardState>& shards() = 0;
  // The gradients of so many units from `unit` on, which lie end to end. REQUIRES: gradients are summed over replicas.
  virtual Tensor gradients(int unit, int units) const = 0;
  // The parts of a unit's gradient that are summands over an axis of the model, where backward has made them: to be summed
  // in place before the unit's next reduction. Within a step only.
  virtual std::vector<Tensor> summands(int unit, std::string_view axis) const = 0;
  // What is issued to `stream` from here on sees the gradient of this rank's shard of a unit, as far as it has been
  // summed.
  virtual void await_gradient(device::Stream& stream, int unit) = 0;
  // `complete` is called where a shard's gradient is all there on the device and is about to leave it for host memory, with the
  // lane that made it, the number of the shard, and where it is. Set-up; never called where gradients stay.
  virtual void set_complete(Complete complete) = 0;
  // The numbers of all shards, in the order in which the norm is to take them; and what is issued to compute from here on sees one's
  // gradient, its sum complete. After the last reduction of a step.
  virtual const std::vector<std::size_t>& in_order_of_sums() const = 0;
  virtual void await_sum(std::size_t shard) = 0;
  // The update of a shard has been issued to compute.
  virtual void updated(std::size_t shard) = 0;
};

}  // namespace shardbook::optimizer
