// tensor_parallel/overlap: what if a matmul need not wait for what it shares with other ranks?
//
// With tokens cut (sequence.hpp) an all-gather stands before a column-parallel matmul and a reduce-scatter behind a
// row-parallel one, and nothing hides either: the one needs all rows, the other makes all of them. But each row of y is
// made from one row of x. So cut rows into the runs that ranks hold, t of them, and each run's matmul waits for its own
// rows only, or sends its own rows on while the next run is multiplied:
//
//   gather → matmul    tp       rows of rank r−1 │ of r−2 │ …
//                      compute  mine │ of r−1 │ of r−2 │ …        (mine are here: nothing is waited for)
//   matmul → scatter   compute  for r+1 │ for r+2 │ … │ mine │ sum
//                      tp                 to r+1  │ to r+2 │ …
//
// A run crosses as a shift (comm.hpp): in turn s each rank sends to the rank s places on, so all links carry at once and
// none twice the same. The same bytes cross as before. What arrives are t − 1 summands of my rows, beside my own; they are
// added in the order of ranks, in f32, and rounded once, so that runs repeat bit for bit.
//
// The first shift of a gather, and each of a sum, has a head start (regions.hpp) on the matmul that it shall run beside, which would
// else keep it out. Copy engines would need no room at all: PyTorch's way, and another one of Communicator::shift.
//
// Backward: the gradient that a row-parallel linear gathers, and the one that a column-parallel linear scatters, the same
// way. The rows of x that backward gathers once more are as they were: they cross beside the matmuls of the linear above.
//
// Sources: Wang et al. 2023, "Overlap Communication with Dependent Computation via Decomposition in Large Deep Learning
// Models", ASPLOS; pytorch/pytorch @006b161f, torch/distributed/_symmetric_memory/__init__.py, L179-L326
// (_pipelined_multi_all_gather_and_consume) and L358-L473 (_pipelined_produce_and_all2all: there a kernel that sleeps keeps the
// other stream back, and summands are added in f32, too); NVIDIA/Megatron-LM @d98e8a64, megatron/core/model_parallel_config.py
// (tp_comm_overlap, which TransformerEngine does with userbuffers).
#pragma once

#include <functional>
#include <vector>

#include "engine/tensor_parallel/sequence.hpp"

namespace shardbook::tensor_parallel {

// What is done with the rows of one rank: of an input, or of a summand that is to be made.
using Multiply = std::function<void(int rank, const Tensor& rows_RD)>;

// Runs of rows that cross one after the other, each in a turn of its own: 1, 2, … up to the others of the group.
class RowsInTurns {
 public:
  RowsInTurns(device::Device& device, TensorParallelGroup group, const std::string& name);

  int ranks() const { return group_.communicator.size(); }
  int me() const { return group_.communicator.index(); }
  // Whose rows come in a turn, and to whom mine go. Turn 0: mine, both.
  int from(int turn) const { return (me() + ranks() - turn) % ranks(); }
  int to(int turn) const { return (me() + turn) % ranks(); }
  // The rows of rank `of` in all of them, which divide by the ranks.
  Tensor rows(const Tensor& all_ND, int of) const { return all_ND.rows(all_ND.shape[0] / ranks() * of, all_ND.shape[0] / ranks() * (of + 1)); }
  Epilogue rows(const Epilogue& of_all, int of) const { return {of_all.what, of_all.other.exists() ? rows(of_all.other, of) : Tensor{}}; }

  // Brings the rows of the others into their places, a turn each; compute goes on when the first is under way.
  void start_gather(Call ctx, const Tensor& mine_RD, const Tensor& all_ND);
  // Meanwhile: mine at once, then those of each other rank as they have come. REQUIRES: the gather was started.
  void multiply_as_they_come(Context& ctx, const Tensor& mine_RD, const Tensor& all_ND, const Multiply& multiply);
  // The same, and behind them puts mine into their place.
  void start_gather_of_all(Call ctx, const Tensor& mine_RD, const Tensor& all_ND);
  // Sends what compute has made so far to to(turn), and brings the same of from(turn).
  void start_turn(Call ctx, int turn, const Tensor& out_RD, const Tensor& in_RD);
  // What is issued to compute from here on sees what came in this turn; in all; and, of a gather of all, mine in their place.
  void await_turn(Context& ctx, int turn) { ctx.device.wait(ctx.compute, arrived_[static_cast<std::size_t>(turn - 1)]); }
  void await_all(Context& ctx) { await_turn(ctx, ranks() - 1); }
  void await_mine(Context& ctx) { ctx.device.wait(ctx.compute, in_place_); }

 private:
  TensorParallelGroup group_;
  device::Event produced_;
  HeadStart head_start_;
  device::Event in_place_;
  std::vector<device::Event> arrived_;   // by turn, from 1 on
};

// A matmul of runs of rows whose summands over ranks cross as they are made; then each rank has the sum of its rows.
class SumInTurns {
 public:
  SumInTurns(device::Device& device, TensorParallelGroup group, const std::string& name) : rows_(device, group, name) {}
  // Multiplies into each rank's summand, mine last.
  void start(Call ctx, const AllRows& all, const Multiply& multiply);
  // mine_RD = Σ over ranks of the summands of my rows.
  void finish(Call ctx, const AllRows& all, const Tensor& mine_RD);

 private:
  RowsInTurns rows_;
};

class ColumnParallelInPieces : public ColumnParallelFromRows {
 public:
  ColumnParallelInPieces(device::Device& device, TensorParallelGroup group, std::shared_ptr<AllRows> all, const model::LinearConfig& config);
  void allocate(Context& ctx) override { all_->allocate(ctx, inputs(), in_.ranks()); }
  void forward(Call ctx, const Tensor& x_RI, const Tensor& y_NO, const Epilogue& epilogue) override;
  void input_gradient(Call ctx, const Tensor& dy_NO, const Tensor& dx_RI, const Epilogue& epilogue) override;
  void await_input_gradient(Context& ctx) override;

 private:
  RowsInTurns in_;
  SumInTurns back_;
  Tensor dx_RI_;   // of the input gradient that is under way
};

class RowParallelInPieces final : public RowParallelToRows {
 public:
  RowParallelInPieces(device::Device& device, TensorParallelGroup group, std::shared_ptr<AllRows> all, const model::LinearConfig& config);
  void allocate(Context& ctx) override { all_->allocate(ctx, outputs(), back_.ranks()); }
  void forward(Call ctx, const Tensor& x_NI, const Tensor& y_RO, const Epilogue& epilogue) override;
  void input_gradient(Call ctx, const Tensor& dy_RO, const Tensor& dx_NI, const Epilogue& epilogue) override;
  void weight_gradient(Call ctx, const Tensor& x_NI, const Tensor& dy_RO) override;

 private:
  SumInTurns out_;
  RowsInTurns back_;
};

}  // namespace shardbook::tensor_parallel
