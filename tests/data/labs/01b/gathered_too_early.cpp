// fails with: the all-gather (line 15) may read s.parameter_shard while update on compute still writes it
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
  s.group.all_gather(s.comm, s.parameter_shard, s.parameters);
  s.device.record(s.comm, s.arrived);
  s.device.wait(s.compute, s.arrived);
}

}  // namespace shardbook::lab01
