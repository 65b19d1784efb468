#include "engine/data_parallel/replicas.hpp"

namespace shardbook::data_parallel {

Replicas::Replicas(device::Device& device, device::Stream& compute, device::Stream& stream, comm::Communicator& group,
                   optimizer::Store& store, bool each_parameter)
    : device_(device), compute_(compute), stream_(stream), group_(group), store_(store), summed_(device.create_event("dp.summed")) {
  if (!each_parameter) return;
  for (const optimizer::ShardState& shard : store.shards()) {
    std::vector<tensor::Tensor>& parts = parameters_.emplace_back();
    for (const shard::Piece& piece : shard.layout->pieces(shard.flat)) {
      parts.push_back(shard.gradient.slice(piece.flat.begin - shard.flat.begin, {piece.flat.size()}));
    }
  }
}

//@ data_parallel.sum: Sum a bucket over replicas, in place, once its last gradient is there.
void Replicas::run(const plan::Action& action) {
  program::Part part(device_.recorder(), "dp_bucket");
  store_.await_gradient(stream_, action.unit);   // backward makes the first unit of a bucket last
  if (parameters_.empty()) {
    const tensor::Tensor bucket = store_.gradients(action.unit, action.units);
    group_.all_reduce(stream_, bucket, bucket);
  } else {
    for (int unit = action.unit; unit < action.unit + action.units; ++unit) {
      for (const tensor::Tensor& gradient : parameters_[static_cast<std::size_t>(unit)]) group_.all_reduce(stream_, gradient, gradient);
    }
  }
  device_.record(stream_, summed_);
}
//@end

void Replicas::await(const plan::Action& action) {
  if (action.kind == plan::Kind::norm) device_.wait(compute_, summed_);
}

}  // namespace shardbook::data_parallel
