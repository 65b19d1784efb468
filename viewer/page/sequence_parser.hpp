// page/sequence_parser: sequence diagram text -> Diagram.
#pragma once

#include "viewer/page/diagram.hpp"
#include "viewer/page/diagram_source.hpp"

namespace shardbook::page {

// Fills what belongs to sequence diagrams. Throws a DiagramError; `out` is then half made.
void read_sequence(const DiagramSource& source, Diagram& out);

}  // namespace shardbook::page
