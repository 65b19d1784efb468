// diagram/sequence_parser: sequence diagram text -> Diagram.
#pragma once

#include "engine/diagram/diagram.hpp"
#include "engine/diagram/diagram_source.hpp"

namespace shardbook::diagram {

// Fills what belongs to sequence diagrams. Throws a DiagramError; `out` is then half made.
void read_sequence(const DiagramSource& source, Diagram& out);

}  // namespace shardbook::diagram
