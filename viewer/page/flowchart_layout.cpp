// page/flowchart_layout: where the parts of a flowchart stand.
//
// A subgraph with a direction of its own, whose inner nodes have no link to the outside, is laid out by itself and is one
// box in what is around it (as mermaid does); all other subgraphs are dot's clusters.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "viewer/page/diagram_draw.hpp"
#include "viewer/page/flowchart_shape.hpp"
#include "viewer/page/graphviz.hpp"

namespace shardbook::page {

namespace {

constexpr float margin = 8;

class FlowchartLayout {
 public:
  FlowchartLayout(const Diagram& diagram, const Measure& measure) : diagram_(diagram), measure_(measure), em_(measure.line_height(FontKind::body)) {}

  Picture run();

 private:
  // Where an edge's end is: a node, or a subgraph.
  struct End {
    int node = -1, group = -1;
  };
  // One call of dot: everything inside `scope` but what is laid out by itself.
  struct Scope {
    int group = -1;                                   // -1: the whole
    Graph graph;
    std::unordered_map<int, int> node_at, box_at, cluster_at;   // our node, isolated group, group -> dot's
    std::vector<int> nodes, boxes, clusters, edges;
    std::vector<Picture> inside;                      // of boxes
    std::vector<TextBlock> texts, titles, labels;     // of nodes, clusters, edges
  };

  void index();
  bool is_isolated(int group) const { return isolated_[static_cast<std::size_t>(group)]; }
  int parent_of(int group) const { return diagram_.subgraphs[static_cast<std::size_t>(group)].parent; }
  // The group of the scope that holds this one: the nearest isolated group around it, or -1.
  int scope_of_group(int group) const;
  int scope_of(const End& end) const;
  End end_of(const std::string& id) const;
  Picture place(int group, const std::string& direction, const std::string& title);
  void add_groups(Scope& scope, const std::string& direction);
  void add_nodes(Scope& scope);
  void add_edges(Scope& scope);
  int representative(const Scope& scope, int group) const;
  void draw(Picture& picture, const Scope& scope, const PlacedGraph& placed);
  void put_title_grounds(Picture& picture, const Scope& scope, const PlacedGraph& placed) const;
  void draw_edge(Picture& picture, const DiagramEdge& edge, const PlacedEdge& placed, const TextBlock& label);
  Look look_of(const DiagramNode& node) const;
  Look put_frame(Picture& picture, const Subgraph& group, Point min, Point max) const;

