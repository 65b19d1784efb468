#include "engine/device/cuda/graph_edges.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/device/cuda/check.hpp"

namespace shardbook::device::cuda {

#if CUDART_VERSION < 12030

std::size_t drop_implied_edges(cudaGraph_t, const std::string&) { return 0; }

#else

namespace {

struct Edges {
  std::vector<cudaGraphNode_t> from, to;
  std::vector<cudaGraphEdgeData> data;
};

cudaError_t read(cudaGraph_t graph, Edges* edges, std::size_t* count) {
  cudaGraphNode_t* const from = edges == nullptr ? nullptr : edges->from.data();
  cudaGraphNode_t* const to = edges == nullptr ? nullptr : edges->to.data();
  cudaGraphEdgeData* const data = edges == nullptr ? nullptr : edges->data.data();
#if CUDART_VERSION >= 13000
  return cudaGraphGetEdges(graph, from, to, data, count);
#else
  return cudaGraphGetEdges_v2(graph, from, to, data, count);
#endif
}

cudaError_t remove(cudaGraph_t graph, const Edges& edges) {
#if CUDART_VERSION >= 13000
  return cudaGraphRemoveDependencies(graph, edges.from.data(), edges.to.data(), edges.data.data(), edges.from.size());
#else
  return cudaGraphRemoveDependencies_v2(graph, edges.from.data(), edges.to.data(), edges.data.data(), edges.from.size());
#endif
}

bool is_whole(const cudaGraphEdgeData& data) { return data.from_port == 0 && data.to_port == 0 && data.type == 0; }

}  // namespace

std::size_t drop_implied_edges(cudaGraph_t graph, const std::string& context) {
  std::size_t node_count = 0, edge_count = 0;
  SHARDBOOK_CUDA(cudaGraphGetNodes(graph, nullptr, &node_count), context);
  std::vector<cudaGraphNode_t> nodes(node_count);
  SHARDBOOK_CUDA(cudaGraphGetNodes(graph, nodes.data(), &node_count), context);
  SHARDBOOK_CUDA(read(graph, nullptr, &edge_count), context);
  Edges edges{std::vector<cudaGraphNode_t>(edge_count), std::vector<cudaGraphNode_t>(edge_count), std::vector<cudaGraphEdgeData>(edge_count)};
  SHARDBOOK_CUDA(read(graph, &edges, &edge_count), context);

  // Nodes by number, and a place in an order in which no edge leads back.
  std::unordered_map<cudaGraphNode_t, std::size_t> number;
  for (std::size_t node = 0; node < node_count; ++node) number[nodes[node]] = node;
  std::vector<std::vector<std::size_t>> leaving(node_count);   // edges
  std::vector<std::size_t> waits(node_count), place(node_count), order;
  for (std::size_t edge = 0; edge < edge_count; ++edge) {
    leaving[number[edges.from[edge]]].push_back(edge);
    ++waits[number[edges.to[edge]]];
  }
  for (std::size_t node = 0; node < node_count; ++node) {
    if (waits[node] == 0) order.push_back(node);
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    place[order[at]] = at;
    for (std::size_t edge : leaving[order[at]]) {
      const std::size_t next = number[edges.to[edge]];
      if (--waits[next] == 0) order.push_back(next);
    }
  }

  // From the last node to the first: what each leads to, a bit a node. Of a node's edges, nearest first, one that leads to what
  // an earlier one leads to says nothing new.
  const std::size_t words = (node_count + 63) / 64;
  std::vector<std::uint64_t> reached(node_count * words);
  Edges implied;
  for (std::size_t at = order.size(); at-- > 0;) {
    const std::size_t node = order[at];
    std::uint64_t* const mine = &reached[node * words];
    std::sort(leaving[node].begin(), leaving[node].end(), [&](std::size_t a, std::size_t b) { return place[number[edges.to[a]]] < place[number[edges.to[b]]]; });
    for (std::size_t edge : leaving[node]) {
      const std::size_t next = number[edges.to[edge]];
      if ((mine[next / 64] >> (next % 64) & 1) != 0) {
        if (!is_whole(edges.data[edge])) continue;
        implied.from.push_back(edges.from[edge]);
        implied.to.push_back(edges.to[edge]);
        implied.data.push_back(edges.data[edge]);
        continue;
      }
      if (edges.data[edge].from_port == cudaGraphKernelNodePortLaunchCompletion) continue;   // who is behind it waits for a begin, not an end
      mine[next / 64] |= std::uint64_t{1} << (next % 64);
      for (std::size_t word = 0; word < words; ++word) mine[word] |= reached[next * words + word];
    }
  }
  if (!implied.from.empty()) SHARDBOOK_CUDA(remove(graph, implied), context);
  return implied.from.size();
}

#endif

}  // namespace shardbook::device::cuda
