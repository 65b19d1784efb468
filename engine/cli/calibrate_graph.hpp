// cli/calibrate_graph: what does an op take in a graph, where nothing is issued between it and the next?
#pragma once

#include "engine/cli/stopwatch.hpp"
#include "engine/comm/comm.hpp"

namespace shardbook::cli {

// Of what `issue` makes, many times in one graph: the time from one to the next, in ns, and what the launch of a graph of `copies` costs
// the host on an idle device; over ranks the median, of collectives the largest. Every rank calls it alike. `calls`: whose collectives are
// among it. REQUIRES: device.captures(), and where there are `calls` on a GPU, that their backend does.
struct InGraph {
  double period_ns = 0, launch_ns = 0;
};
InGraph in_graph(device::Device& device, device::Stream& origin, Stopwatch& watch, const Stopwatch::Issue& issue, int copies, comm::Communicator* calls = nullptr);

// Of all-reduces over all ranks, of four sizes, the middle (of an even number the upper). `hold_up`: bytes of what holds the stream up
// (Stopwatch). REQUIRES: `device` is not sealed, and as above.
struct CollectivesInGraph {
  double gap_ns = 0;             // by how much a period of them is shorter in a graph than in a train
  double event_latency_ns = 0;   // from the end of an op to the start of what awaits it on another stream, as they have it behind matmuls and before them
};
CollectivesInGraph collectives_in_graph(world::World& world, device::Device& device, comm::Backend& backend, base::Bytes hold_up);

}  // namespace shardbook::cli
