// page/sequence_parser: sequence diagram text -> Diagram.
#pragma once

#include "viewer/page/diagram.hpp"
#include "viewer/page/diagram_source.hpp"

namespace shardbook::page {

// Fills kind, ok and what belongs to sequence diagrams, or the error.
Diagram parse_sequence(const DiagramSource& source);

}  // namespace shardbook::page
