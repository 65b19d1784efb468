// page/graphviz: dot, in this process; see graphviz.hpp.
#include "viewer/page/graphviz.hpp"

#include <fcntl.h>
#include <gvc.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>

// There only in a build that looks for leaks.
extern "C" {
__attribute__((weak)) void __lsan_disable();
__attribute__((weak)) void __lsan_enable();
}

namespace shardbook::page {

namespace {

// dot 2.43 loses some virtual edges of each graph with clusters (under 1 kB); they are not ours to find.
class WithoutLeakChecks {
 public:
  WithoutLeakChecks() {
    if (__lsan_disable != nullptr) __lsan_disable();
  }
  WithoutLeakChecks(const WithoutLeakChecks&) = delete;
  WithoutLeakChecks& operator=(const WithoutLeakChecks&) = delete;
  ~WithoutLeakChecks() {
    if (__lsan_enable != nullptr) __lsan_enable();
  }
};

constexpr float pixels_an_inch = 72;

char* writable(const char* text) { return const_cast<char*>(text); }

std::string inches(float pixels) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", static_cast<double>(pixels / pixels_an_inch));
  return text;
}

// A table without content keeps room of exactly that size for a label that we draw ourselves.
std::string label_table(float w, float h) {
  char text[128];
  std::snprintf(text, sizeof text, "<TABLE BORDER=\"0\" FIXEDSIZE=\"TRUE\" WIDTH=\"%d\" HEIGHT=\"%d\"><TR><TD></TD></TR></TABLE>",
                static_cast<int>(std::clamp(std::ceil(w), 1.0f, 60000.0f)), static_cast<int>(std::clamp(std::ceil(h), 1.0f, 60000.0f)));
  return text;
}

int silent(char*) { return 0; }

// One graph in libgvc: made, laid out, read, freed.
class DotGraph {
 public:
  explicit DotGraph(const Graph& graph) : graph_(graph) {
    static GVC_t* context = gvContext();
    context_ = context;
    agseterr(AGMAX);
    agseterrf(silent);
    root_ = agopen(writable("g"), Agdirected, nullptr);
  }
  DotGraph(const DotGraph&) = delete;
  DotGraph& operator=(const DotGraph&) = delete;
  ~DotGraph() {
    if (laid_out_) gvFreeLayout(context_, root_);
    agclose(root_);
  }

  void build();
  bool lay_out() {
    const WithoutLeakChecks dot_is_not_ours;
    laid_out_ = gvLayout(context_, root_, "dot") == 0;
    return laid_out_;
  }
  PlacedGraph read() const;

 private:
  void set(void* object, const char* name, const std::string& value) const { agsafeset(object, writable(name), writable(value.c_str()), writable("")); }
  void set_html(void* object, Agraph_t* owner, int kind, const std::string& value) const {
    if (agattr(owner, kind, writable("label"), nullptr) == nullptr) agattr(agroot(owner), kind, writable("label"), writable(""));
    char* html = agstrdup_html(agroot(owner), writable(value.c_str()));
    agxset(object, agattr(agroot(owner), kind, writable("label"), nullptr), html);
    agstrfree(agroot(owner), html);
  }
  Point point(pointf at) const { return {static_cast<float>(at.x - low_.x), static_cast<float>(high_.y - at.y)}; }