  const Diagram& diagram_;
  const Measure& measure_;
  float em_;
  std::unordered_map<std::string, int> node_at_, group_at_;
  std::vector<char> isolated_, empty_;
  std::vector<std::vector<int>> children_;            // groups of a group
  std::vector<int> node_scope_, edge_scope_;
  bool simple_ = false;            // dot gave way to place_simply
  std::string error_;
};

// --- Who is where ------------------------------------------------------------------------------------
void FlowchartLayout::index() {
  for (std::size_t i = 0; i < diagram_.nodes.size(); ++i) node_at_.emplace(diagram_.nodes[i].id, static_cast<int>(i));
  const std::size_t groups = diagram_.subgraphs.size();
  for (std::size_t i = 0; i < groups; ++i) group_at_[diagram_.subgraphs[i].id] = static_cast<int>(i);
  isolated_.assign(groups, 0);
  empty_.assign(groups, 1);
  children_.assign(groups, {});
  for (const DiagramNode& node : diagram_.nodes) {
    if (group_at_.count(node.id) > 0) continue;
    for (int group = node.subgraph; group >= 0 && empty_[static_cast<std::size_t>(group)] != 0; group = parent_of(group)) empty_[static_cast<std::size_t>(group)] = 0;
  }
  for (std::size_t i = 0; i < groups; ++i) {
    if (parent_of(static_cast<int>(i)) >= 0) children_[static_cast<std::size_t>(parent_of(static_cast<int>(i)))].push_back(static_cast<int>(i));
  }

  // Outer ones stand after inner ones. A group is crossed if a link has one end strictly inside and one outside.
  std::vector<char> crossed(groups, 0);
  const auto inside_of = [&](const End& end) { return end.node >= 0 ? diagram_.nodes[static_cast<std::size_t>(end.node)].subgraph : end.group >= 0 ? parent_of(end.group) : -1; };
  for (const DiagramEdge& edge : diagram_.edges) {
    std::vector<int> left, right;
    for (int group = inside_of(end_of(edge.from)); group >= 0; group = parent_of(group)) left.push_back(group);
    for (int group = inside_of(end_of(edge.to)); group >= 0; group = parent_of(group)) right.push_back(group);
    while (!left.empty() && !right.empty() && left.back() == right.back()) {
      left.pop_back();
      right.pop_back();
    }
    for (const int group : left) crossed[static_cast<std::size_t>(group)] = 1;
    for (const int group : right) crossed[static_cast<std::size_t>(group)] = 1;
  }
  for (std::size_t i = 0; i < groups; ++i) {
    isolated_[i] = static_cast<char>(empty_[i] == 0 && crossed[i] == 0 && !diagram_.subgraphs[i].direction.empty());
  }
  for (const DiagramNode& node : diagram_.nodes) {
    int group = node.subgraph;
    while (group >= 0 && !is_isolated(group)) group = parent_of(group);
    node_scope_.push_back(group);
  }
  for (const DiagramEdge& edge : diagram_.edges) edge_scope_.push_back(scope_of(end_of(edge.from)));
}

FlowchartLayout::End FlowchartLayout::end_of(const std::string& id) const {
  const auto group = group_at_.find(id);
  if (group != group_at_.end()) return {-1, group->second};
  const auto node = node_at_.find(id);
  return {node == node_at_.end() ? -1 : node->second, -1};
}

int FlowchartLayout::scope_of_group(int group) const {
  group = parent_of(group);
  while (group >= 0 && !is_isolated(group)) group = parent_of(group);
  return group;
}

int FlowchartLayout::scope_of(const End& end) const {
  return end.node >= 0 ? node_scope_[static_cast<std::size_t>(end.node)] : end.group >= 0 ? scope_of_group(end.group) : -1;
}

// --- One scope ---------------------------------------------------------------------------------------
void FlowchartLayout::add_groups(Scope& scope, const std::string& direction) {
  // From outer to inner, so that a cluster's parent is there before it.
  for (int i = static_cast<int>(diagram_.subgraphs.size()) - 1; i >= 0; --i) {
    const Subgraph& group = diagram_.subgraphs[static_cast<std::size_t>(i)];
    if (scope_of_group(i) != scope.group || i == scope.group) continue;
    if (group.parent >= 0 && empty_[static_cast<std::size_t>(group.parent)] != 0) continue;
    const auto around = scope.cluster_at.find(group.parent);
    const int cluster = around == scope.cluster_at.end() ? -1 : around->second;
    if (is_isolated(i) || empty_[static_cast<std::size_t>(i)] != 0) {
      Picture inside = place(i, group.direction.empty() ? direction : group.direction, group.title);
      scope.box_at[i] = static_cast<int>(scope.graph.nodes.size());
      scope.graph.nodes.push_back({inside.width, inside.height, "box", cluster});
      scope.nodes.push_back(-1);
      scope.texts.emplace_back();
      scope.boxes.push_back(i);
      scope.inside.push_back(std::move(inside));
      continue;
    }
    TextBlock title = text_block(group.title, FontKind::bold, measure_, 20 * em_);
    scope.cluster_at[i] = static_cast<int>(scope.graph.clusters.size());
    const bool titled = !group.title.empty();
    scope.graph.clusters.push_back({cluster, titled ? title.width + em_ : 0, titled ? title.height + 4 : 0});
    scope.clusters.push_back(i);
    scope.titles.push_back(std::move(title));
  }
}

void FlowchartLayout::add_nodes(Scope& scope) {
  for (std::size_t i = 0; i < diagram_.nodes.size(); ++i) {
    const DiagramNode& node = diagram_.nodes[i];
    if (node_scope_[i] != scope.group || group_at_.count(node.id) > 0) continue;
    TextBlock text = text_block(node.label, FontKind::body, measure_, 14 * em_);
    const Point size = node_size(node.shape, text.width, text.height, em_);
    const auto cluster = scope.cluster_at.find(node.subgraph);
    scope.node_at[static_cast<int>(i)] = static_cast<int>(scope.graph.nodes.size());
    scope.graph.nodes.push_back({size.x, size.y, graphviz_shape(node.shape), cluster == scope.cluster_at.end() ? -1 : cluster->second});
    scope.nodes.push_back(static_cast<int>(i));
    scope.texts.push_back(std::move(text));
  }
}

// A node inside a cluster that stands for it at an edge's end.
int FlowchartLayout::representative(const Scope& scope, int group) const {
  for (std::size_t i = 0; i < scope.graph.nodes.size(); ++i) {
    for (int cluster = scope.graph.nodes[i].cluster; cluster >= 0; cluster = scope.graph.clusters[static_cast<std::size_t>(cluster)].parent) {
      if (scope.clusters[static_cast<std::size_t>(cluster)] == group) return static_cast<int>(i);
    }
  }
  return -1;
}

void FlowchartLayout::add_edges(Scope& scope) {
  const auto dot_end = [&](const End& end, int& cluster) {
    if (end.node >= 0) {
      const auto found = scope.node_at.find(end.node);
      return found == scope.node_at.end() ? -1 : found->second;
    }
    if (const auto box = scope.box_at.find(end.group); box != scope.box_at.end()) return box->second;
    const auto found = scope.cluster_at.find(end.group);
    if (found == scope.cluster_at.end()) return -1;
    cluster = found->second;
    return representative(scope, end.group);
  };
  const auto holds = [&](int cluster, int node) {
    for (int one = scope.graph.nodes[static_cast<std::size_t>(node)].cluster; one >= 0; one = scope.graph.clusters[static_cast<std::size_t>(one)].parent) {
      if (one == cluster) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < diagram_.edges.size(); ++i) {
    if (edge_scope_[i] != scope.group) continue;
    const DiagramEdge& edge = diagram_.edges[i];
    GraphEdge made;
    made.from = dot_end(end_of(edge.from), made.from_cluster);
    made.to = dot_end(end_of(edge.to), made.to_cluster);
    if (made.from < 0 || made.to < 0) continue;
    // An edge between a cluster and what is inside it ends at a node.
    if (made.from_cluster >= 0 && holds(made.from_cluster, made.to)) made.from_cluster = -1;
    if (made.to_cluster >= 0 && holds(made.to_cluster, made.from)) made.to_cluster = -1;
    TextBlock label = text_block(edge.label, FontKind::small, measure_, 12 * em_);
    if (!edge.label.empty()) {
      made.label_w = label.width + 8;
      made.label_h = label.height + 4;
    }
    made.length = edge.length;
    made.head = edge.head != Head::none;
    made.tail = edge.tail != Head::none;
    made.invisible = edge.stroke == Stroke::invisible;
    scope.graph.edges.push_back(made);
    scope.edges.push_back(static_cast<int>(i));
    scope.labels.push_back(std::move(label));
  }
}

// --- Drawing -----------------------------------------------------------------------------------------
Look FlowchartLayout::look_of(const DiagramNode& node) const {
  Look look{{Role::node_fill, {}}, {Role::node_stroke, {}}, {Role::text, {}}, 1.2f, false};
  const auto by_class = [&](const std::string& name) {
    const auto found = diagram_.classes.find(name);
    if (found != diagram_.classes.end()) apply(look, found->second);
  };
  by_class("default");
  for (const std::string& name : node.classes) by_class(name);
  apply(look, node.style);
  settle_text(look);
  return look;
}

// The frame of a subgraph; what its title looks like.
Look FlowchartLayout::put_frame(Picture& picture, const Subgraph& group, Point min, Point max) const {
  Look look{{Role::group_fill, {}}, {Role::group_stroke, {}}, {Role::text, {}}, 1, false};
  for (const std::string& name : group.classes) {
    if (const auto found = diagram_.classes.find(name); found != diagram_.classes.end()) apply(look, found->second);
  }
  apply(look, group.style);
  settle_text(look);
  PictureShape frame;
  frame.kind = PictureShape::Kind::rounded;
  frame.radius = 4;
  frame.min = min;
  frame.max = max;
  frame.fill = look.fill;
  frame.stroke = look.stroke;
  frame.thickness = look.thickness;
  frame.dashed = look.dashed;
  picture.shapes.push_back(std::move(frame));
  return look;
}

void FlowchartLayout::draw_edge(Picture& picture, const DiagramEdge& edge, const PlacedEdge& placed, const TextBlock& label) {
  if (edge.stroke == Stroke::invisible || placed.bezier.size() < 4) return;
  Look look{{}, {Role::edge, {}}, {Role::text, {}}, edge.stroke == Stroke::thick ? 3.0f : 1.4f, edge.stroke == Stroke::dotted};
  apply(look, diagram_.default_edge_style);
  apply(look, edge.style);
  PictureLine line;
  line.points = placed.bezier;
  line.bezier = true;
  line.colour = look.stroke;
  line.thickness = look.thickness;
  line.dashed = look.dashed;
  picture.lines.push_back(line);
  if (placed.has_head) put_head(picture, edge.head, placed.bezier.back(), placed.head, look.stroke);
  if (placed.has_tail) put_head(picture, edge.tail, placed.bezier.front(), placed.tail, look.stroke);
  if (edge.label.empty()) return;
  PictureShape ground;
  ground.min = {placed.label.x - label.width / 2 - 2, placed.label.y - label.height / 2};
  ground.max = {placed.label.x + label.width / 2 + 2, placed.label.y + label.height / 2};
  ground.fill = {Role::label_fill, {}};
  picture.over.push_back(ground);
  put_text(picture, label, placed.label.x, placed.label.y - label.height / 2, Anchor::centre, look.text);
}

// Where a link passes under a title, the title gets a ground of its own.
void FlowchartLayout::put_title_grounds(Picture& picture, const Scope& scope, const PlacedGraph& placed) const {
  constexpr int samples = 8;
  for (std::size_t c = 0; c < scope.clusters.size(); ++c) {
    const TextBlock& title = scope.titles[c];
    const Point middle = placed.clusters[c].label;
    const float half_w = title.width / 2 + 3, half_h = title.height / 2;
    const auto covers = [&](Point at) { return std::abs(at.x - middle.x) < half_w && std::abs(at.y - middle.y) < half_h; };
    bool passed = false;
    for (const PlacedEdge& edge : placed.edges) {
      for (std::size_t i = 0; i + 3 < edge.bezier.size() && !passed; i += 3) {
        const Point* p = &edge.bezier[i];
        for (int s = 0; s <= samples && !passed; ++s) {
          const float t = static_cast<float>(s) / samples, u = 1 - t;
          const float a = u * u * u, b = 3 * u * u * t, c3 = 3 * u * t * t, d = t * t * t;
          passed = covers({a * p[0].x + b * p[1].x + c3 * p[2].x + d * p[3].x, a * p[0].y + b * p[1].y + c3 * p[2].y + d * p[3].y});
        }
      }
      if (passed) break;
    }
    if (!passed || title.width <= 0) continue;
    PictureShape ground;
    ground.kind = PictureShape::Kind::rounded;
    ground.radius = 3;
    ground.min = {middle.x - half_w, middle.y - half_h};
    ground.max = {middle.x + half_w, middle.y + half_h};
    ground.fill = {Role::label_fill, {}};
    picture.over.push_back(ground);
  }
}

void FlowchartLayout::draw(Picture& picture, const Scope& scope, const PlacedGraph& placed) {
  for (std::size_t i = 0; i < scope.clusters.size(); ++i) {
    const Look look = put_frame(picture, diagram_.subgraphs[static_cast<std::size_t>(scope.clusters[i])], placed.clusters[i].min, placed.clusters[i].max);
    put_text(picture, scope.titles[i], placed.clusters[i].label.x, placed.clusters[i].label.y - scope.titles[i].height / 2, Anchor::centre, look.text);
  }
  std::size_t box = 0;
  for (std::size_t i = 0; i < scope.nodes.size(); ++i) {
    const float w = scope.graph.nodes[i].w, h = scope.graph.nodes[i].h;
    const Point min{placed.nodes[i].x - w / 2, placed.nodes[i].y - h / 2}, max{min.x + w, min.y + h};
    if (scope.nodes[i] < 0) {
      insert(picture, scope.inside[box++], min.x, min.y);
    } else {
      const DiagramNode& node = diagram_.nodes[static_cast<std::size_t>(scope.nodes[i])];
      put_node(picture, node, scope.texts[i], look_of(node), min, max);
    }
  }
  put_title_grounds(picture, scope, placed);
  for (std::size_t i = 0; i < scope.edges.size(); ++i) {
    draw_edge(picture, diagram_.edges[static_cast<std::size_t>(scope.edges[i])], placed.edges[i], scope.labels[i]);
  }
}

// The picture of a subgraph that is laid out by itself (its frame and title included), or of the whole.
Picture FlowchartLayout::place(int group, const std::string& direction, const std::string& title) {
  Scope scope;
  scope.group = group;
  scope.graph.direction = direction;
  const bool has_content = group < 0 || empty_[static_cast<std::size_t>(group)] == 0;
  if (has_content) {
    add_groups(scope, direction);
    add_nodes(scope);
    add_edges(scope);
  }
  Picture picture;
  PlacedGraph placed;
  if (!scope.graph.nodes.empty()) {
    base::Result<PlacedGraph> result = place_graph(scope.graph);
    if (!result) {
      error_ = result.error();
      return picture;
    }
    placed = std::move(result.value());
    simple_ = simple_ || placed.simple;
  }
  draw(picture, scope, placed);
  picture.width = placed.width;
  picture.height = placed.height;
  if (group < 0) return picture;

  const TextBlock text = text_block(title, FontKind::bold, measure_, 20 * em_);
  const float edge = 14, top = title.empty() ? edge : text.height + edge;
  Picture framed;
  framed.width = std::max(placed.width, text.width) + 2 * edge;
  framed.height = placed.height + top + edge;
  const Look look = put_frame(framed, diagram_.subgraphs[static_cast<std::size_t>(group)], {0, 0}, {framed.width, framed.height});
  put_text(framed, text, framed.width / 2, edge / 2, Anchor::centre, look.text);
  insert(framed, picture, (framed.width - placed.width) / 2, top);
  return framed;
}

Picture FlowchartLayout::run() {
  index();
  Picture picture = place(-1, diagram_.direction, "");
  if (!error_.empty()) {
    picture = {};
    picture.error = error_;
    return picture;
  }
  if (!diagram_.title.empty()) {
    const TextBlock title = text_block(diagram_.title, FontKind::heading3, measure_, 40 * em_);
    put_text(picture, title, picture.width / 2, -title.height - em_ / 2, Anchor::centre, {Role::text, {}});
  }
  if (simple_) {
    const TextBlock words = text_block("Drawn simply: its " + std::to_string(diagram_.nodes.size()) + " boxes and " + std::to_string(diagram_.edges.size()) +
                                       " links take Graphviz too long", FontKind::small, measure_, 40 * em_);
    put_text(picture, words, picture.width / 2, picture.height + em_ / 2, Anchor::centre, {Role::muted_text, {}});
  }
  fit(picture, margin);
  return picture;
}

}  // namespace

Picture layout_flowchart(const Diagram& diagram, const Measure& measure, std::size_t most_nodes) {
  Picture picture;
  const std::size_t most_edges = 3 * most_nodes;
  if (diagram.nodes.size() > most_nodes || diagram.edges.size() > most_edges || diagram.subgraphs.size() > most_nodes) {
    picture.error = "the flowchart has " + std::to_string(diagram.nodes.size()) + " nodes and " + std::to_string(diagram.edges.size()) +
                    " links; up to " + std::to_string(most_nodes) + " and " + std::to_string(most_edges) + " are drawn";
    return picture;
  }
  return FlowchartLayout(diagram, measure).run();
}

}  // namespace shardbook::page
