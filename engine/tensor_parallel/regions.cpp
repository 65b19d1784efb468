#include "engine/tensor_parallel/regions.hpp"

namespace shardbook::tensor_parallel {

SumOverRanks::SumOverRanks(device::Device& device, TensorParallelGroup group, const std::string& name)
    : group_(group),
      produced_(device.create_event(name + ".produced")),
      summed_(device.create_event(name + ".summed")) {}

//@ tensor_parallel.sum: The all-reduce waits for what compute has made, on a stream of its own.
void SumOverRanks::start(Context& ctx, const Tensor& partial, comm::Reduction reduction) {
  ctx.device.record(ctx.compute, produced_);
  ctx.device.wait(group_.stream, produced_);
  group_.communicator.all_reduce(group_.stream, partial, partial, reduction);
  ctx.device.record(group_.stream, summed_);
}

void SumOverRanks::await(Context& ctx) { ctx.device.wait(ctx.compute, summed_); }
//@end

}  // namespace shardbook::tensor_parallel
