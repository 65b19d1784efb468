// Lab 01b, solved: reduce-scatter what the update reads, gather what forward reads.
#include "labs/01_data_parallel/lab.hpp"

namespace shardbook::lab01 {

void backward_is_over(Sharded& s) {
  s.device.record(s.compute, s.produced);
  s.device.wait(s.comm, s.produced);
  s.group.reduce_scatter(s.comm, s.gradients, s.gradient_shard);
  s.device.record(s.comm, s.arrived);
  s.device.wait(s.compute, s.arrived);
}

void after_update(Sharded& s) {
  s.device.record(s.compute, s.produced);
  s.device.wait(s.comm, s.produced);
  s.group.all_gather(s.comm, s.parameter_shard, s.parameters);
  s.device.record(s.comm, s.arrived);
  s.device.wait(s.compute, s.arrived);
}

}  // namespace shardbook::lab01
