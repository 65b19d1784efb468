// Do we find in each diagram of tests/mermaid what mermaid.js found? Its answers are stored there; README.md says
// how both sides are reduced before they are compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/base/json.hpp"
#include "viewer/page/diagram.hpp"

namespace shardbook::page {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const fs::path folder = fs::path(SHARDBOOK_SOURCE_DIR) / "tests/mermaid";

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".mmd") found.push_back(entry.path().stem().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

Json flowchart(const Diagram& diagram) {
  Json nodes = Json::array(), edges = Json::array(), groups = Json::array();
  for (const DiagramNode& node : diagram.nodes) {
    nodes.push_back({{"id", node.id}, {"label", node.label}, {"shape", name_of(node.shape)}, {"classes", node.classes}, {"link", node.link}});
  }
  for (const DiagramEdge& edge : diagram.edges) {
    edges.push_back({{"from", edge.from}, {"to", edge.to}, {"label", edge.label}, {"stroke", name_of(edge.stroke)}, {"head", name_of(edge.head)},
                     {"tail", name_of(edge.tail)}, {"length", edge.length}});
  }
  for (const Subgraph& group : diagram.subgraphs) {
    std::vector<std::string> members = group.members;
    std::sort(members.begin(), members.end());
    groups.push_back({{"id", group.id}, {"title", group.title}, {"direction", group.direction}, {"members", members}});
  }
  return {{"ok", true}, {"kind", "flowchart"}, {"direction", diagram.direction}, {"nodes", nodes}, {"edges", edges}, {"subgraphs", groups}};
}

Json sequence(const Diagram& diagram) {
  Json participants = Json::array(), items = Json::array();
  const auto id = [&](int who) { return diagram.participants[static_cast<std::size_t>(who)].id; };
  for (const Participant& one : diagram.participants) {
    participants.push_back({{"id", one.id}, {"label", one.label}, {"actor", one.is_actor}, {"box", one.box}});
  }
  for (const SequenceItem& item : diagram.items) {
    using Kind = SequenceItem::Kind;
    switch (item.kind) {
      case Kind::message:
        items.push_back({{"kind", "message"}, {"from", id(item.from)}, {"to", id(item.to)}, {"arrow", item.arrow}, {"text", item.text}});
        if (item.activate) items.push_back({{"kind", "activate"}, {"from", id(item.to)}});
        if (item.deactivate) items.push_back({{"kind", "deactivate"}, {"from", id(item.from)}});
        break;
      case Kind::note: {
        const char* place = item.place == SequenceItem::Place::left ? "left" : item.place == SequenceItem::Place::right ? "right" : "over";
        items.push_back({{"kind", "note"}, {"from", id(item.from)}, {"to", id(item.to)}, {"place", place}, {"text", item.text}});
        break;
      }
      case Kind::activate: items.push_back({{"kind", "activate"}, {"from", id(item.from)}}); break;
      case Kind::deactivate: items.push_back({{"kind", "deactivate"}, {"from", id(item.from)}}); break;
      case Kind::block_begin: items.push_back({{"kind", "begin"}, {"block", item.block}, {"text", item.text}}); break;
      case Kind::block_next: items.push_back({{"kind", "next"}, {"block", item.block}, {"text", item.text}}); break;
      case Kind::block_end: items.push_back({{"kind", "end"}, {"block", item.block}}); break;
      case Kind::autonumber: items.push_back({{"kind", "autonumber"}}); break;
      case Kind::create:
      case Kind::destroy: break;
    }
  }
  return {{"ok", true}, {"kind", "sequence"}, {"title", diagram.title}, {"participants", participants}, {"boxes", diagram.boxes.size()}, {"items", items}};
}

Json gantt(const Diagram& diagram) {
  Json tasks = Json::array();
  for (const GanttTask& task : diagram.tasks) {
    tasks.push_back({{"section", task.section}, {"name", task.name}, {"id", task.id}, {"begin_ms", task.begin_ms}, {"end_ms", task.end_ms}, {"done", task.done},
                     {"active", task.active}, {"crit", task.critical}, {"milestone", task.milestone}, {"vert", task.vertical}});
  }
  return {{"ok", true}, {"kind", "gantt"}, {"title", diagram.title}, {"sections", diagram.sections}, {"tasks", tasks}};
}

class Mermaid : public testing::TestWithParam<std::string> {};

TEST_P(Mermaid, IsUnderstoodAsMermaidDoes) {
  const Json expected = base::parse_ordered_json(content(folder / (GetParam() + ".json")));
  const Diagram diagram = parse_diagram(content(folder / (GetParam() + ".mmd")));
  if (!expected["ok"].get<bool>()) {
    EXPECT_FALSE(diagram.ok) << "mermaid rejects it: " << expected["reason"];
    EXPECT_FALSE(diagram.error.empty());
    EXPECT_GE(diagram.error_line, 1);
    return;
  }
  ASSERT_TRUE(diagram.ok) << "line " << diagram.error_line << ": " << diagram.error;
  const Json found = diagram.kind == DiagramKind::flowchart ? flowchart(diagram) : diagram.kind == DiagramKind::sequence ? sequence(diagram) : gantt(diagram);
  EXPECT_EQ(base::parse_ordered_json(base::json_text(expected)), found) << base::json_text(expected, 1) << "\n" << base::json_text(found, 1);
}

INSTANTIATE_TEST_SUITE_P(Diagrams, Mermaid, testing::ValuesIn(names()), [](const auto& info) { return info.param; });

TEST(MermaidFolder, HoldsManyDiagramsOfEachKindRightAndWrong) {
  int right = 0, wrong = 0;
  for (const std::string& name : names()) {
    (base::parse_ordered_json(content(folder / (name + ".json")))["ok"].get<bool>() ? right : wrong) += 1;
  }
  EXPECT_GE(right, 60);
  EXPECT_GE(wrong, 30);
}

}  // namespace
}  // namespace shardbook::page