  const Graph& graph_;
  GVC_t* context_ = nullptr;
  Agraph_t* root_ = nullptr;
  std::vector<Agraph_t*> clusters_;
  std::vector<Agnode_t*> nodes_;
  std::vector<Agedge_t*> edges_;
  bool laid_out_ = false;
  mutable pointf low_{}, high_{};
};

void DotGraph::build() {
  set(root_, "rankdir", graph_.direction);
  set(root_, "compound", "true");
  set(root_, "nodesep", "0.45");
  set(root_, "ranksep", "0.5");
  // Ranks over all clusters at once, else two clusters with links both ways lie side by side with links squeezed between.
  set(root_, "newrank", "true");
  // Links come in at the middle of a cluster; its title stands aside.
  set(root_, "labeljust", "l");
  agattr(root_, AGRAPH, writable("label"), writable(""));
  agattr(root_, AGNODE, writable("label"), writable(""));
  agattr(root_, AGEDGE, writable("label"), writable(""));

  for (std::size_t i = 0; i < graph_.clusters.size(); ++i) {
    const GraphCluster& cluster = graph_.clusters[i];
    Agraph_t* around = cluster.parent < 0 ? root_ : clusters_[static_cast<std::size_t>(cluster.parent)];
    Agraph_t* made = agsubg(around, writable((base::text("cluster_", i)).c_str()), 1);
    set(made, "margin", "14");
    if (cluster.label_w > 0) set_html(made, made, AGRAPH, label_table(cluster.label_w, cluster.label_h));
    clusters_.push_back(made);
  }
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const GraphNode& node = graph_.nodes[i];
    Agraph_t* around = node.cluster < 0 ? root_ : clusters_[static_cast<std::size_t>(node.cluster)];
    Agnode_t* made = agnode(around, writable((base::text("n", i)).c_str()), 1);
    set(made, "shape", node.shape);
    set(made, "fixedsize", "true");
    set(made, "width", inches(node.w));
    set(made, "height", inches(node.h));
    nodes_.push_back(made);
  }
  for (std::size_t i = 0; i < graph_.edges.size(); ++i) {
    const GraphEdge& edge = graph_.edges[i];
    Agedge_t* made = agedge(root_, nodes_[static_cast<std::size_t>(edge.from)], nodes_[static_cast<std::size_t>(edge.to)], writable((base::text("e", i)).c_str()), 1);
    set(made, "dir", edge.head && edge.tail ? "both" : edge.head ? "forward" : edge.tail ? "back" : "none");
    set(made, "minlen", std::to_string(edge.length));
    if (edge.from_cluster >= 0) set(made, "ltail", base::text("cluster_", edge.from_cluster));
    if (edge.to_cluster >= 0) set(made, "lhead", base::text("cluster_", edge.to_cluster));
    if (edge.label_w > 0) set_html(made, root_, AGEDGE, label_table(edge.label_w, edge.label_h));
    edges_.push_back(made);
  }
}

PlacedGraph DotGraph::read() const {
  PlacedGraph placed;
  const boxf all = GD_bb(root_);
  low_ = all.LL;
  high_ = all.UR;
  placed.width = static_cast<float>(all.UR.x - all.LL.x);
  placed.height = static_cast<float>(all.UR.y - all.LL.y);
  for (Agnode_t* node : nodes_) placed.nodes.push_back(point(ND_coord(node)));
  for (Agraph_t* cluster : clusters_) {
    const boxf box = GD_bb(cluster);
    PlacedCluster made{point({box.LL.x, box.UR.y}), point({box.UR.x, box.LL.y}), {}};
    made.label = {(made.min.x + made.max.x) / 2, made.min.y};
    if (GD_label(cluster) != nullptr) made.label = point(GD_label(cluster)->pos);
    placed.clusters.push_back(made);
  }
  for (Agedge_t* edge : edges_) {
    PlacedEdge made;
    if (ED_label(edge) != nullptr) made.label = point(ED_label(edge)->pos);
    const splines* drawn = ED_spl(edge);
    if (drawn != nullptr && drawn->size > 0) {
      const bezier& curve = drawn->list[0];
      for (int i = 0; i < curve.size; ++i) made.bezier.push_back(point(curve.list[i]));
      made.has_tail = curve.sflag != 0;
      made.has_head = curve.eflag != 0;
      made.tail = point(curve.sp);
      made.head = point(curve.ep);
    }
    placed.edges.push_back(std::move(made));
  }
  return placed;
}

}  // namespace

