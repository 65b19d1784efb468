// diagram/gantt_parser: gantt chart text -> Diagram.
#pragma once

#include "engine/diagram/diagram.hpp"
#include "engine/diagram/diagram_source.hpp"

namespace shardbook::diagram {

// Fills what belongs to gantt charts. Times are those of the text, without time zones. Throws a DiagramError; `out`
// is then half made.
// Stricter than mermaid in one thing: `after x` and `until x` with no task x is an error (mermaid takes today).
void read_gantt(const DiagramSource& source, Diagram& out);

}  // namespace shardbook::diagram
