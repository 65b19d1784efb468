// diagram/diagram: which kind of diagram is it? See diagram.hpp.
#include "engine/diagram/diagram.hpp"

#include <algorithm>
#include <cctype>

#include "engine/base/check.hpp"
#include "engine/diagram/diagram_limits.hpp"
#include "engine/diagram/diagram_source.hpp"
#include "engine/diagram/flowchart_parser.hpp"
#include "engine/diagram/gantt_parser.hpp"
#include "engine/diagram/sequence_parser.hpp"

namespace shardbook::diagram {

namespace {

constexpr std::size_t longest_diagram = 2u << 20;

bool begins_with(std::string_view text, std::string_view word) { return text.substr(0, word.size()) == word; }

// The border of all three parsers: of a diagram that is wrong, its kind and the error are all that is left.
Diagram read(DiagramKind kind, void (*reader)(const DiagramSource&, Diagram&), const DiagramSource& source) {
  Diagram diagram;
  try {
    diagram.title = source.title;
    reader(source, diagram);
    diagram.ok = true;
  } catch (const DiagramError& error) {
    diagram = Diagram{};
    diagram.error_line = error.line;
    diagram.error = error.reason;
  }
  diagram.kind = kind;
  return diagram;
}

}  // namespace

Diagram parse_diagram(std::string_view text) {
  Diagram none;
  none.error_line = 1;
  if (text.size() > longest_diagram) {
    none.error = "the diagram has more than 2 MiB of text";
    return none;
  }
  const DiagramSource source = prepare_diagram(text);
  const std::size_t first = source.text.find_first_not_of(" \t\n\v\f");
  if (first == std::string::npos) {
    none.error = "the diagram is empty";
    return none;
  }
  none.error_line = source.line_at(first);
  const std::string_view body = std::string_view(source.text).substr(first);
  if (begins_with(body, "graph") || begins_with(body, "flowchart")) return read(DiagramKind::flowchart, read_flowchart, source);
  if (begins_with(body, "sequenceDiagram")) return read(DiagramKind::sequence, read_sequence, source);
  if (begins_with(body, "gantt")) return read(DiagramKind::gantt, read_gantt, source);

  std::size_t end = 0;
  while (end < body.size() && (std::isalnum(static_cast<unsigned char>(body[end])) != 0 || body[end] == '-')) ++end;
  none.error = end == 0 ? "a diagram begins with its kind: flowchart, graph, sequenceDiagram or gantt"
                        : base::text("`", body.substr(0, std::min<std::size_t>(end, 40)), "` is no kind of diagram that is drawn here: those are flowchart, graph, sequenceDiagram and gantt");
  return none;
}

std::string_view name_of(DiagramKind kind) {
  switch (kind) {
    case DiagramKind::flowchart: return "flowchart";
    case DiagramKind::sequence: return "sequence";
    case DiagramKind::gantt: return "gantt";
    case DiagramKind::none: break;
  }
  return "none";
}

std::string_view name_of(NodeShape shape) {
  switch (shape) {
    case NodeShape::rectangle: return "rectangle";
    case NodeShape::round: return "round";
    case NodeShape::stadium: return "stadium";
    case NodeShape::subroutine: return "subroutine";
    case NodeShape::cylinder: return "cylinder";
    case NodeShape::circle: return "circle";
    case NodeShape::double_circle: return "double circle";
    case NodeShape::ellipse: return "ellipse";
    case NodeShape::diamond: return "diamond";
    case NodeShape::hexagon: return "hexagon";
    case NodeShape::flag: return "flag";
    case NodeShape::parallelogram: return "parallelogram";
    case NodeShape::parallelogram_back: return "parallelogram back";
    case NodeShape::trapezoid: return "trapezoid";
    case NodeShape::trapezoid_back: return "trapezoid back";
  }
  return "rectangle";
}

std::string_view name_of(Stroke stroke) {
  switch (stroke) {
    case Stroke::normal: return "normal";
    case Stroke::thick: return "thick";
    case Stroke::dotted: return "dotted";
    case Stroke::invisible: return "invisible";
  }
  return "normal";
}

std::string_view name_of(Head head) {
  switch (head) {
    case Head::none: return "none";
    case Head::arrow: return "arrow";
    case Head::circle: return "circle";
    case Head::cross: return "cross";
  }
  return "none";
}

}  // namespace shardbook::diagram