namespace {

base::Result<PlacedGraph> place_here(const Graph& graph) {
  DotGraph dot(graph);
  dot.build();
  if (!dot.lay_out()) return base::Error{"Graphviz found no layout for this diagram"};
  return dot.read();
}

// --- In a process of its own -------------------------------------------------------------------------
// All of it is floats: counts and flags are small numbers, which a float holds.
std::vector<float> flattened(const PlacedGraph& placed) {
  std::vector<float> out{placed.width, placed.height};
  const auto put = [&](Point at) { out.insert(out.end(), {at.x, at.y}); };
  for (const Point& node : placed.nodes) put(node);
  for (const PlacedCluster& cluster : placed.clusters) {
    put(cluster.min);
    put(cluster.max);
    put(cluster.label);
  }
  for (const PlacedEdge& edge : placed.edges) {
    out.insert(out.end(), {edge.has_head ? 1.0f : 0.0f, edge.has_tail ? 1.0f : 0.0f, static_cast<float>(edge.bezier.size())});
    put(edge.head);
    put(edge.tail);
    put(edge.label);
    for (const Point& point : edge.bezier) put(point);
  }
  return out;
}

std::optional<PlacedGraph> read_back(const std::vector<float>& floats, const Graph& graph) {
  std::size_t at = 0;
  const auto next = [&] { return at < floats.size() ? floats[at++] : (at = floats.size() + 1, 0.0f); };
  const auto point = [&] {
    const float x = next();
    return Point{x, next()};
  };
  PlacedGraph placed;
  placed.width = next();
  placed.height = next();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) placed.nodes.push_back(point());
  for (std::size_t i = 0; i < graph.clusters.size(); ++i) {
    PlacedCluster cluster;
    cluster.min = point();
    cluster.max = point();
    cluster.label = point();
    placed.clusters.push_back(cluster);
  }
  for (std::size_t i = 0; i < graph.edges.size() && at <= floats.size(); ++i) {
    PlacedEdge edge;
    edge.has_head = next() != 0;
    edge.has_tail = next() != 0;
    const auto points = static_cast<std::size_t>(std::clamp(next(), 0.0f, static_cast<float>(floats.size())));
    edge.head = point();
    edge.tail = point();
    edge.label = point();
    for (std::size_t p = 0; p < points && at <= floats.size(); ++p) edge.bezier.push_back(point());
    placed.edges.push_back(std::move(edge));
  }
  return at == floats.size() ? std::optional(std::move(placed)) : std::nullopt;
}

bool write_all(int file, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(file, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

// dot cannot be interrupted, so it runs where it can be ended: a copy of this process that does nothing else, and that
// the system ends when its processor time is over (not the wall's: a busy machine gives the same picture).
[[noreturn]] void be_dot(const Graph& graph, double seconds, int file) {
  signal(SIGVTALRM, SIG_DFL);
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  timer.it_value.tv_usec = static_cast<suseconds_t>((seconds - std::floor(seconds)) * 1e6);
  setitimer(ITIMER_VIRTUAL, &timer, nullptr);
  const base::Result<PlacedGraph> placed = place_here(graph);
  const std::vector<float> floats = placed ? flattened(placed.value()) : std::vector<float>{};
  write_all(file, floats.data(), floats.size() * sizeof(float));
  _exit(0);
}

// None: the time was over, or no process could be had.
std::optional<PlacedGraph> place_in_time(const Graph& graph, double seconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) be_dot(graph, seconds, ends[1]);
  close(ends[1]);
  std::vector<char> bytes;
  if (child > 0) {
    char some[65536];
    for (ssize_t got = 0; (got = read(ends[0], some, sizeof some)) != 0;) {
      if (got < 0 && errno != EINTR) break;
      if (got > 0) bytes.insert(bytes.end(), some, some + got);
    }
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {}
  }
  close(ends[0]);
  if (bytes.size() < sizeof(float)) return std::nullopt;
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return read_back(floats, graph);
}

}  // namespace

base::Result<PlacedGraph> place_graph(const Graph& graph, double seconds) {
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  // What dot places in milliseconds needs no process.
  if (graph.nodes.size() + graph.edges.size() <= parts_placed_at_once) return place_here(graph);
  if (std::optional<PlacedGraph> placed = place_in_time(graph, seconds)) return std::move(*placed);
  return place_simply(graph);
}

}  // namespace shardbook::page
