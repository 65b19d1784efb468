// page/gantt_parser: gantt chart text -> Diagram.
#pragma once

#include "viewer/page/diagram.hpp"
#include "viewer/page/diagram_source.hpp"

namespace shardbook::page {

// Fills kind, ok and what belongs to gantt charts, or the error. Times are those of the text, without time zones.
// Stricter than mermaid in one thing: `after x` and `until x` with no task x is an error (mermaid takes today).
Diagram parse_gantt(const DiagramSource& source);

}  // namespace shardbook::page
