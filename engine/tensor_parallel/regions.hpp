// tensor_parallel/regions: where a tensor crosses into the cut part of the network, and out again.
//
// Inside, each rank computes with its own slice of the weights; outside, all tp ranks hold the same
// activations. The two borders are a conjugate pair (f and g of Shoeybi et al. 2019, §3; the Functions of
// NVIDIA/Megatron-LM @d98e8a64, megatron/core/tensor_parallel/mappings.py):
//
//   CopyToRegion (f)      forward: nothing, every rank already has x     backward: dx = Σ over ranks of dx
//   ReduceFromRegion (g)  forward: y = Σ over ranks of y                 backward: nothing, dy is whole
//
// They are written out, not derived: what the derivative of a sum over ranks is depends on whether what
// follows is cut or whole, and only the author of the layer knows.
//
// Each sum runs on the group's own stream, so that the compute stream may go on with work that does not
// need it. All tp ranks call alike.
#pragma once

#include "engine/comm/comm.hpp"
#include "engine/model/pieces.hpp"

namespace shardbook::tensor_parallel {

using model::Context;
using tensor::Tensor;

// The tp group, and the stream its collectives run on.
struct TensorParallelGroup {
  comm::Communicator& communicator;
  device::Stream& stream;
};

// Sums a tensor in place over the group, without holding up the compute stream until it is asked for.
class SumOverRanks {
 public:
  SumOverRanks(device::Device& device, TensorParallelGroup group, const std::string& name);
  // Starts once what was issued to compute so far has run.
  void start(Context& ctx, const Tensor& partial, comm::Reduction reduction = comm::Reduction::sum);
  // What is issued to compute from here on sees the sum.
  void await(Context& ctx);

 private:
  TensorParallelGroup group_;
  device::Event produced_, summed_;
};

//@ tensor_parallel.conjugates: f sums the gradient on its way back, g the output on its way out; the other way each does nothing.
class CopyToRegion {
 public:
  CopyToRegion(device::Device& device, TensorParallelGroup group, const std::string& name) : sum_(device, group, name) {}
  void backward(Context& ctx, const Tensor& dx) { sum_.start(ctx, dx); }
  void await_backward(Context& ctx) { sum_.await(ctx); }

 private:
  SumOverRanks sum_;
};

class ReduceFromRegion {
 public:
  ReduceFromRegion(device::Device& device, TensorParallelGroup group, const std::string& name) : sum_(device, group, name) {}
  void forward(Context& ctx, const Tensor& y) {
    sum_.start(ctx, y);
    sum_.await(ctx);
  }

 private:
  SumOverRanks sum_;
};
//@end

}  // namespace shardbook::tensor_parallel
