#include "engine/tensor_parallel/partial_gradients.hpp"

#include <algorithm>
#include <string_view>

namespace shardbook::tensor_parallel {

PartialGradients::PartialGradients(device::Device& device, device::Stream& compute, TensorParallelGroup group, optimizer::Store& store, Next next)
    : device_(device), compute_(compute), group_(group), store_(store), next_(next),
      complete_(device.create_event("tp.partial_gradients.complete")), summed_(device.create_event("tp.partial_gradients.summed")) {}

//@ tensor_parallel.partial_gradients: What each tp rank holds whole, and saw some tokens of, is summed over tp where it lies.
void PartialGradients::run(const plan::Action& action) {
  program::Part part(device_.recorder(), "partial_gradients");
  device_.record(compute_, complete_);
  device_.wait(group_.stream, complete_);
  for (const Tensor& gradient : store_.summands(action.unit, axis)) group_.communicator.all_reduce(group_.stream, gradient, gradient);
  device_.record(group_.stream, summed_);
  open_.push_back(action.unit);
}
//@end

// The tp stream runs in order, so whoever waits for the last sum sees those before it.
void PartialGradients::await(const plan::Action& action) {
  const std::string_view over = action.axis;
  const bool reads = action.kind == plan::Kind::reduce && over != axis &&
                     std::any_of(open_.begin(), open_.end(), [&](int unit) { return unit >= action.unit && unit < action.unit + action.units; });
  if (reads) device_.wait(over == "dp_shard" ? next_.dp_shard : next_.dp_replicate, summed_);
  if (action.kind == plan::Kind::norm && !open_.empty()) device_.wait(compute_, summed_);
  if (reads || action.kind == plan::Kind::norm) {
    std::erase_if(open_, [&](int unit) { return action.kind == plan::Kind::norm || (unit >= action.unit && unit < action.unit + action.units); });
  }
}

}  // namespace shardbook::tensor_parallel
