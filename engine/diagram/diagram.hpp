// diagram/diagram: what does this Mermaid text say?
//
// Three kinds of Mermaid's language are understood: flowcharts, sequence diagrams, gantt charts. The same text is valid
// for mermaid.js (11.17), and what that accepts and finds is what is accepted and found here; tests/mermaid compares.
// What is not understood is an error with its line: never a guess, never a blank.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardbook::diagram {

enum class DiagramKind { none, flowchart, sequence, gantt };

// --- Flowcharts ---------------------------------------------------------------------------------
enum class NodeShape { rectangle, round, stadium, subroutine, cylinder, circle, double_circle, ellipse, diamond, hexagon,
                       flag, parallelogram, parallelogram_back, trapezoid, trapezoid_back };
enum class Stroke { normal, thick, dotted, invisible };
enum class Head { none, arrow, circle, cross };
// "fill" -> "#faf": what classDef, style and linkStyle say.
using Styles = std::vector<std::pair<std::string, std::string>>;

struct DiagramNode {
  std::string id, label;              // label: '\n' where a line breaks; entities resolved
  NodeShape shape = NodeShape::rectangle;
  std::vector<std::string> classes;
  Styles style;
  std::string link, tooltip;
  int subgraph = -1;
  int line = 0;
};

struct DiagramEdge {
  std::string from, to, label;
  Stroke stroke = Stroke::normal;
  Head head = Head::none, tail = Head::none;
  int length = 1;
  Styles style;
  int line = 0;
};

struct Subgraph {
  std::string id, title, direction;   // direction "" is that of what is around it
  int parent = -1;
  std::vector<std::string> members;   // ids of nodes and of subgraphs, in order
  std::vector<std::string> classes;
  Styles style;
  int line = 0;
};

// --- Sequence diagrams --------------------------------------------------------------------------
struct Participant {
  std::string id, label;
  bool is_actor = false;              // a person, not a box
  bool created = false, destroyed = false;
  int box = -1;                       // into boxes
};

struct ParticipantBox {
  std::string title, colour;
};

// What happens, from top to bottom.
struct SequenceItem {
  enum class Kind { message, note, activate, deactivate, block_begin, block_next, block_end, autonumber, create, destroy };
  enum class Place { left, right, over };
  Kind kind = Kind::message;
  int from = -1, to = -1;             // participants; a note's first and last
  std::string text;                   // message, note; a block's condition; rect: its colour
  std::string block;                  // block_*: loop alt opt par critical break rect
  Stroke stroke = Stroke::normal;
  Head head = Head::none, tail = Head::none;
  bool open_head = false;             // -) and --): the head is two strokes, not filled
  std::string arrow;                  // message: as written, "->>"
  bool activate = false, deactivate = false;
  Place place = Place::over;
  int number_from = 1, number_step = 1;   // autonumber
  bool visible = true;
  int line = 0;
};

// --- Gantt charts -------------------------------------------------------------------------------
struct GanttTask {
  std::string section, name, id;
  bool done = false, active = false, critical = false, milestone = false, vertical = false;
  std::int64_t begin_ms = 0, end_ms = 0;   // since 1970, no time zone
  std::string link;
  int line = 0;
};

struct Diagram {
  DiagramKind kind = DiagramKind::none;
  bool ok = false;
  int error_line = 0;                 // of the text, from 1
  std::string error;                  // one sentence without the line

  std::string title;
  // flowchart
  std::string direction = "TB";       // TB BT LR RL
  std::vector<DiagramNode> nodes;
  std::vector<DiagramEdge> edges;
  std::vector<Subgraph> subgraphs;    // inner ones before the outer
  std::map<std::string, Styles> classes;
  Styles default_edge_style;
  // sequence
  std::vector<Participant> participants;
  std::vector<ParticipantBox> boxes;
  std::vector<SequenceItem> items;
  // gantt
  std::string axis_format;
  std::vector<std::string> sections;
  std::vector<GanttTask> tasks;
};

// Never throws. Nesting deeper than 64 and more than 20 000 nodes, edges, items or tasks are errors that say so.
Diagram parse_diagram(std::string_view text);

std::string_view name_of(DiagramKind kind);
std::string_view name_of(NodeShape shape);
std::string_view name_of(Stroke stroke);
std::string_view name_of(Head head);

}  // namespace shardbook::diagram
