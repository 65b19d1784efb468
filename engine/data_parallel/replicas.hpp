// data_parallel/replicas: how are the gradients of replicas summed?
//
// All-reduces of a bucket of gradients, in place, on a stream of their own, so that backward goes on beside them. A
// bucket is one tensor: the gradients of a rank lie end to end (optimizer/store.hpp). All ranks of the group call in
// one order, that of the plan.
#pragma once

#include "engine/comm/comm.hpp"
#include "engine/optimizer/store.hpp"
#include "engine/plan/executor.hpp"

namespace shardbook::data_parallel {

class Replicas final : public plan::Executor {
 public:
  // Set-up. `each_parameter`: an all-reduce for each parameter instead of one for the bucket. All but `each_parameter`
  // outlive this.
  Replicas(device::Device& device, device::Stream& compute, device::Stream& stream, comm::Communicator& group,
           optimizer::Store& store, bool each_parameter);

  void await(const plan::Action& action) override;
  // Of a reduction over "dp_replicate".
  void run(const plan::Action& action) override;

 private:
  device::Device& device_;
  device::Stream& compute_;
  device::Stream& stream_;
  comm::Communicator& group_;
  optimizer::Store& store_;
  std::vector<std::vector<tensor::Tensor>> parameters_;  // by unit, of each_parameter: what of each lies here
  device::Event summed_;
};

}  // namespace shardbook::data_parallel
