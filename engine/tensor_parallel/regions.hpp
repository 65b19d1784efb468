// tensor_parallel/regions: where a tensor crosses into the cut part of the network, and out again.
//
// Inside, each rank computes with its own slice of the weights; outside, all tp ranks hold the same
// activations. The two borders are a conjugate pair (f and g of Shoeybi et al. 2019, §3; the Functions of
// NVIDIA/Megatron-LM @d98e8a64, megatron/core/tensor_parallel/mappings.py):
//
//   CopyToRegion (f)      forward: nothing, every rank already has x     backward: dx = Σ over ranks of dx
//   ReduceFromRegion (g)  forward: y = Σ over ranks of y                 backward: nothing, dy is whole
//
// Or, outside, each rank holds the rows of some tokens only, and norms and residuals are not done n times over
// (sequence parallelism; Korthikanti et al. 2022, arXiv:2205.05198, §4.2.2; the same file of Megatron). An all-reduce is a
// reduce-scatter and an all-gather, and here each of the two stands where it is needed:
//
//   GatherToRegion (f)    forward: x = the rows of all ranks             backward: dx = my rows of Σ over ranks of dx
//   ScatterFromRegion (g) forward: y = my rows of Σ over ranks of y      backward: dy = the rows of all ranks
//
// They are written out, not derived: what the derivative of a sum over ranks is depends on whether what
// follows is cut or whole, and only the author of the layer knows.
//
// Each exchange runs on the group's own stream, so that the compute stream may go on with work that does not
// need it. All tp ranks call alike.
#pragma once

#include <optional>

#include "engine/comm/comm.hpp"
#include "engine/model/pieces.hpp"

namespace shardbook::tensor_parallel {

using model::Call;
using model::Context;
using model::Epilogue;
using tensor::Tensor;

// The axis of the mesh that all this is about.
inline constexpr std::string_view axis = "tp";

// The tp group, and the stream its collectives run on.
struct TensorParallelGroup {
  comm::Communicator& communicator;
  device::Stream& stream;
};

// A matmul that fills the device lets no collective in beside it, so of two that could begin at once it matters which one does. This
// gives what is issued to the group's stream next the time to begin before what is issued to compute next: compute waits until that
// stream has come so far, and then takes a moment. No more than time: nothing may rest on it. The wait alone does not do. A kernel
// that ends at once does where a piece is shifted (experiments/pieces), and before a whole sum now and then: that is let in later,
// and needs a pause (experiments/contention). PyTorch has a kernel there that sleeps; CUDA_DEVICE_MAX_CONNECTIONS=1 is for this in
// Megatron-LM.
enum class Moment { of_a_kernel, of_a_pause };
class HeadStart {
 public:
  HeadStart(device::Device& device, TensorParallelGroup group, const std::string& name, Moment moment) : group_(group), moment_(moment), reached_(device.create_event(name + ".reached")) {}
  void give(Context& ctx);

 private:
  TensorParallelGroup group_;
  Moment moment_;
  device::Event reached_;
};

// When a sum in backward begins: with what compute does next, whichever is let in first; or with a head start.
enum class Start { as_it_comes, ahead };

// Sums a tensor in place over the group, without holding up the compute stream until it is asked for.
class SumOverRanks {
 public:
  SumOverRanks(device::Device& device, TensorParallelGroup group, const std::string& name, Start begin = Start::as_it_comes);
  // Starts once what was issued to compute so far has run.
  void start(Call ctx, const Tensor& partial, comm::Reduction reduction = comm::Reduction::sum);
  // What is issued to compute from here on sees the sum.
  void await(Context& ctx);

 private:
  TensorParallelGroup group_;
  device::Event produced_, summed_;
  std::optional<HeadStart> head_start_;
};

//@ tensor_parallel.conjugates: f sums the gradient on its way back, g the output on its way out; the other way each does nothing.
class CopyToRegion {
 public:
  CopyToRegion(device::Device& device, TensorParallelGroup group, const std::string& name, Start begin = Start::as_it_comes) : sum_(device, group, name, begin) {}
  void backward(Call ctx, const Tensor& dx) { sum_.start(ctx, dx); }
  void await_backward(Context& ctx) { sum_.await(ctx); }

 private:
  SumOverRanks sum_;
};

class ReduceFromRegion {
 public:
  ReduceFromRegion(device::Device& device, TensorParallelGroup group, const std::string& name) : sum_(device, group, name) {}
  void forward(Call ctx, const Tensor& y) {
    sum_.start(ctx, y);
    sum_.await(ctx);
  }

 private:
  SumOverRanks sum_;
};
//@end

// Rows of all ranks from those of each, or my rows of the sum over ranks; compute goes on meanwhile, as above.
class RowsOverRanks {
 public:
  RowsOverRanks(device::Device& device, TensorParallelGroup group, const std::string& name, Start begin_sums = Start::as_it_comes);
  void start_gather(Call ctx, const Tensor& mine_RD, const Tensor& all_ND);
  // Of rows that were gathered before, so nothing is waited for. REQUIRES: since all_ND was read last, the group has
  // exchanged what compute made after that.
  void start_gather_again(Call ctx, const Tensor& mine_RD, const Tensor& all_ND);
  void start_sum(Call ctx, const Tensor& partial_ND, const Tensor& mine_RD);
  void await_gather(Context& ctx);
  void await_sum(Context& ctx);

 private:
  TensorParallelGroup group_;
  device::Event produced_, gathered_, summed_;
  std::optional<HeadStart> head_start_;
};

//@ tensor_parallel.conjugates_of_rows: With rows cut: f gathers on its way out and sums on its way back, g the other way round.
class GatherToRegion {
 public:
  GatherToRegion(device::Device& device, TensorParallelGroup group, const std::string& name, Start begin_sums = Start::as_it_comes) : rows_(device, group, name, begin_sums) {}
  void forward(Call ctx, const Tensor& mine_RD, const Tensor& all_ND) {
    rows_.start_gather(ctx, mine_RD, all_ND);
    rows_.await_gather(ctx);
  }
  // Kept for backward are my rows: there the others are brought once more.
  void start_again(Call ctx, const Tensor& mine_RD, const Tensor& all_ND) { rows_.start_gather_again(ctx, mine_RD, all_ND); }
  void await_again(Context& ctx) { rows_.await_gather(ctx); }
  void backward(Call ctx, const Tensor& dpartial_ND, const Tensor& dmine_RD) { rows_.start_sum(ctx, dpartial_ND, dmine_RD); }
  void await_backward(Context& ctx) { rows_.await_sum(ctx); }

 private:
  RowsOverRanks rows_;
};

class ScatterFromRegion {
 public:
  ScatterFromRegion(device::Device& device, TensorParallelGroup group, const std::string& name) : rows_(device, group, name) {}
  void forward(Call ctx, const Tensor& partial_ND, const Tensor& mine_RD) {
    rows_.start_sum(ctx, partial_ND, mine_RD);
    rows_.await_sum(ctx);
  }
  void backward(Call ctx, const Tensor& dmine_RD, const Tensor& dall_ND) {
    rows_.start_gather(ctx, dmine_RD, dall_ND);
    rows_.await_gather(ctx);
  }

 private:
  RowsOverRanks rows_;
};
//@end

}  // namespace shardbook::tensor_parallel
