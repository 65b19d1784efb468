// comm/nccl: collectives between GPUs.
//
// One communicator over the whole world is made first, non-blocking, so that a peer that never comes can be
// given up; each group's communicator is split from it. A group that is the whole world takes the world's own.
//
// Invariants
//   - NCCL has a call in its stream when issue() returns, so what is issued later is behind it.
//   - Calls on communicators of one device keep the order in which the host issued them: NCCL 2.26 and newer
//     do this themselves (NCCL_LAUNCH_ORDER_IMPLICIT, set here), so that two may run at once. Below, and where calls are to be
//     in graphs, a call waits for the end of the one before, if that was another communicator's: with the variable set,
//     NCCL 2.28.3 ends the process by a segmentation fault when its calls are captured (tried on one H200, driver 580.159;
//     with 0 it captures and replays: experiments/speed). One communicator's calls NCCL orders itself, always.
//   - Calls in a graph begin when what the graph puts before them has ended, and wait for nothing else (NCCL_GRAPH_MIXING_SUPPORT=0,
//     set here where calls are to be in graphs). Left on, NCCL has each launch wait for an event of the launch before, of whatever
//     graph or stream; off, calls of a communicator may not be under way in two graphs at once, nor in a graph and outside one,
//     however streams order them. They are not: launches of a device run one after the other, and between one and a call outside
//     graphs the device is waited for (CudaDevice, at the end of a capture and round timed steps). With the edges of device/cuda/
//     graph_edges.hpp it takes 81 of 786 µs off a step (experiments/speed, "tutor-graph").
//   - Every connection is made when a communicator is made, and one call of each kind is run; none is made lazily
//     within a step (NCCL_RUNTIME_CONNECT=0, set here, and pairs by the run).
//   - Once a rank fails, its kernels are told to quit, so that the host and other ranks can leave. abort() locks nothing
//     that a call of NCCL holds (so it is in PyTorch: pytorch/pytorch @0323141f, torch/csrc/distributed/c10d/NCCLUtils.cpp,
//     getNcclComm() locks for as long as it takes to hand out the bare handle, and calls are made without).
//   - All ranks make the same memory known in the same order: they issue the same calls, and set up the same buffers.
// The user may set these variables otherwise, but for the order of launches where calls are to be in graphs.
//
// Sources: NCCL 2.28 user guide, "Creating a communicator", "Using multiple NCCL communicators concurrently", "Environment
// variables" (NCCL_GRAPH_MIXING_SUPPORT); NVIDIA/nccl src/group.cc: each call on a non-blocking communicator is launched by a
// thread of its own, which costs the host tens of microseconds (NcclOptions::blocking_calls).
#pragma once

#include <memory>
#include <string>

#include "engine/comm/comm.hpp"
#include "engine/world/world.hpp"

namespace shardbook::comm {

struct NcclOptions {
  // Calls enqueue from the calling thread. Cheaper for the host; only making the communicators can then be
  // given up by the caller itself, and calls by abort(). Measured on 2 H200s, NCCL 2.28.3: 6.5 to 10 µs a call
  // against 62 µs (`cost_bench calls` prints both).
  bool blocking_calls = true;
  // Blocks of threads, and so multiprocessors, that a collective may take at most; 0: as NCCL chooses (ncclConfig_t::maxCTAs).
  int max_ctas = 0;
  // Of what nothing runs beside (Beside::nothing) so many at least; 0: as of any other. NCCL has one number for all calls of a
  // communicator (ncclConfig_t::minCTAs), so a group that prepares for such calls then has a second one.
  int ctas_beside_nothing = 0;
  // registered: each piece of memory is made known to NCCL when a call first uses it (ncclCommRegister), and peers may read and
  // write it without a copy between. windows: it is so on all ranks at once (ncclCommWindowRegister), and what copy engines
  // can do takes no multiprocessors (NCCL_CTA_POLICY_ZERO): gathers. Where NCCL cannot (no NVLink, several nodes), both are
  // plain, by its own choice. Buffers then lie each in one piece of memory (device::cuda_keep_buffers_whole).
  Buffers buffers = Buffers::plain;
  // An event behind each call tells the flight when it has ended (flight.hpp). Without, a watch sees no end of any call.
  bool mark_ends = true;
  // Its calls may be captured into graphs. One choice for all backends of a process: NCCL reads its variables once.
  bool in_graphs = false;
  // A kernel of a call's own stream may write what the call sums, right before it.
  bool behind_kernels = false;
};

// Collective over all ranks of `world`. `device` is this rank's cuda device, not sealed yet; both outlive the
// backend, and the backend its communicators. communicator() must be called by all ranks of the world, for
// the same axes in the same order, before seal().
// Throws Failure: NCCL failed, or a peer did, whose cause it gives.
std::unique_ptr<Backend> make_nccl_backend(world::World& world, device::Device& device, NcclOptions options = {});

// "2.28.9"; empty where this build has no NCCL.
std::string nccl_version();

// Why memory cannot be windows to this NCCL, in one sentence; empty where it can.
std::string nccl_windows_problem();

}  // namespace shardbook::comm
