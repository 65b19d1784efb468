// Stands in for viewer/page/graphviz.cpp in fuzz targets: places nodes in a row, so that a million diagrams an hour are drawn.
#include <algorithm>

#include "viewer/page/graphviz.hpp"

namespace shardbook::page {

base::Result<PlacedGraph> place_graph(const Graph& graph, double) {
  PlacedGraph placed;
  for (const GraphNode& node : graph.nodes) {
    placed.nodes.push_back({placed.width + node.w / 2, node.h / 2});
    placed.width += node.w + 10;
    placed.height = std::max(placed.height, node.h);
  }
  for (std::size_t i = 0; i < graph.clusters.size(); ++i) {
    if (graph.clusters[i].parent >= static_cast<int>(i)) return base::Error{"a cluster stands before its parent"};
    placed.clusters.push_back({{0, 0}, {placed.width, placed.height}, {placed.width / 2, 0}});
  }
  for (const GraphEdge& edge : graph.edges) {
    const Point from = placed.nodes.at(static_cast<std::size_t>(edge.from)), to = placed.nodes.at(static_cast<std::size_t>(edge.to));
    placed.edges.push_back({{from, from, to, to}, edge.head, edge.tail, to, from, {(from.x + to.x) / 2, from.y}});
  }
  return placed;
}

}  // namespace shardbook::page
