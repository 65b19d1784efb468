// page/diagram: a parsed diagram, by its own names: the parser stands in engine/diagram, for notes are checked with it.
#pragma once

#include "engine/diagram/diagram.hpp"

namespace shardbook::page {

using namespace shardbook::diagram;

}  // namespace shardbook::page
