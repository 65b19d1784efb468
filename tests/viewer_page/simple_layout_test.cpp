// Diagrams that dot takes minutes for: are they drawn in time, and can they be read?
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "viewer/page/diagram_layout.hpp"
#include "viewer/page/graphviz.hpp"
#include "viewer/page/measure.hpp"

namespace shardbook::page {
namespace {

Graph random_graph(unsigned seed, int nodes, int edges, int clusters, const char* direction) {
  std::mt19937 random(seed);
  Graph graph;
  graph.direction = direction;
  for (int i = 0; i < clusters; ++i) graph.clusters.push_back({i > 0 ? static_cast<int>(random() % static_cast<unsigned>(i + 1)) - 1 : -1, 60, 18});
  for (int i = 0; i < nodes; ++i) {
    const int cluster = clusters > 0 ? static_cast<int>(random() % static_cast<unsigned>(clusters + 1)) - 1 : -1;
    graph.nodes.push_back({40 + static_cast<float>(random() % 90), 24 + static_cast<float>(random() % 20), "box", cluster});
  }
  for (int i = 0; i < edges; ++i) {
    GraphEdge edge;
    edge.from = static_cast<int>(random() % static_cast<unsigned>(nodes));
    edge.to = static_cast<int>(random() % static_cast<unsigned>(nodes));
    graph.edges.push_back(edge);
  }
  return graph;
}

// No two boxes of one cluster overlap, each stands within its cluster, and all within the picture.
void expect_readable(const Graph& graph, const PlacedGraph& placed) {
  ASSERT_EQ(placed.nodes.size(), graph.nodes.size());
  ASSERT_EQ(placed.clusters.size(), graph.clusters.size());
  ASSERT_EQ(placed.edges.size(), graph.edges.size());
  constexpr float little = 0.01f;
  const auto box = [&](std::size_t i) {
    return std::pair{Point{placed.nodes[i].x - graph.nodes[i].w / 2, placed.nodes[i].y - graph.nodes[i].h / 2},
                     Point{placed.nodes[i].x + graph.nodes[i].w / 2, placed.nodes[i].y + graph.nodes[i].h / 2}};
  };
  const auto within = [&](Point low, Point high, Point outer_low, Point outer_high) {
    return low.x >= outer_low.x - little && low.y >= outer_low.y - little && high.x <= outer_high.x + little && high.y <= outer_high.y + little;
  };
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto [low, high] = box(i);
    EXPECT_TRUE(within(low, high, {0, 0}, {placed.width, placed.height})) << i;
    if (graph.nodes[i].cluster >= 0) {
      const PlacedCluster& around = placed.clusters[static_cast<std::size_t>(graph.nodes[i].cluster)];
      EXPECT_TRUE(within(low, high, around.min, around.max)) << i;
    }
    for (std::size_t j = i + 1; j < graph.nodes.size(); ++j) {
      const auto [other_low, other_high] = box(j);
      const bool apart = high.x <= other_low.x + little || other_high.x <= low.x + little || high.y <= other_low.y + little || other_high.y <= low.y + little;
      EXPECT_TRUE(apart) << i << " and " << j;
    }
  }
  for (std::size_t i = 0; i < graph.clusters.size(); ++i) {
    const int parent = graph.clusters[i].parent;
    if (parent < 0) continue;
    const PlacedCluster& around = placed.clusters[static_cast<std::size_t>(parent)];
    EXPECT_TRUE(within(placed.clusters[i].min, placed.clusters[i].max, around.min, around.max)) << "cluster " << i;
  }
  for (const PlacedEdge& edge : placed.edges) {
    EXPECT_EQ(edge.bezier.size(), 4u);
    EXPECT_TRUE(edge.has_head);
  }
}

TEST(SimpleLayout, boxes_never_overlap_in_any_direction) {
  for (const char* direction : {"TB", "BT", "LR", "RL"}) {
    for (unsigned seed = 1; seed < 12; ++seed) {
      const Graph graph = random_graph(seed, 30, 60, seed % 3 == 0 ? 0 : 5, direction);
      expect_readable(graph, place_simply(graph));
    }
  }
}

TEST(SimpleLayout, a_chain_goes_the_way_it_is_told) {
  for (const char* direction : {"TB", "BT", "LR", "RL"}) {
    Graph graph;
    graph.direction = direction;
    for (int i = 0; i < 4; ++i) graph.nodes.push_back({50, 20, "box", -1});
    for (int i = 0; i < 3; ++i) graph.edges.push_back({.from = i, .to = i + 1});
    const PlacedGraph placed = place_simply(graph);
    for (std::size_t i = 0; i + 1 < 4; ++i) {
      const Point a = placed.nodes[i], b = placed.nodes[i + 1];
      const std::string way = direction;
      EXPECT_TRUE(way == "TB" ? b.y > a.y + 20 : way == "BT" ? a.y > b.y + 20 : way == "LR" ? b.x > a.x + 50 : a.x > b.x + 50) << direction;
    }
  }
}

// As long as dot would take a minute: 200 boxes, 600 links.
TEST(SimpleLayout, takes_over_when_dot_has_had_its_time) {
  const Graph graph = random_graph(1, 200, 600, 0, "TB");
  const auto begin = std::chrono::steady_clock::now();
  const base::Result<PlacedGraph> placed = place_graph(graph, 0.2);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ASSERT_TRUE(placed) << placed.error();
  EXPECT_TRUE(placed.value().simple);
  expect_readable(graph, placed.value());
  // 0.2 s of a processor, and the rest for a machine with much else to do.
  EXPECT_LT(seconds, 20);
}

TEST(SimpleLayout, what_dot_places_in_time_is_dots_own_in_a_process_of_its_own_too) {
  // A long chain: more parts than are placed at once, and easy.
  Graph graph;
  for (int i = 0; i < 100; ++i) graph.nodes.push_back({50, 20, "box", -1});
  for (int i = 0; i + 1 < 100; ++i) graph.edges.push_back({.from = i, .to = i + 1, .label_w = 20, .label_h = 10});
  ASSERT_GT(graph.nodes.size() + graph.edges.size(), parts_placed_at_once);
  const base::Result<PlacedGraph> placed = place_graph(graph, 20);
  ASSERT_TRUE(placed) << placed.error();
  EXPECT_FALSE(placed.value().simple);
  ASSERT_EQ(placed.value().nodes.size(), 100u);
  ASSERT_EQ(placed.value().edges.size(), 99u);
  for (std::size_t i = 0; i + 1 < 100; ++i) EXPECT_GT(placed.value().nodes[i + 1].y, placed.value().nodes[i].y + 20);
  for (const PlacedEdge& edge : placed.value().edges) EXPECT_TRUE(edge.has_head && edge.bezier.size() >= 4 && edge.label.y > 0);
}

// The page says that it is drawn simply.
TEST(SimpleLayout, says_so_in_the_picture) {
  std::mt19937 random(3);
  std::string text = "flowchart TB\n";
  for (int i = 0; i < 600; ++i) text += "n" + std::to_string(random() % 200) + " --> n" + std::to_string(random() % 200) + "\n";
  const Picture picture = layout_diagram(parse_diagram(text), PlainMeasure());
  EXPECT_EQ(picture.error, "");
  const bool said = std::any_of(picture.texts.begin(), picture.texts.end(), [](const PictureText& one) { return one.text.find("Drawn simply") != std::string::npos; });
  EXPECT_TRUE(said);
}

}  // namespace
}  // namespace shardbook::page
