// Lab 02: the one page that you program against.
//
// Part a. A block has two pairs of matmuls: qkv, then projection; up, then down. Two GPUs share each. The first of a pair
// cuts its outputs: x is whole on each GPU, y is a part. The second cuts its inputs: x is that part, and y is a summand;
// what is meant is the sum over the GPUs. Backward goes the other way round. You write where the sums are, and when.
//
//   c.device.record(stream, event)   the event happens when all that the stream holds by now has run
//   c.device.wait(stream, event)     what is issued to the stream from here on runs after the event
//   c.group.all_reduce(stream, t, t) t becomes the sum of all GPUs' t; all call alike, in one order
#pragma once

#include <source_location>

#include "engine/comm/comm.hpp"

namespace shardbook::lab02 {

using device::Event;
using device::Stream;
using tensor::Tensor;
using Where = std::source_location;

// One linear, of which this GPU has a part.
struct Cut {
  device::Device& device;
  Stream& compute;               // all matmuls run here
  Stream& tp;                    // yours: nothing else of a block runs here
  comm::Communicator& group;     // the GPUs that share each matmul
  Event produced, summed;        // two events for you to record, of this linear alone
  void* weights;

  // The matmuls of this GPU's part, issued to compute: y = x Wᵀ, and dx = dy W.
  void forward(const Tensor& x, const Tensor& y, Where where = Where::current());
  void input_gradient(const Tensor& dy, const Tensor& dx, Where where = Where::current());
};

// You write these five. Outputs cut (qkv, up, and the head at the end):
void column_forward(Cut& c, const Tensor& x, const Tensor& y);
// After this call the weight gradient is issued to compute, which needs no sum; then column_await is called; then what
// reads dx is issued.
void column_input_gradient(Cut& c, const Tensor& dy, const Tensor& dx);
void column_await(Cut& c);
// Inputs cut (projection, down). What reads y is issued next, and what reads dx.
void row_forward(Cut& c, const Tensor& x, const Tensor& y);
void row_input_gradient(Cut& c, const Tensor& dy, const Tensor& dx);

// Part b. What you found out about the grammar tutor's step, in ms.
enum class Cause { host, latency, bandwidth, compute };
struct Why {
  double step_tp2_ms, step_tp4_ms;         // of `--tp 2` and `--tp 4`
  double step_tp2_free_network_ms;         // of tp 2, were communication free
  double host_us_per_sum;                  // what one all-reduce costs the host: its call, two records, two waits
  Cause cause;                             // of the growth from tp 1 to tp 2
};
Why why();

// Part c. What a step of the tutor costs, by kind of work, at one width and tp; all ns.
struct Costs {
  double host;             // the host's, to issue the step
  double compute;          // kernels, one after the other on the compute stream
  double exposed_sums;     // all-reduces that nothing can run beside: those of forward, and of the loss
  double hidden_sums;      // all-reduces that may run beside weight gradients: those of backward
  double weight_gradients; // what may hide them
};
// How long the step takes.
double predict_ns(const Costs& costs);

}  // namespace shardbook::lab02
