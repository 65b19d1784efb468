// page/diagram_json: see diagram_json.hpp.
#include "viewer/page/diagram_json.hpp"

#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"

namespace shardbook::page {

namespace {

using Json = nlohmann::ordered_json;

Json flowchart_json(const Diagram& diagram) {
  Json nodes = Json::array(), edges = Json::array(), groups = Json::array();
  for (const DiagramNode& node : diagram.nodes) {
    Json one{{"id", node.id}, {"label", node.label}, {"shape", name_of(node.shape)}, {"line", node.line}};
    if (!node.classes.empty()) one["classes"] = node.classes;
    if (!node.link.empty()) one["link"] = node.link;
    if (!node.tooltip.empty()) one["tooltip"] = node.tooltip;
    if (node.subgraph >= 0) one["subgraph"] = diagram.subgraphs[static_cast<std::size_t>(node.subgraph)].id;
    nodes.push_back(std::move(one));
  }
  for (const DiagramEdge& edge : diagram.edges) {
    edges.push_back({{"from", edge.from}, {"to", edge.to}, {"label", edge.label}, {"stroke", name_of(edge.stroke)}, {"head", name_of(edge.head)},
                     {"tail", name_of(edge.tail)}, {"length", edge.length}, {"line", edge.line}});
  }
  for (const Subgraph& group : diagram.subgraphs) {
    groups.push_back({{"id", group.id}, {"title", group.title}, {"direction", group.direction}, {"members", group.members}, {"line", group.line}});
  }
  return {{"direction", diagram.direction}, {"nodes", nodes}, {"edges", edges}, {"subgraphs", groups}};
}

const char* name_of_item(SequenceItem::Kind kind) {
  switch (kind) {
    case SequenceItem::Kind::message: return "message";
    case SequenceItem::Kind::note: return "note";
    case SequenceItem::Kind::activate: return "activate";
    case SequenceItem::Kind::deactivate: return "deactivate";
    case SequenceItem::Kind::block_begin: return "begin";
    case SequenceItem::Kind::block_next: return "next";
    case SequenceItem::Kind::block_end: return "end";
    case SequenceItem::Kind::autonumber: return "autonumber";
    case SequenceItem::Kind::create: return "create";
    case SequenceItem::Kind::destroy: return "destroy";
  }
  return "message";
}

Json sequence_json(const Diagram& diagram) {
  Json participants = Json::array(), items = Json::array(), boxes = Json::array();
  const auto id = [&](int who) { return diagram.participants[static_cast<std::size_t>(who)].id; };
  for (const Participant& one : diagram.participants) {
    Json made{{"id", one.id}, {"label", one.label}, {"actor", one.is_actor}};
    if (one.box >= 0) made["box"] = one.box;
    participants.push_back(std::move(made));
  }
  for (const ParticipantBox& box : diagram.boxes) boxes.push_back({{"title", box.title}, {"colour", box.colour}});
  for (const SequenceItem& item : diagram.items) {
    Json made{{"kind", name_of_item(item.kind)}};
    if (!item.block.empty()) made["block"] = item.block;
    if (item.from >= 0) made["from"] = id(item.from);
    if (item.to >= 0) made["to"] = id(item.to);
    if (!item.arrow.empty()) made["arrow"] = item.arrow;
    if (!item.text.empty()) made["text"] = item.text;
    if (item.activate) made["activate"] = true;
    if (item.deactivate) made["deactivate"] = true;
    made["line"] = item.line;
    items.push_back(std::move(made));
  }
  return {{"participants", participants}, {"boxes", boxes}, {"items", items}};
}

Json gantt_json(const Diagram& diagram) {
  Json tasks = Json::array();
  for (const GanttTask& task : diagram.tasks) {
    Json made{{"section", task.section}, {"name", task.name}, {"id", task.id}, {"begin_ms", task.begin_ms}, {"end_ms", task.end_ms}};
    for (const auto& [name, is] : {std::pair{"done", task.done}, {"active", task.active}, {"crit", task.critical}, {"milestone", task.milestone},
                                   {"vert", task.vertical}}) {
      if (is) made[name] = true;
    }
    if (!task.link.empty()) made["link"] = task.link;
    made["line"] = task.line;
    tasks.push_back(std::move(made));
  }
  return {{"sections", diagram.sections}, {"tasks", tasks}};
}

}  // namespace

std::string diagram_json(const Diagram& diagram) {
  Json out{{"ok", diagram.ok}, {"kind", name_of(diagram.kind)}};
  if (!diagram.ok) {
    out["line"] = diagram.error_line;
    out["error"] = diagram.error;
  } else {
    if (!diagram.title.empty()) out["title"] = diagram.title;
    out.update(diagram.kind == DiagramKind::flowchart ? flowchart_json(diagram)
               : diagram.kind == DiagramKind::sequence ? sequence_json(diagram) : gantt_json(diagram));
  }
  return base::json_text(out, 2);
}

}  // namespace shardbook::page
