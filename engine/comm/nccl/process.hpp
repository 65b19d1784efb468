// comm/nccl/process: what must NCCL be told before a process first calls it?
//
// NCCL reads its variables once. What they are set to here, and why, is among the invariants of nccl.hpp.
#pragma once

namespace shardbook::comm {

// Must run before this process' first communicator. Whether NCCL orders calls of several communicators by itself.
// Throws base::Failure where calls are to be in graphs, and a backend before was made for others.
bool prepare_process(bool in_graphs);
// Of the library that was found: 22803 is 2.28.3; 0 where it does not say.
int version_number();
// Whether it can order calls of several communicators at all.
bool has_launch_order();

}  // namespace shardbook::comm
