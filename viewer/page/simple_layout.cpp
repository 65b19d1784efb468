// page/simple_layout: a layout for diagrams that take dot too long; see place_simply.
//
// A tree of boxes: the whole holds clusters and nodes, a cluster holds clusters and nodes. Inside each, boxes stand in
// layers: a box one layer below all that lead to it, links that would close a ring left out. Within a layer they are
// sorted by the middle of their neighbours in the layers around, a few times down and up. All is done from top to
// bottom; other directions turn the result.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "viewer/page/graphviz.hpp"

namespace shardbook::page {

namespace {

constexpr float between_boxes = 26, between_layers = 46, cluster_edge = 14, head_length = 9;
constexpr int sweeps = 6;

// A node or a cluster, as it stands in what holds it.
struct Box {
  int node = -1, cluster = -1;
  float w = 0, h = 0;
  Point middle;                    // from the upper left corner of what holds it
  int layer = 0;
  double place = 0;
};

class SimpleLayout {
 public:
  explicit SimpleLayout(const Graph& graph) : graph_(graph), lies_(graph.direction == "LR" || graph.direction == "RL") {}

  PlacedGraph run() {
    placed_.simple = true;
    placed_.nodes.resize(graph_.nodes.size());
    placed_.clusters.resize(graph_.clusters.size());
    sizes_.resize(graph_.clusters.size());
    inside_.resize(graph_.clusters.size() + 1);
    // Inner ones first: a cluster's parent has a lower index.
    for (int cluster = static_cast<int>(graph_.clusters.size()) - 1; cluster >= -1; --cluster) lay_out(cluster);
    put(-1, {0, 0});
    turn();
    for (const GraphEdge& edge : graph_.edges) placed_.edges.push_back(link(edge));
    return std::move(placed_);
  }

 private:
  std::vector<Box>& inside(int cluster) { return inside_[static_cast<std::size_t>(cluster + 1)]; }
  // The cluster among those of `scope` that holds this one, or -1.
  int child_of(int scope, int cluster) const {
    while (cluster >= 0 && graph_.clusters[static_cast<std::size_t>(cluster)].parent != scope) cluster = graph_.clusters[static_cast<std::size_t>(cluster)].parent;
    return cluster;
  }
  bool holds(int scope, int cluster) const {
    while (cluster >= 0 && cluster != scope) cluster = graph_.clusters[static_cast<std::size_t>(cluster)].parent;
    return cluster == scope;
  }

  void lay_out(int scope);
  std::vector<std::pair<int, int>> links_of(int scope, const std::vector<Box>& boxes) const;
  static void find_layers(std::vector<Box>& boxes, const std::vector<std::pair<int, int>>& links);
  static void sort_layers(std::vector<Box>& boxes, const std::vector<std::pair<int, int>>& links, std::vector<std::vector<int>>& layers);
  void put(int scope, Point corner);
  void turn();
  PlacedEdge link(const GraphEdge& edge) const;
  std::pair<Point, Point> end_of(int node, int cluster) const;

