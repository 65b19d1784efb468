// kernels/pause: how does a stream let another one's kernel begin first?
//
// One block of one thread looks at the GPU's clock until program::pause_ns have passed, and then writes its zeros. So it holds the
// stream, and leaves the multiprocessors to whoever is let in meanwhile. It reads nothing, writes some bytes, and does no flops; its
// floor is the pause. On the host nobody is let in: there the zeros are written at once.
// For the same a kernel sleeps in pytorch/pytorch @006b161f, torch/distributed/_symmetric_memory/__init__.py
// (_pipelined_produce_and_all2all).
#pragma once

#include "engine/device/device.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

// Keeps the lane for program::pause_ns, and then `to` is 0.
void pause(device::Lane lane, const tensor::Tensor& to);

}  // namespace shardbook::kernels
