#include "engine/tensor_parallel/overlap.hpp"

#include "engine/kernels/initialize.hpp"
#include "engine/kernels/residual.hpp"

namespace shardbook::tensor_parallel {

RowsInTurns::RowsInTurns(device::Device& device, TensorParallelGroup group, const std::string& name)
    : group_(group), produced_(device.create_event(name + ".produced")), head_start_(device, group, name, Moment::of_a_kernel),
      in_place_(device.create_event(name + ".in_place")) {
  for (int turn = 1; turn < ranks(); ++turn) arrived_.push_back(device.create_event(base::text(name, ".arrived_", turn)));
}

//@ tensor_parallel.turns: In turn s each rank sends to the one s places on; compute waits until the first has its turn, not for it.
void RowsInTurns::start_gather(Call ctx, const Tensor& mine_RD, const Tensor& all_ND) {
  const program::Planned asked(ctx.device.recorder(), ctx.caller, true);
  ctx.device.record(ctx.compute, produced_);
  ctx.device.wait(group_.stream, produced_);
  head_start_.give(ctx);
  for (int turn = 1; turn < ranks(); ++turn) {
    group_.communicator.shift(group_.stream, mine_RD, rows(all_ND, from(turn)), turn);
    ctx.device.record(group_.stream, arrived_[static_cast<std::size_t>(turn - 1)]);
  }
}

void RowsInTurns::start_turn(Call ctx, int turn, const Tensor& out_RD, const Tensor& in_RD) {
  const program::Planned asked(ctx.device.recorder(), ctx.caller, true);
  ctx.device.record(ctx.compute, produced_);
  ctx.device.wait(group_.stream, produced_);
  head_start_.give(ctx);
  group_.communicator.shift(group_.stream, out_RD, in_RD, turn);
  ctx.device.record(group_.stream, arrived_[static_cast<std::size_t>(turn - 1)]);
}
//@end

void RowsInTurns::multiply_as_they_come(Context& ctx, const Tensor& mine_RD, const Tensor& all_ND, const Multiply& multiply) {
  multiply(me(), mine_RD);
  for (int turn = 1; turn < ranks(); ++turn) {
    await_turn(ctx, turn);
    multiply(from(turn), rows(all_ND, from(turn)));
  }
}

void RowsInTurns::start_gather_of_all(Call ctx, const Tensor& mine_RD, const Tensor& all_ND) {
  start_gather(ctx, mine_RD, all_ND);
  kernels::copy(group_.stream, mine_RD, rows(all_ND, me()));
  ctx.device.record(group_.stream, in_place_);
}

//@ tensor_parallel.sum_in_turns: The others' rows first, each sent as soon as it is made; mine need not cross, and are added last.
void SumInTurns::start(Call ctx, const AllRows& all, const Multiply& multiply) {
  for (int turn = 1; turn < rows_.ranks(); ++turn) {
    const Tensor summand_RD = rows_.rows(all.y_ND, rows_.to(turn));
    multiply(rows_.to(turn), summand_RD);
    rows_.start_turn(ctx, turn, summand_RD, all.summands_of(rows_.from(turn)));
  }
  multiply(rows_.me(), all.summands_of(rows_.me()));
}

void SumInTurns::finish(Call ctx, const AllRows& all, const Tensor& mine_RD) {
  rows_.await_all(ctx);
  kernels::sum_parts(ctx.compute, all.summands_TRD, mine_RD);
}
//@end

ColumnParallelInPieces::ColumnParallelInPieces(device::Device& device, TensorParallelGroup group, std::shared_ptr<AllRows> all, const model::LinearConfig& config)
    : ColumnParallelFromRows(device, group, std::move(all), config), in_(device, group, config.name + ".rows_in_turns"), back_(device, group, config.name + ".sum_in_turns") {}

//@ tensor_parallel.pieces.column: My rows at once, the others' as they come; backward sends each rank its rows of dx as they are made.
void ColumnParallelInPieces::forward(Call ctx, const Tensor& x_RI, const Tensor& y_NO, const Epilogue& epilogue) {
  program::Part part(ctx.device.recorder(), role_);
  in_.start_gather(ctx, x_RI, all_->x_ND);
  in_.multiply_as_they_come(ctx, x_RI, all_->x_ND, [&](int rank, const Tensor& theirs_RI) { weights_.forward(ctx.compute, theirs_RI, in_.rows(y_NO, rank), in_.rows(epilogue, rank)); });
}

void ColumnParallelInPieces::input_gradient(Call ctx, const Tensor& dy_NO, const Tensor& dx_RI, const Epilogue& epilogue) {
  program::Part part(ctx.device.recorder(), role_);
  model::refuse(epilogue);
  dx_RI_ = dx_RI;
  back_.start(ctx, *all_, [&](int rank, const Tensor& summand_RI) { weights_.input_gradient(ctx.compute, in_.rows(dy_NO, rank), summand_RI); });
}

void ColumnParallelInPieces::await_input_gradient(Context& ctx) {
  program::Part part(ctx.device.recorder(), role_);
  back_.finish(ctx, *all_, dx_RI_);
}
//@end

RowParallelInPieces::RowParallelInPieces(device::Device& device, TensorParallelGroup group, std::shared_ptr<AllRows> all, const model::LinearConfig& config)
    : RowParallelToRows(device, group, std::move(all), config), out_(device, group, config.name + ".sum_in_turns"), back_(device, group, config.name + ".rows_in_turns") {}

//@ tensor_parallel.pieces.row: The other way round; both gradients read dy, so mine are put beside the others' behind all turns.
void RowParallelInPieces::forward(Call ctx, const Tensor& x_NI, const Tensor& y_RO, const Epilogue& epilogue) {
  program::Part part(ctx.device.recorder(), role_);
  model::refuse(epilogue);
  out_.start(ctx, *all_, [&](int rank, const Tensor& summand_RO) { weights_.forward(ctx.compute, back_.rows(x_NI, rank), summand_RO); });
  out_.finish(ctx, *all_, y_RO);
}

void RowParallelInPieces::input_gradient(Call ctx, const Tensor& dy_RO, const Tensor& dx_NI, const Epilogue& epilogue) {
  program::Part part(ctx.device.recorder(), role_);
  back_.start_gather_of_all(ctx, dy_RO, all_->y_ND);
  back_.multiply_as_they_come(ctx, dy_RO, all_->y_ND, [&](int rank, const Tensor& theirs_RO) { weights_.input_gradient(ctx.compute, theirs_RO, back_.rows(dx_NI, rank), back_.rows(epilogue, rank)); });
}

void RowParallelInPieces::weight_gradient(Call ctx, const Tensor& x_NI, const Tensor& dy_RO) {
  back_.await_mine(ctx);
  RowParallelToRows::weight_gradient(ctx, x_NI, dy_RO);
}
//@end

}  // namespace shardbook::tensor_parallel