  const Graph& graph_;
  bool lies_;                      // from left to right, or back: sizes are turned before and after
  PlacedGraph placed_;
  std::vector<Point> sizes_;       // of clusters, as if from top to bottom
  std::vector<std::vector<Box>> inside_;
};

// Links between the boxes of a scope: those of what they hold, too.
std::vector<std::pair<int, int>> SimpleLayout::links_of(int scope, const std::vector<Box>& boxes) const {
  std::map<int, int> of_node, of_cluster;
  for (std::size_t i = 0; i < boxes.size(); ++i) (boxes[i].node >= 0 ? of_node[boxes[i].node] : of_cluster[boxes[i].cluster]) = static_cast<int>(i);
  const auto box_of = [&](int node) {
    const int cluster = graph_.nodes[static_cast<std::size_t>(node)].cluster;
    if (cluster == scope) return of_node.at(node);
    if (!holds(scope, cluster)) return -1;
    return of_cluster.at(child_of(scope, cluster));
  };
  std::vector<std::pair<int, int>> links;
  for (const GraphEdge& edge : graph_.edges) {
    const int from = box_of(edge.from), to = box_of(edge.to);
    if (from >= 0 && to >= 0 && from != to) links.emplace_back(from, to);
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

// One below the lowest that leads to it. A depth-first walk in the order of the text finds the links that close a ring.
void SimpleLayout::find_layers(std::vector<Box>& boxes, const std::vector<std::pair<int, int>>& links) {
  std::vector<std::vector<int>> next(boxes.size());
  for (const auto& [from, to] : links) next[static_cast<std::size_t>(from)].push_back(to);
  std::vector<int> state(boxes.size(), 0), order;            // 0 new, 1 on the way, 2 done
  std::vector<std::vector<int>> kept(boxes.size());
  for (std::size_t root = 0; root < boxes.size(); ++root) {
    if (state[root] != 0) continue;
    std::vector<std::pair<int, std::size_t>> way{{static_cast<int>(root), 0}};
    state[root] = 1;
    while (!way.empty()) {
      auto& [at, child] = way.back();
      const auto here = static_cast<std::size_t>(at);
      if (child == next[here].size()) {
        state[here] = 2;
        order.push_back(at);
        way.pop_back();
        continue;
      }
      const int to = next[here][child++];
      if (state[static_cast<std::size_t>(to)] == 1) continue;
      kept[here].push_back(to);
      if (state[static_cast<std::size_t>(to)] == 0) {
        state[static_cast<std::size_t>(to)] = 1;
        way.emplace_back(to, 0);
      }
    }
  }
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    const Box& box = boxes[static_cast<std::size_t>(*at)];
    for (const int to : kept[static_cast<std::size_t>(*at)]) boxes[static_cast<std::size_t>(to)].layer = std::max(boxes[static_cast<std::size_t>(to)].layer, box.layer + 1);
  }
}

void SimpleLayout::sort_layers(std::vector<Box>& boxes, const std::vector<std::pair<int, int>>& links, std::vector<std::vector<int>>& layers) {
  std::vector<std::vector<int>> near(boxes.size());
  for (const auto& [from, to] : links) {
    near[static_cast<std::size_t>(from)].push_back(to);
    near[static_cast<std::size_t>(to)].push_back(from);
  }
  const auto number = [&](const std::vector<int>& layer) {
    for (std::size_t i = 0; i < layer.size(); ++i) boxes[static_cast<std::size_t>(layer[i])].place = (static_cast<double>(i) + 0.5) / static_cast<double>(layer.size());
  };
  for (const std::vector<int>& layer : layers) number(layer);
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      std::vector<int>& layer = layers[sweep % 2 == 0 ? i : layers.size() - 1 - i];
      std::map<int, double> middle;
      for (const int box : layer) {
        const std::vector<int>& around = near[static_cast<std::size_t>(box)];
        double sum = 0;
        for (const int other : around) sum += boxes[static_cast<std::size_t>(other)].place;
        middle[box] = around.empty() ? boxes[static_cast<std::size_t>(box)].place : sum / static_cast<double>(around.size());
      }
      std::stable_sort(layer.begin(), layer.end(), [&](int x, int y) { return middle[x] < middle[y]; });
      number(layer);
    }
  }
}

void SimpleLayout::lay_out(int scope) {
  std::vector<Box>& boxes = inside(scope);
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const GraphNode& node = graph_.nodes[i];
    if (node.cluster == scope) boxes.push_back({static_cast<int>(i), -1, lies_ ? node.h : node.w, lies_ ? node.w : node.h, {}, 0, 0});
  }
  for (std::size_t i = 0; i < graph_.clusters.size(); ++i) {
    if (graph_.clusters[i].parent == scope) boxes.push_back({-1, static_cast<int>(i), sizes_[i].x, sizes_[i].y, {}, 0, 0});
  }
  const std::vector<std::pair<int, int>> links = links_of(scope, boxes);
  find_layers(boxes, links);
  int deepest = -1;
  for (const Box& box : boxes) deepest = std::max(deepest, box.layer);
  std::vector<std::vector<int>> layers(static_cast<std::size_t>(deepest + 1));
  for (std::size_t i = 0; i < boxes.size(); ++i) layers[static_cast<std::size_t>(boxes[i].layer)].push_back(static_cast<int>(i));
  sort_layers(boxes, links, layers);

  // Each layer in the middle of the widest; a title stands above, however the rest is turned.
  const auto width_of = [&](const std::vector<int>& layer) {
    float width = between_boxes * static_cast<float>(std::max<std::size_t>(layer.size(), 1) - 1);
    for (const int box : layer) width += boxes[static_cast<std::size_t>(box)].w;
    return width;
  };
  float widest = 0;
  for (const std::vector<int>& layer : layers) widest = std::max(widest, width_of(layer));
  float label_w = 0, label_h = 0;
  if (scope >= 0) {
    label_w = graph_.clusters[static_cast<std::size_t>(scope)].label_w;
    label_h = graph_.clusters[static_cast<std::size_t>(scope)].label_h;
  }
  const float edge = scope >= 0 ? cluster_edge : 0;
  if (!lies_) widest = std::max(widest, label_w);
  const float left = edge + (lies_ ? label_h : 0);
  float y = edge + (lies_ ? 0 : label_h);
  for (const std::vector<int>& layer : layers) {
    float x = left + (widest - width_of(layer)) / 2, tallest = 0;
    for (const int box : layer) tallest = std::max(tallest, boxes[static_cast<std::size_t>(box)].h);
    for (const int at : layer) {
      Box& box = boxes[static_cast<std::size_t>(at)];
      box.middle = {x + box.w / 2, y + tallest / 2};
      x += box.w + between_boxes;
    }
    y += tallest + between_layers;
  }
  float height = (layers.empty() ? y : y - between_layers) + edge;
  if (lies_) height = std::max(height, label_w + 2 * edge);
  const Point size{left + widest + edge, height};
  if (scope >= 0) sizes_[static_cast<std::size_t>(scope)] = size;
  else placed_.width = size.x, placed_.height = size.y;
}

