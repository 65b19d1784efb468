// diagram/flowchart_parser: flowchart text -> Diagram.
#pragma once

#include "engine/diagram/diagram.hpp"
#include "engine/diagram/diagram_source.hpp"

namespace shardbook::diagram {

// Fills what belongs to flowcharts. Throws a DiagramError; `out` is then half made.
void read_flowchart(const DiagramSource& source, Diagram& out);

// `@{ shape: cyl, label: "x" }`: the fields of one brace, as text. false if it cannot be read.
bool read_shape_data(std::string_view text, std::vector<std::pair<std::string, std::string>>& fields);
// The shape that a name of mermaid's stands for ("rect", "cyl", "lean-r"); false if it is not drawn here.
bool shape_of_name(std::string_view name, NodeShape& shape);
// "fill:#f9f,stroke:#333" -> pairs.
Styles read_styles(std::string_view text);

}  // namespace shardbook::diagram
