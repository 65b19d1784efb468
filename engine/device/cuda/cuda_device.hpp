// device/cuda: a GPU as a device.
//
// What is issued goes to CUDA streams at once; memory is one arena (arena.hpp); spans are measured by
// marks between ops (span_timer.hpp). A build without CUDA links no_cuda_device.cpp, whose functions say so.
//
// Modules are loaded when the process first touches CUDA (CUDA_MODULE_LOADING=EAGER, unless the
// variable is set): lazy loading within a step may wait for a GPU on which a collective waits for a peer.
#pragma once

#include <memory>
#include <string>

#include "engine/base/result.hpp"
#include "engine/device/device.hpp"

namespace shardbook::device {

// GPUs that this process can see; 0 without CUDA, driver or GPU.
int cuda_device_count();
// Why there is none, in one sentence; empty where there is one.
std::string cuda_problem();
// Why there is no cuBLASLt, without which no device can be made here, in one sentence; empty where it opens. Opens it; any thread.
std::string cuda_blas_problem();
// "NVIDIA H200". REQUIRES of these: 0 <= gpu < cuda_device_count().
std::string cuda_device_name(int gpu);
base::Bytes cuda_device_memory(int gpu);
// As CUDA counts: 13000 is 13.0; 0 where there is none.
int cuda_driver_version();
int cuda_runtime_version();

// A device on this GPU, for the calling thread, which alone may use it. Errors: no such GPU, a GPU that
// another process holds alone, no cuBLASLt. Storage of bf16 is bf16 or f32, of f32 is f32.
base::Result<std::unique_ptr<Device>> make_cuda_device(int gpu, Storage storage, base::Rank rank);

// Memory for the needs of a library, which is no buffer of the program: zeroed, 256-byte aligned, the
// device's own. Set-up only. REQUIRES: device.kind() == Kind::cuda. Throws Failure where there is no more.
void* cuda_scratch(Device& device, base::Bytes bytes);

// From now on each buffer lies in one piece of memory, that can be shared as one (arena.hpp). Before any is allocated.
// REQUIRES: device.kind() == Kind::cuda.
void cuda_keep_buffers_whole(Device& device);
// The piece of memory that holds this place: its begin, and bytes. Throws Failure where the driver knows none.
struct CudaPiece {
  void* begin = nullptr;
  std::size_t bytes = 0;
};
CudaPiece cuda_piece_of(const void* place);

// What timing costs and how exact it is, in nanoseconds: a mark between two ops of kernels, on the host and on
// their stream, and how long a kernel begins behind such a mark, which spans do not count, all measured by seal(); and the error of the
// last timed step's device times on the host's clock; and whether kernels marked that step, or events alone, of which it is not
// known what they cost the stream (0); and of how many of its ops the next kernel told the end. REQUIRES: device.kind() == Kind::cuda.
struct CudaTiming {
  base::Nanoseconds clock_error = 0;
  base::Nanoseconds host_cost_of_op = 0;
  base::Nanoseconds device_cost_of_op = 0;
  base::Nanoseconds lead_of_op = 0;
  bool marked_by_kernels = false;
  std::size_t ops_without_marks = 0;
};
CudaTiming cuda_timing(const Device& device);

// At which the multiprocessors' clock goes, cycles a nanosecond, by a kernel that takes 0.1 ms. REQUIRES: device.kind() == Kind::cuda, and
// it is idle. Throws Failure where a call fails.
double cuda_clock(Device& device);

}  // namespace shardbook::device
