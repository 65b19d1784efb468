#include "engine/tensor_parallel/regions.hpp"

#include "engine/kernels/initialize.hpp"
#include "engine/kernels/pause.hpp"

namespace shardbook::tensor_parallel {

//@ tensor_parallel.head_start: Compute waits for a place in the other stream, not for what stands behind it, and then takes a moment.
void HeadStart::give(Context& ctx) {
  ctx.device.record(group_.stream, reached_);
  ctx.device.wait(ctx.compute, reached_);
  const Tensor few = ctx.scratch.slice(0, {8});
  if (moment_ == Moment::of_a_pause) return kernels::pause(ctx.compute, few);
  kernels::fill(ctx.compute, few, 0);
}
//@end

SumOverRanks::SumOverRanks(device::Device& device, TensorParallelGroup group, const std::string& name, Start begin)
    : group_(group),
      produced_(device.create_event(name + ".produced")),
      summed_(device.create_event(name + ".summed")) {
  if (begin == Start::ahead) head_start_.emplace(device, group, name, Moment::of_a_pause);
}

//@ tensor_parallel.sum: The all-reduce waits for what compute has made, on a stream of its own.
void SumOverRanks::start(Call ctx, const Tensor& partial, comm::Reduction reduction) {
  const program::Planned asked(ctx.device.recorder(), ctx.caller, true);
  ctx.device.record(ctx.compute, produced_);
  ctx.device.wait(group_.stream, produced_);
  if (head_start_) head_start_->give(ctx);
  group_.communicator.all_reduce(group_.stream, partial, partial, reduction);
  ctx.device.record(group_.stream, summed_);
}

void SumOverRanks::await(Context& ctx) { ctx.device.wait(ctx.compute, summed_); }
//@end

RowsOverRanks::RowsOverRanks(device::Device& device, TensorParallelGroup group, const std::string& name, Start begin_sums)
    : group_(group),
      produced_(device.create_event(name + ".produced")),
      gathered_(device.create_event(name + ".rows_gathered")),
      summed_(device.create_event(name + ".summed")) {
  if (begin_sums == Start::ahead) head_start_.emplace(device, group, name, Moment::of_a_pause);
}

//@ tensor_parallel.rows: Half an all-reduce each: the one brings rows together, the other sums them and leaves each rank its own.
void RowsOverRanks::start_gather(Call ctx, const Tensor& mine_RD, const Tensor& all_ND) {
  const program::Planned asked(ctx.device.recorder(), ctx.caller, true);
  ctx.device.record(ctx.compute, produced_);
  ctx.device.wait(group_.stream, produced_);
  group_.communicator.all_gather(group_.stream, mine_RD, all_ND);
  ctx.device.record(group_.stream, gathered_);
}

void RowsOverRanks::start_gather_again(Call ctx, const Tensor& mine_RD, const Tensor& all_ND) {
  const program::Planned asked(ctx.device.recorder(), ctx.caller, true);
  group_.communicator.all_gather(group_.stream, mine_RD, all_ND);
  ctx.device.record(group_.stream, gathered_);
}

void RowsOverRanks::start_sum(Call ctx, const Tensor& partial_ND, const Tensor& mine_RD) {
  const program::Planned asked(ctx.device.recorder(), ctx.caller, true);
  ctx.device.record(ctx.compute, produced_);
  ctx.device.wait(group_.stream, produced_);
  if (head_start_) head_start_->give(ctx);
  group_.communicator.reduce_scatter(group_.stream, partial_ND, mine_RD);
  ctx.device.record(group_.stream, summed_);
}

void RowsOverRanks::await_gather(Context& ctx) { ctx.device.wait(ctx.compute, gathered_); }
void RowsOverRanks::await_sum(Context& ctx) { ctx.device.wait(ctx.compute, summed_); }
//@end

}  // namespace shardbook::tensor_parallel
