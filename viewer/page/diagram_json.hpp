// page/diagram_json: what was understood of a diagram, as JSON, for `shardbook diagram FILE --json` and for tests.
#pragma once

#include <string>

#include "viewer/page/diagram.hpp"

namespace shardbook::page {

// {"ok":true,"kind":"flowchart","nodes":[...]} or {"ok":false,"kind":...,"line":3,"error":"..."}; indented by 2.
std::string diagram_json(const Diagram& diagram);

}  // namespace shardbook::page
