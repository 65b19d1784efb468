// device/cuda/graph_edges: which edges of a captured graph say what others say already?
//
// Where a kernel waits for another that the one before it waits for too, the second edge orders nothing. A capture has many such:
// the stream of collectives puts each behind the one before, NCCL does so again, and between two of a step's lie the kernels that
// make what the second sums. CUDA does not drop them when it makes a graph ready, and deals nodes to streams by their edges: a chain
// of kernels with such edges runs on two, and each change of stream costs some microseconds where the next kernel of a chain starts
// in half of one.
//
// Only whole edges are dropped, behind which a kernel waits for the end of another; those that let it start early (early.cuh) stay.
// REQUIRES: a kernel that is let in early waits, before it touches anything and before it ends, for the end of what its edges name.
// The project's own do; of libraries', NCCL's kernels for windows of 2.28 to 2.30.6 do not, and are not captured
// (comm/nccl/known_memory.hpp). So the order of all that is read and written is as it was.
//
// Source: Aho, Garey, Ullman 1972, "The Transitive Reduction of a Directed Graph".
#pragma once

#include <string>

#include <cuda_runtime_api.h>

namespace shardbook::device::cuda {

// Takes them out; returns how many. 0 before CUDA 12.3, which does not say of which kind an edge is. Throws Failure where a call fails.
std::size_t drop_implied_edges(cudaGraph_t graph, const std::string& context);

}  // namespace shardbook::device::cuda
