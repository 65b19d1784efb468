// Lab 01: the one page that you program against.
//
// Eight replicas hold the same parameters and see other tokens. Backward makes gradients on r.compute, the last layer
// first. You sum them over the replicas, so that all make the same update. A call issues work to a stream and returns at
// once; a stream runs what it was given in order; two streams run side by side unless an event puts them in order:
//
//   r.device.record(stream, event)   the event happens when all that the stream holds by now has run
//   r.device.wait(stream, event)     what is issued to the stream from here on runs after the event
//   r.group.all_reduce(stream, t, t) t becomes the sum of all replicas' t; all replicas call alike, in one order
#pragma once

#include <vector>

#include "engine/comm/comm.hpp"

namespace shardbook::lab01 {

using device::Event;
using device::Stream;
using tensor::Tensor;

// A layer's gradient: parts[0] is the embedding's, parts[1] the first block's, and so on.
struct Part {
  Tensor gradient;                  // all of it, one tensor
  std::vector<Tensor> parameters;   // the same numbers, a tensor for each parameter
  Event written, summed;            // two events for you to record
};

struct Replica {
  device::Device& device;
  Stream& compute;                  // backward runs here
  Stream& comm;                     // yours: nothing else runs here
  comm::Communicator& group;        // all replicas
  std::vector<Part> parts;
  Tensor gradients;                 // of all parts, end to end

  // The gradients of parts first to last, both included, as one tensor: they lie end to end.
  Tensor bucket(std::size_t first, std::size_t last) const {
    if (first > last) throw base::Failure(base::text("r.bucket(", first, ", ", last, ") ends before it begins: the first is the smaller"));
    const std::int64_t begin = parts[first].gradient.offset - gradients.offset;
    return gradients.slice(begin, {parts[last].gradient.offset + parts[last].gradient.elements() - gradients.offset - begin});
  }
};

// Part a. You write these two. The first is called when the last op that writes parts[i].gradient has been issued to r.compute,
// for the last part first; the second after all of them, before the optimizer reads any gradient.
void part_is_written(Replica& r, std::size_t i);
void backward_is_over(Replica& r);

// Part b. Each of eight GPUs updates an eighth of the parameters, and so keeps an eighth of what the optimizer needs.
//
//   s.group.reduce_scatter(stream, full, shard)   shard becomes this GPU's part of the sum of all GPUs' full
//   s.group.all_gather(stream, shard, full)       full becomes the shards of all GPUs, end to end
struct Sharded {
  device::Device& device;
  Stream& compute;                  // backward, the update and the next forward run here
  Stream& comm;                     // yours
  comm::Communicator& group;
  Tensor gradients;                 // f32, of all parameters: this GPU's own, as backward leaves them
  Tensor gradient_shard;            // this GPU's place in them: what the update reads
  Tensor parameters;                // bf16, all: what forward reads
  Tensor parameter_shard;           // this GPU's place in them: what the update writes
  Event produced, arrived;          // two events for you to record
};

// You write these two. After the first the update is issued to s.compute; after the second the next step's forward.
void backward_is_over(Sharded& s);
void after_update(Sharded& s);

}  // namespace shardbook::lab01
