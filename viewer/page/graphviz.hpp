// page/graphviz: boxes and links in, places out. The only file that knows libgvc is graphviz.cpp.
//
// Pixels, y downwards. libgvc keeps global state: calls wait for one another. dot may take minutes for a few hundred
// links, and cannot be interrupted; so a large graph is placed in a process of its own, which has a time to live.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "viewer/page/picture.hpp"

namespace shardbook::page {

struct GraphNode {
  float w = 0, h = 0;
  const char* shape = "box";       // box, ellipse, diamond, hexagon: where edges end
  int cluster = -1;
};

struct GraphCluster {
  int parent = -1;                 // REQUIRES: less than the own index
  float label_w = 0, label_h = 0;
};

struct GraphEdge {
  int from = 0, to = 0;
  int from_cluster = -1, to_cluster = -1;     // the edge ends at that cluster's border instead
  float label_w = 0, label_h = 0;
  int length = 1;
  bool head = true, tail = false;
  bool invisible = false;
};

struct Graph {
  std::string direction = "TB";
  std::vector<GraphNode> nodes;
  std::vector<GraphCluster> clusters;
  std::vector<GraphEdge> edges;
};

struct PlacedEdge {
  std::vector<Point> bezier;       // p0 c c p1 ...; empty: dot drew none
  bool has_head = false, has_tail = false;
  Point head, tail;                // tips of the heads, beyond the bezier's ends
  Point label;                     // its middle
};

struct PlacedCluster {
  Point min, max, label;           // label: its middle
};

struct PlacedGraph {
  float width = 0, height = 0;
  std::vector<Point> nodes;        // middles
  std::vector<PlacedCluster> clusters;
  std::vector<PlacedEdge> edges;
  bool simple = false;             // place_simply's
};

// Places a graph with dot, or, where that takes more than `seconds` of processor time, simply. Errors: dot gave up.
constexpr double dot_seconds = 1.5;
constexpr std::size_t parts_placed_at_once = 120;
base::Result<PlacedGraph> place_graph(const Graph& graph, double seconds = dot_seconds);

// simple_layout.cpp: layers by the longest way to each box, boxes in a layer by where their neighbours stand, straight
// links; a cluster is laid out by itself and is one box in what is around it. O(parts log parts).
PlacedGraph place_simply(const Graph& graph);

}  // namespace shardbook::page