void SimpleLayout::put(int scope, Point corner) {
  for (const Box& box : inside(scope)) {
    const Point middle{corner.x + box.middle.x, corner.y + box.middle.y};
    if (box.node >= 0) {
      placed_.nodes[static_cast<std::size_t>(box.node)] = middle;
      continue;
    }
    PlacedCluster& cluster = placed_.clusters[static_cast<std::size_t>(box.cluster)];
    cluster.min = {middle.x - box.w / 2, middle.y - box.h / 2};
    cluster.max = {middle.x + box.w / 2, middle.y + box.h / 2};
    put(box.cluster, cluster.min);
  }
}

void SimpleLayout::turn() {
  const float height = placed_.height;
  const auto turned = [&](Point at) {
    if (graph_.direction == "BT") return Point{at.x, height - at.y};
    if (graph_.direction == "LR") return Point{at.y, at.x};
    if (graph_.direction == "RL") return Point{height - at.y, at.x};
    return at;
  };
  for (Point& node : placed_.nodes) node = turned(node);
  for (std::size_t i = 0; i < placed_.clusters.size(); ++i) {
    PlacedCluster& cluster = placed_.clusters[i];
    const Point a = turned(cluster.min), b = turned(cluster.max);
    cluster.min = {std::min(a.x, b.x), std::min(a.y, b.y)};
    cluster.max = {std::max(a.x, b.x), std::max(a.y, b.y)};
    // From bottom to top the title's room is below.
    const float label_h = graph_.clusters[i].label_h, edge = cluster_edge / 2 + label_h / 2;
    cluster.label = {(cluster.min.x + cluster.max.x) / 2, graph_.direction == "BT" ? cluster.max.y - edge : cluster.min.y + edge};
  }
  if (lies_) std::swap(placed_.width, placed_.height);
}

// The corners of where a link ends.
std::pair<Point, Point> SimpleLayout::end_of(int node, int cluster) const {
  if (cluster >= 0) return {placed_.clusters[static_cast<std::size_t>(cluster)].min, placed_.clusters[static_cast<std::size_t>(cluster)].max};
  const Point at = placed_.nodes[static_cast<std::size_t>(node)];
  const GraphNode& box = graph_.nodes[static_cast<std::size_t>(node)];
  return {{at.x - box.w / 2, at.y - box.h / 2}, {at.x + box.w / 2, at.y + box.h / 2}};
}

PlacedEdge SimpleLayout::link(const GraphEdge& edge) const {
  PlacedEdge out;
  const auto from = end_of(edge.from, edge.from_cluster), to = end_of(edge.to, edge.to_cluster);
  const auto middle = [](const std::pair<Point, Point>& box) { return Point{(box.first.x + box.second.x) / 2, (box.first.y + box.second.y) / 2}; };
  Point a = middle(from), b = middle(to);
  if (edge.from == edge.to && edge.from_cluster < 0 && edge.to_cluster < 0) {
    // To itself: a loop at its right side.
    const float x = from.second.x, h = (from.second.y - from.first.y) / 4;
    out.bezier = {{x, a.y - h}, {x + 4 * head_length, a.y - 2 * h}, {x + 4 * head_length, a.y + 2 * h}, {x + head_length, a.y + h}};
    out.has_head = edge.head;
    out.head = {x, a.y + h};
    out.tail = out.bezier.front();
    out.label = {x + 4 * head_length, a.y};
    return out;
  }
  // From border to border, a head's length before it where there is one.
  const auto border = [](Point inside, Point outside, const std::pair<Point, Point>& box) {
    const float dx = outside.x - inside.x, dy = outside.y - inside.y, w = (box.second.x - box.first.x) / 2, h = (box.second.y - box.first.y) / 2;
    const float share = std::min(dx != 0 ? w / std::abs(dx) : 1e9f, dy != 0 ? h / std::abs(dy) : 1e9f);
    return Point{inside.x + dx * std::min(share, 1.0f), inside.y + dy * std::min(share, 1.0f)};
  };
  out.tail = border(a, b, from);
  out.head = border(b, a, to);
  out.has_head = edge.head;
  out.has_tail = edge.tail;
  const float dx = out.head.x - out.tail.x, dy = out.head.y - out.tail.y, length = std::max(std::hypot(dx, dy), 1.0f);
  const float back = std::min(head_length, length / 3) / length;
  a = edge.tail ? Point{out.tail.x + dx * back, out.tail.y + dy * back} : out.tail;
  b = edge.head ? Point{out.head.x - dx * back, out.head.y - dy * back} : out.head;
  out.bezier = {a, {a.x + (b.x - a.x) / 3, a.y + (b.y - a.y) / 3}, {a.x + 2 * (b.x - a.x) / 3, a.y + 2 * (b.y - a.y) / 3}, b};
  out.label = {(a.x + b.x) / 2, (a.y + b.y) / 2};
  return out;
}

}  // namespace

PlacedGraph place_simply(const Graph& graph) { return SimpleLayout(graph).run(); }

}  // namespace shardbook::page
